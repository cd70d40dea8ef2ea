"""Every kind of figure: made from a fit or a study that allows it, refused in words where none does."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import spec

from isoloss import published, text
from isoloss.analysis import frontier, refits
from isoloss.analysis.families import name_of
from isoloss.analysis.loop_worth import worth_of
from isoloss.errors import InputError, Refusal
from isoloss.figures import (
    design,
    exponents,
    gallery,
    hidden_runs,
    learning_curves,
    loss_by_ratio,
    parameter_cloud,
)
from isoloss.figures import tokens_per_param as ratios
from isoloss.laws import fit
from isoloss.records import load, reference


def runs_of(noise, alpha=0.3478, beta=0.3658):
    """Five sizes at each of six budgets about 20 tokens a parameter."""
    flops = np.repeat(np.geomspace(1e18, 1e21, 6), 5)
    params = np.sqrt(flops / 120) * np.tile(np.geomspace(0.25, 4, 5), 6)
    tokens = flops / (6 * params)
    loss = 1.8172 + 482 * params**-alpha + 2085 * tokens**-beta
    return {"params": params, "tokens": tokens}, loss + noise * np.random.default_rng(0).standard_normal(30)


@pytest.fixture(scope="module")
def law():
    return fit("chinchilla", *runs_of(0.01))


@pytest.mark.parametrize("kind", gallery.FIT)
def test_every_kind_of_a_fit_is_drawn_and_named_after_itself(law, kind):
    (figure,) = gallery.fit_figures_of(law, kind)
    assert figure.name == kind
    assert figure.table.height
    assert spec.layers(figure)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    inputs, loss = runs_of(0.01)
    path = tmp_path_factory.mktemp("table") / "runs.csv"
    pl.DataFrame({**inputs, "loss": loss}).write_csv(path)
    return str(path)


@pytest.mark.parametrize("kind", ["iso-loss", "plan-penalty", "design", "compute-frontier"])
def test_a_table_is_drawn_by_its_forecast_or_without_any_law(table, kind):
    (figure,) = gallery.of_sources(kind, [table])
    assert figure.name == kind
    assert figure.table.height
    assert "law chinchilla" not in figure.subtitle


def test_a_table_has_no_law_to_draw(table):
    with pytest.raises(InputError, match=r"(?s)profiles: is a figure of a law.*fit a law to it.*iso-loss"):
        gallery.of_sources("profiles", [table])
    with pytest.raises(InputError, match="draws laws alone"):
        gallery.of_sources("law", ["chinchilla-epoch", table])


def test_lines_of_equal_loss_are_where_the_law_says(law):
    lines = gallery.fit_figures_of(law, "iso-loss")[0].table
    tokens = lines["flops"] / (6 * lines["params"])
    predicted = law.predict(level=None, params=lines["params"].to_numpy(), tokens=tokens.to_numpy()).loss
    np.testing.assert_allclose(predicted, lines["loss"], rtol=1e-4)


def test_a_law_and_the_forecast_of_its_runs_are_drawn_together(law, table):
    known = gallery._law_or_table(table, {})
    (both,) = gallery.fit_figures_of(law, "iso-loss", [known])
    dashed = [layer for layer in spec.of_mark(both, "line") if layer["mark"].get("strokeDash")]
    assert len(dashed) == 2  # contours and frontier
    assert "dashed: the forecast" in both.subtitle
    with pytest.raises(InputError, match="two laws at most"):
        gallery.fit_figures_of(law, "iso-loss", [known, known])


def test_runs_to_buy_are_those_of_the_design(law):
    bought = frontier.next_runs(law)
    figure = design.figure(law, bought)
    assert figure.table["params"].to_list() == [run.inputs["params"] for run in bought.runs]
    assert sum(figure.table["flops"]) == pytest.approx(bought.spent_flops)
    named = [row["label"] for layer in spec.of_mark(figure, "text") for row in spec.rows(figure, layer)]
    assert sorted("/".join(named[:-1]).split("/"), key=int) == [str(i + 1) for i in range(len(bought.runs))]
    share = 1 - bought.half_width_after / bought.half_width_now
    assert f"by {100 * share:.2g}%" in figure.title


@pytest.mark.parametrize("kind", [kind for kind in gallery.STUDY if kind not in ("loop-worth", "shape")])
def test_every_kind_of_a_study_is_drawn(figures_of, kind):
    assert all(figure.name.startswith(kind) for figure in figures_of("LSTM_AHEAD")[kind])


@pytest.mark.parametrize(("kind", "why"), [("shape", "planned nothing"), ("loop-worth", "equal depth")])
def test_what_a_study_did_not_plan_is_refused(ahead, kind, why):
    with pytest.raises(Refusal, match=why) as refused:
        gallery.study_figures(ahead, kind)
    kinds = refused.value.mend.removeprefix("choose one of ").split(", ")
    assert ("learning-curves" in kinds) == (kind == "shape")
    assert "shape" not in kinds


def test_a_study_of_one_family_has_no_gap_and_says_so():
    with pytest.raises(Refusal, match="compares no two families"):
        gallery.study_figures(load(reference.folder("reference/shape")), "gap-by-tokens")


def test_unknown_kinds_and_laws_without_room_are_named(law, ahead):
    with pytest.raises(InputError, match=r"(?s)loss-by-parms: is no figure of a study.*learning-curves"):
        gallery.study_figures(ahead, "loss-by-parms")
    with pytest.raises(InputError, match="is no figure of a fit"):
        gallery.fit_figures_of(law, "shape")
    with pytest.raises(InputError, match="draws one law"):
        gallery.fit_figures_of(law, "residuals", [published("chinchilla")])


def test_tokens_a_parameter_are_the_laws_own():
    """With alpha = beta the ratio does not move with C: D / N = (B / A)^(1 / alpha)."""
    even = fit("chinchilla", *runs_of(1e-4, 0.35, 0.35))
    table = ratios.figure(even).table
    wanted = (2085 / 482) ** (1 / 0.35)
    assert table["ratio"].to_numpy() == pytest.approx(np.full(table.height, wanted), rel=0.1)
    assert (table["low"] < table["ratio"]).all()
    assert (table["ratio"] < table["high"]).all()


def test_laws_of_one_name_are_told_apart_and_those_without_a_best_model_are_named(law):
    table = ratios.figure(law, [published("chinchilla")]).table
    assert table["label"].unique(maintain_order=True).to_list() == ["this fit", "chinchilla"]
    with pytest.raises(InputError, match="needs parameters and tokens"):
        ratios.figure(law, [published("kaplan-n")])


def test_hidden_runs_stand_with_their_errors(law):
    outcome = refits.hidden_runs(law)
    figure = hidden_runs.figure(outcome)
    table = figure.table
    np.testing.assert_allclose(table["error"], 100 * (table["predicted"] / table["observed"] - 1), rtol=1e-9)
    inside = (table["low"] < 0) == (table["high"] > 0)
    assert inside.to_list() == table["inside"].to_list()
    assert figure.title.startswith(f"{sum(table['inside'])} of {table.height} hidden runs")


def test_there_must_be_another_law_to_compare_with():
    with pytest.raises(Refusal, match="no other law"):
        refits.compared(published("chinchilla-epoch"))


def test_exponents_under_each_objective_are_those_of_its_fit(law):
    others = refits.objectives(law)
    table = exponents.figure(law, others).table
    assert set(table["parameter"]) == {"alpha", "beta"}
    for name, delta, other in others:
        setting = name if delta is None else f"{name}, delta {delta:g}"
        row = table.filter((pl.col("setting") == setting) & (pl.col("parameter") == "beta")).row(
            0, named=True
        )
        assert row["value"] == other.params["beta"]


def test_exponents_of_several_fits_stand_by_their_tables(law):
    named = [replace(law, source={"path": "runs/a.csv", "where": rows}) for rows in (None, "loss < 3", None)]
    (figure,) = gallery.fit_figures_of(named[0], "exponents", [*named[1:], published("chinchilla-epoch")])
    table = figure.table.filter(parameter="beta")
    assert table["setting"].to_list() == ["a", "a, loss < 3", "a (2)", "chinchilla-epoch"]
    assert table["value"].to_list()[:3] == [law.params["beta"]] * 3
    assert table["value"][3] == published("chinchilla-epoch").params["beta"]
    assert figure.title.startswith("In 4 fits ")
    with pytest.raises(InputError, match="is of the law power, the first of chinchilla"):
        gallery.fit_figures_of(law, "exponents", [published("kaplan-n")])


def test_the_cloud_of_exponents_is_as_wide_as_the_intervals(law):
    cloud = parameter_cloud.figure(law).table
    for name in ("alpha", "beta"):
        low, high = law.intervals[name]
        assert ((cloud[name] > low) & (cloud[name] < high)).mean() == pytest.approx(law.level, abs=0.04)
    with pytest.raises(Refusal, match="not both free"):
        parameter_cloud.figure(published("chinchilla-epoch"))


def test_lines_of_loss_by_ratio_are_the_laws(law):
    figure = loss_by_ratio.figure(law)
    lines = spec.rows(figure, spec.of_mark(figure, "line")[0])
    for row in lines[:: len(lines) // 7]:
        assert row["law"] == pytest.approx(
            float(law.predict(params=row["params"], tokens=row["params"] * row["ratio"]).loss)
        )
    with pytest.raises(Refusal, match="does not tell tokens a parameter"):
        loss_by_ratio.figure(published("kaplan-n"))


def test_the_envelope_holds_the_lowest_loss_at_every_compute(ahead):
    figure = learning_curves.figure(ahead)
    ends = (
        figure.table.filter("cooled").rename({"flops_6nd": "x"}).with_columns(flops_6nd="x", label="run_id")
    )
    lowest = learning_curves.envelope_of(ends)
    assert (lowest["loss"].diff().drop_nulls() < 0).all()
    for row in ends.iter_rows(named=True):
        assert row["loss"] >= lowest.filter(pl.col("flops_6nd") <= row["flops_6nd"])["loss"].min()
    assert f"{lowest['loss'][-1]:#.3g}" in figure.title
    last = lowest["x"][-1]
    best = ahead.table().filter(pl.col("cooled") & (pl.col("flops_6nd") == last)).sort("loss")
    family, params = best.select("family", "params").row(0)
    assert figure.title.endswith(f"with the {name_of(family)} of N = {text.count(params)}")


def test_the_gallery_has_an_example_of_every_kind(examples, page):
    assert set(examples) == set(gallery.STUDY | gallery.FIT)
    assert all(figure.name.startswith(kind) for kind, (_, figure) in examples.items())
    shown = page.page({"law": examples["law"]})
    assert shown.count("<svg") == 1
    assert "isoloss plot law fit.json" in shown


def test_made_up_loops_are_worth_what_was_planted(page):
    phi = worth_of(page.equal_depth()).phi
    assert phi.low < 0.46 < phi.high


def test_stairs_hold_a_loss_until_compute_buys_a_lower_one():
    lowest = pl.DataFrame({"flops_6nd": [1.0, 2.0, 5.0], "loss": [4.0, 3.5, 3.0]})
    corners = learning_curves.stairs(lowest).rows()
    assert corners == [(1, 4), (2, 4), (2, 3.5), (5, 3.5), (5, 3)]
