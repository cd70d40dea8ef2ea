"""The figures of a plan: titles carry its numbers, tables the curve, and every one renders."""

from dataclasses import replace

import numpy as np
import pytest
import spec

from isoloss.analysis.frontier import optimal_sizes
from isoloss.errors import InputError
from isoloss.figures import iso_loss
from isoloss.figures import plan as figures
from isoloss.figures.render import render
from isoloss.laws import fit
from isoloss.plans import plan
from isoloss.sources.published import published


@pytest.fixture(scope="module")
def fitted():
    flops = np.repeat(np.geomspace(1e18, 1e21, 6), 5)
    params = np.sqrt(flops / 120) * np.tile(np.geomspace(0.25, 4, 5), 6)
    tokens = flops / (6 * params)
    loss = 1.8172 + 482 * params**-0.3478 + 2085 * tokens**-0.3658
    loss = loss + 0.01 * np.random.default_rng(0).standard_normal(30)
    return fit("chinchilla", {"params": params, "tokens": tokens}, loss)


@pytest.fixture(scope="module")
def planned(fitted):
    return plan(fitted, flops=1e22)


def test_frontier(fitted, planned):
    drawn = figures.frontier(fitted, planned)
    low, high = planned.intervals["loss"]
    assert f"{planned.loss:.3g} ({low:.3g} to {high:.3g})" in drawn.title
    table = drawn.table
    assert np.all(np.diff(table["loss"]) < 0)
    assert (table["low"] < table["loss"]).all()
    assert (table["loss"] < table["high"]).all()
    np.testing.assert_allclose(6 * table["params"] * table["tokens"], table["flops"])
    at_plan = np.exp(np.interp(np.log(1e22), np.log(table["flops"]), np.log(table["loss"])))
    assert at_plan == pytest.approx(planned.loss, abs=2e-3)
    assert len(render(drawn).png) > 10_000


def test_allocation(fitted, planned):
    drawn = figures.allocation(fitted, planned)
    assert f"{planned.tokens_per_param:.3g} tokens each" in drawn.title
    sizes = drawn.table.filter(drawn.table["panel"] == "params")
    inside = (sizes["low"] <= sizes["value"]) & (sizes["value"] <= sizes["high"])
    assert inside.all()
    alpha, beta = fitted.params["alpha"], fitted.params["beta"]
    assert f"C^{beta / (alpha + beta):.2f}" in drawn.shows
    assert len(render(drawn).svg) > 10_000


def test_penalty(planned):
    drawn = figures.penalty(planned, "nats per token")
    low, high = planned.penalty.within_10_percent
    assert f"From {low:.2f} to {high:.2f} times" in drawn.title
    assert drawn.table["factor"].to_list() == list(planned.penalty.factor)
    assert len(render(drawn).svg) > 10_000


def test_a_plan_of_fixed_size_has_no_penalty_figure(fitted):
    fixed = plan(fitted, flops=1e22, params=1e9)
    with pytest.raises(InputError, match="no penalty"):
        figures.penalty(fixed, "nats per token")
    assert "The plan for" in figures.allocation(fitted, fixed).title


def test_without_intervals_nothing_is_claimed(fitted):
    bare = replace(fitted, covariance=None)
    planned = plan(bare, flops=1e22)
    drawn = figures.frontier(bare, planned)
    assert "[" not in drawn.title
    assert drawn.table["low"].equals(drawn.table["loss"])
    assert "[" not in figures.allocation(bare, planned).title


def test_the_frontier_draws_its_table_the_runs_and_the_plan(fitted, planned):
    drawn = figures.frontier(fitted, planned)
    (line,) = spec.of_mark(drawn, "line")
    assert [row["loss"] for row in spec.rows(drawn, line)] == drawn.table["loss"].to_list()
    runs, plan_mark = spec.of_mark(drawn, "point")
    assert sorted(row["loss"] for row in spec.rows(drawn, runs)) == sorted(fitted.data.loss)
    (row,) = spec.rows(drawn, plan_mark)
    assert (row["flops"], row["loss"]) == (planned.flops, planned.loss)
    assert runs["encoding"]["shape"] != plan_mark["encoding"]["shape"]
    assert runs["encoding"]["color"] != plan_mark["encoding"]["color"]
    assert line["encoding"]["x"]["scale"]["type"] == "log"
    assert "log scale" in line["encoding"]["x"]["title"]


def test_each_rule_has_a_dash_of_its_own(fitted, planned):
    drawn = figures.allocation(fitted, planned)
    dashes = [layer["encoding"].get("strokeDash") for layer in spec.of_mark(drawn, "line")]
    scale = next(dash for dash in dashes if dash)["scale"]
    assert scale["domain"] == [*figures.RULES, *figures.PRINTED]
    assert len({tuple(dash) for dash in scale["range"]}) == len(scale["domain"])


def test_lines_of_printed_laws_are_their_best_models(fitted, planned):
    """C = 6 N D holds on each, and N grows as beta / (alpha + beta) of the law."""
    drawn = figures.allocation(fitted, planned)
    lines = [
        spec.rows(drawn, layer) for layer in spec.of_mark(drawn, "line") if "strokeDash" in layer["encoding"]
    ]
    for name, law in figures.PRINTED.items():
        N, D, ratio = ([row for row in rows if row["rule"] == name] for rows in lines)
        for n, d, r in zip(N, D, ratio, strict=True):
            assert 6 * n["value"] * d["value"] == pytest.approx(n["flops"])
            assert r["value"] == pytest.approx(d["value"] / n["value"])
        grown = np.log(N[-1]["value"] / N[0]["value"]) / np.log(N[-1]["flops"] / N[0]["flops"])
        assert grown == pytest.approx(published(law).allocation()["a"], rel=1e-4)


def test_every_panel_of_an_allocation_is_logarithmic_on_both_axes(fitted, planned):
    for layer in spec.layers(figures.allocation(fitted, planned)):
        for axis in ("x", "y"):
            assert layer["encoding"][axis]["scale"]["type"] == "log"


def test_every_point_of_a_line_has_its_loss_and_the_frontier_its_least_compute(fitted, planned):
    drawn = iso_loss.figure(fitted, planned)
    table = drawn.table
    tokens = table["flops"] / (6 * table["params"])
    loss = fitted.predict(params=table["params"].to_numpy(), tokens=tokens.to_numpy()).loss
    np.testing.assert_allclose(loss, table["loss"], atol=2e-3)
    assert table["loss"].n_unique() >= 4
    best = optimal_sizes(fitted, planned)
    for (_,), line in table.group_by("loss"):
        least = line.sort("flops")[0]
        near = np.exp(np.interp(np.log(least["flops"]), np.log(best.flops_F), np.log(best.params_F)))
        assert least["params"].to_numpy() == pytest.approx(near, rel=0.15)
    low, high = (planned.params * end for end in planned.penalty.within_10_percent)
    assert f"from {low / 1e9:.3g}B to {high / 1e9:.3g}B" in drawn.title
    assert len(render(drawn).png) > 10_000


@pytest.mark.parametrize(("low", "high", "step"), [(2.3, 3.5, 0.2), (3.61, 3.72, 0.01), (1.0, 90.0, 10.0)])
def test_lines_are_at_round_losses(low, high, step):
    losses = iso_loss.levels(low, high)
    assert np.diff(losses) == pytest.approx(step)
    assert low <= losses[0] <= losses[-1] <= high
