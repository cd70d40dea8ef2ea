"""Figures of a fit: their numbers and findings, and what they refuse. tests/report draws every form."""

from dataclasses import replace

import fitted
import numpy as np
import polars as pl
import pytest
import spec
from scipy.special import stdtrit

from isoloss.analysis import fit_doubts, parameters, residual_bins
from isoloss.analysis.fit_rows import brief_formula, rows
from isoloss.errors import InputError, Refusal
from isoloss.figures import correlations, fit_residuals, profiles
from isoloss.figures import fit as figures
from isoloss.figures.render import render
from isoloss.laws import FORMS, FitStatus, fit
from isoloss.sources.published import published
from isoloss.text import count


@pytest.fixture(scope="module")
def law():
    return fitted.fitted("chinchilla")


@pytest.mark.parametrize("name", ["chinchilla", "loop-equivalence"])
def test_pictures_of_two_and_four_inputs_render(name):
    picture = render(figures.law(fitted.fitted(name)))
    assert picture.png.startswith(b"\x89PNG")
    assert "log scale" in picture.svg


def test_the_strip_below_the_law_holds_the_residuals_of_the_fit(law):
    table = figures.law(law).table
    np.testing.assert_allclose(table["residual"], 100 * np.array(law.residuals), atol=1e-9)
    np.testing.assert_allclose(table["law"] * np.exp(table["residual"] / 100), table["observed"])


def test_partial_residuals_keep_each_rows_residual():
    law_fit = fitted.fitted("width-depth")
    table = figures.law(law_fit).table
    for name in law_fit.form.inputs:
        own = table.filter(pl.col("panel") == name)
        assert own.height == law_fit.n
        np.testing.assert_allclose(own["residual"], 100 * np.array(law_fit.residuals), atol=1e-9)
        centre = {n: np.full(own.height, np.sqrt(np.prod(law_fit.ranges[n]))) for n in law_fit.form.inputs}
        predicted = law_fit.predict(**centre | {name: own["x"].to_numpy()}).loss
        np.testing.assert_allclose(own["observed"], predicted * np.exp(own["residual"] / 100))


def test_rows_inside_their_interval_are_counted(law):
    predicted = law.predict(**{name: np.array(column) for name, column in law.data.inputs.items()})
    loss = np.array(law.data.loss)
    inside = int(np.sum((predicted.interval[0] <= loss) & (loss <= predicted.interval[1])))
    figure = fit_residuals.real_against_predicted(law)
    assert figure.title.startswith(f"{inside} of {law.n} rows")
    assert int(figure.table["inside"].sum()) == inside


def drift(law_fit):
    return fit_residuals.drift(law_fit, fit_residuals.means(law_fit, rows(law_fit)))


def test_a_bend_is_tested_against_the_noise_and_not_against_itself():
    """Nearest runs share a bend, so their differences are noise; the scatter about the law holds both."""
    seen = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        N, D = 10 ** rng.uniform(7, 9, 80), 10 ** rng.uniform(9, 11, 80)
        noise = 0.001 * rng.standard_normal(80)
        loss = (1.8 + 480 * N**-0.35 + 2000 * D**-0.37) * np.exp(noise + 0.01 * np.sin(1.5 * np.log(D)))
        law_fit = fit(
            "chinchilla", {"params": N, "tokens": D}, loss, objective="squared-log", curve_only=True
        )
        points = rows(law_fit)
        seen += drift(law_fit).startswith("The law drifts")
        noise_seen, pairs = residual_bins._noise(law_fit, points)
        assert noise_seen < 0.8 * 100 * law_fit.sigma
        assert pairs < 40
    assert seen >= 4


def test_a_missing_floor_shows_as_drift_and_noise_does_not():
    titles = [drift(fit("chinchilla", *fitted.runs_of("chinchilla", seed=seed))) for seed in range(20)]
    assert sum(title.startswith("The law drifts") for title in titles) <= 3
    N = np.geomspace(1e6, 1e9, 60)
    loss = (1.7 + 400 * N**-0.34) * np.exp(0.002 * np.random.default_rng(0).standard_normal(60))
    assert drift(fit("power", {"params": N}, loss)).startswith("The law drifts off its runs")
    assert not drift(fit("power-floor", {"params": N}, loss)).startswith("The law drifts")


def test_bin_means_and_their_intervals(law):
    bins = fit_residuals.residuals(law).table
    smallest = bins.filter(pl.col("input") == "params").row(0, named=True)
    own = 100 * np.array(law.residuals)[np.isclose(law.data.inputs["params"], 1e6)]
    assert smallest["mean"] == pytest.approx(own.mean(), abs=1e-9)
    # The noise of one run is that between runs that are each other's nearest, where that is the smaller.
    log_nI = np.log(np.column_stack([law.data.inputs[name] for name in ("params", "tokens")]))
    away_nn = np.linalg.norm(log_nI[:, None] - log_nI, axis=2)
    np.fill_diagonal(away_nn, np.inf)
    nearest = away_nn.argmin(axis=1)
    pairs = [(i, j) for i, j in enumerate(nearest) if nearest[j] == i and i < j]
    residuals = 100 * np.array(law.residuals)
    pure = np.sqrt(np.mean([(residuals[i] - residuals[j]) ** 2 / 2 for i, j in pairs]))
    assert 0 < pure < 100 * law.sigma
    reach = stdtrit(min(len(pairs), law.df), 0.95) * max(pure, own.std(ddof=1)) / np.sqrt(len(own))
    assert smallest["high"] - smallest["mean"] == pytest.approx(reach)


def test_correlations_are_those_of_the_plain_parameters(law):
    names, matrix = parameters.correlations(law)
    assert names == ("E", "A", "alpha", "B", "beta")
    np.testing.assert_allclose(np.diag(matrix), 1.0)
    # Against draws of the law, in logs of the plain parameters.
    theta_Sp = law.draws(40_000, np.random.default_rng(0))
    scale = np.log([law.units.inputs[name] for name in law.form.inputs])
    drawn = np.corrcoef(law.form.unscale(theta_Sp, scale, float(np.log(law.units.loss))).T)
    np.testing.assert_allclose(matrix, drawn, atol=0.03)
    # Negative control: those of the scaled parameters are others.
    cov = np.array(law.covariance)
    error = np.sqrt(np.diag(cov))
    assert np.abs(cov / error[:, None] / error - drawn).max() > 0.3
    title = correlations.figure(law).title
    assert "move together" in title
    assert "beta" in title or "alpha" in title


def test_tied_parameters_are_no_finding():
    x, loss = fitted.runs_of("chinchilla")
    tied = fit("chinchilla", x, loss, tied=[("alpha", "beta")])
    assert "alpha and beta" not in correlations.figure(tied).title
    assert "beta and alpha" not in correlations.figure(tied).title
    assert len(parameters.profiles(tied)) == 4


def test_profiles_carry_both_intervals_and_the_straight_line(law):
    figure = profiles.figure(law)
    assert figure.table["parameter"].unique(maintain_order=True).to_list() == list(law.params)
    low, high = law.intervals["alpha"]
    assert f"t {low:#.3g} to {high:#.3g}" in figure.shows
    own = figure.table.filter(pl.col("parameter") == "alpha")
    error = (np.log(high) - np.log(low)) / (2 * stdtrit(law.df, 0.95))
    line = np.log(own["value"].to_numpy() / law.params["alpha"]) / error
    np.testing.assert_allclose(own["t_distance"], line, rtol=1e-6, atol=1e-9)


def test_a_profile_that_does_not_close_is_said_to_be_open(law):
    (one,) = [p for p in parameters.profiles(law) if p.parameter == "E"]
    opened = replace(one, interval=(None, one.interval[1]))
    assert parameters.profile_verdict(law, (opened,)) == "E has no bound on a side: open ends"
    assert "the data do not bound it below" in parameters.profile_words(law, opened)
    assert "open" not in parameters.profile_words(law, one)


def test_without_covariance_no_interval_is_drawn(law):
    bare = replace(law, covariance=None, status=FitStatus.CURVE_ONLY, reason="the floor is lost in the noise")
    drawn = figures.law(bare)
    assert drawn.title.startswith("Only a curve")
    assert "band" not in drawn.description
    assert "inside" not in fit_residuals.real_against_predicted(bare).title
    for refused in (correlations.figure, profiles.figure):
        with pytest.raises(Refusal, match="no covariance"):
            refused(bare)


def test_a_published_law_is_drawn_over_what_was_trained():
    printed = published("chinchilla-epoch")
    assert figures.law(printed).title.startswith("As printed, L = ")
    with pytest.raises(Refusal, match="no rows"):
        fit_residuals.residuals(printed)
    with pytest.raises(Refusal, match="not known"):
        figures.law(published("iso-depth-r2"))


def test_checkpoints_have_no_profile():
    x, loss = fitted.runs_of("chinchilla")
    law_fit = fit("chinchilla", x, loss, cluster=np.arange(30) // 3)
    with pytest.raises(Refusal, match="checkpoints"):
        profiles.figure(law_fit)


def test_a_law_that_misses_nothing_has_no_profile():
    N = np.geomspace(1e6, 1e9, 7)
    exact = fit("power", {"params": N}, (1e13 / N) ** 0.07)
    with pytest.raises(Refusal, match="no noise"):
        profiles.figure(exact)


def test_one_varied_input_of_two_is_a_line():
    N = np.geomspace(1e6, 1e9, 12)
    x = {"params": N, "tokens": np.full(12, 1e10)}
    truth = fitted.TRUTH["chinchilla"][0]
    loss = FORMS["chinchilla"].loss(truth, x) * np.exp(0.002 * np.random.default_rng(0).standard_normal(12))
    law_fit = fit("chinchilla", x, loss, fixed={"B": truth["B"], "beta": truth["beta"]})
    assert "interval of the law's mean" in figures.law(law_fit).description
    assert set(parameters.correlations(law_fit)[0]) == {"E", "A", "alpha"}


def test_parameters_outside_the_loop_may_be_none():
    x, _ = fitted.runs_of("loop-equivalence")
    x["params_once"] = np.where(x["params_once"] < 2e6, 0.0, x["params_once"])
    loss = FORMS["loop-equivalence"].loss(fitted.TRUTH["loop-equivalence"][0], x)
    loss = loss * np.exp(0.002 * np.random.default_rng(0).standard_normal(len(loss)))
    table = figures.law(fit("loop-equivalence", x, loss)).table
    assert table.filter(pl.col("panel") == "params_once")["x"].min() > 0


def test_a_fit_draws_itself(law):
    spec = law.plot().to_dict(validate=False)
    assert brief_formula(law) in " ".join(spec["title"]["text"]).replace("\u00a0", " ")


def test_printed_laws_are_drawn_beside_a_law_of_the_same_input():
    own = fitted.fitted("context")
    others = [published(f"kaplan-context-{i}") for i in range(1, 7)]
    picture = render(figures.law(own, others))
    for other in others:
        assert other.source["published"] in picture.svg
    assert "kaplan-context" not in render(figures.law(own)).svg
    with pytest.raises(InputError, match="position"):
        figures.law(fitted.fitted("power-floor"), others)
    with pytest.raises(InputError, match="several inputs"):
        figures.law(fitted.fitted("chinchilla"), [published("kaplan-n")])


def test_the_picture_of_a_law_draws_its_rows_and_its_curve(law):
    drawn = figures.law(law)
    rows_drawn, strip = spec.of_mark(drawn, "point")
    assert sorted(row["observed"] for row in spec.rows(drawn, rows_drawn)) == sorted(law.data.loss)
    assert sorted(row["residual"] for row in spec.rows(drawn, strip)) == sorted(drawn.table["residual"])
    (curve,) = spec.of_mark(drawn, "line")
    points = spec.rows(drawn, curve)
    inputs = {name: np.array([row[name] for row in points]) for name in law.form.inputs}
    np.testing.assert_allclose([row["law"] for row in points], law.predict(**inputs).loss)
    for axis in ("x", "y"):
        assert curve["encoding"][axis]["scale"]["type"] == "log"
        assert "log scale" in curve["encoding"][axis]["title"]
    assert curve["encoding"]["color"]["legend"]["type"] == "gradient"
    (names,) = spec.of_mark(drawn, "text")
    labels = [row["label"] for row in spec.rows(drawn, names)]
    assert labels == [f"D = {count(tokens)}" for tokens in sorted({row["tokens"] for row in points})]


def test_rows_outside_their_interval_differ_in_colour_and_shape(law):
    drawn = fit_residuals.real_against_predicted(law)
    (points,) = spec.of_mark(drawn, "point")
    looks = {(row["colour"], row["shape"]) for row in spec.rows(drawn, points)}
    assert len(looks) == len({colour for colour, _ in looks}) == len({shape for _, shape in looks}) == 2


def test_names_of_printed_laws_do_not_overlap():
    own = fitted.fitted("context")
    drawn = figures.law(own, [published(f"kaplan-context-{i}") for i in range(1, 7)])
    (names,) = spec.of_mark(drawn, "text")
    low, high = names["encoding"]["y"]["scale"]["domain"]
    heights = sorted(row["other"] for row in spec.rows(drawn, names))
    assert len(heights) == 6
    assert min(np.diff(heights)) * figures.HEIGHT / (high - low) >= 11


def test_outliers_do_not_flatten_the_frame_of_residuals():
    points = pl.DataFrame({"residual": [*np.linspace(-1, 1, 41), 30.0, -25.0]})
    assert len(fit_doubts.framed(points)) == 41
    assert fit_doubts.beyond_words(points) == "; 2 rows lie off the frame of residuals"
    usual = pl.DataFrame({"residual": np.random.default_rng(0).normal(0, 1, 500)})
    assert len(fit_doubts.framed(usual)) == 500
    assert fit_doubts.beyond_words(usual) == ""
