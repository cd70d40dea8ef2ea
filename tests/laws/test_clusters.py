"""What counts as one run: seeds of a size, checkpoints of a run, and intervals from either."""

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import Problem, descend, fit, problem_of
from isoloss.laws._spread import jackknife


def _checkpoints(runs=14, each=4, seed=0, shared=0.01):
    rng = np.random.default_rng(seed)
    x = (np.geomspace(1e6, 1e8, runs)[:, None] * np.geomspace(1, 2, each)).ravel()
    run = np.repeat(np.arange(runs), each)
    y = 1.8 + 400 * x**-0.35 + shared * rng.standard_normal(runs)[run]
    return {"params": x}, y + 0.001 * rng.standard_normal(len(x)), run


def test_the_jackknife_is_leaving_one_run_out():
    x, y, run = _checkpoints()
    fitted = fit("power-floor", x, y, cluster=run)
    thetas = []
    for left in range(14):
        rest = fit("power-floor", {"params": x["params"][run != left]}, y[run != left])
        thetas.append([np.log(rest.params["E"]), np.log(rest.params["a"])])
    spread = 13 * np.var(thetas, axis=0)  # (G - 1) / G times the sum of squares
    at = [fitted.form.parameters.index(name) for name in ("E", "a")]
    assert np.array(fitted.covariance)[at, at] == pytest.approx(spread, rel=1e-5)


def test_labels_may_be_anything():
    x, y, run = _checkpoints()
    fitted = fit("power-floor", x, y, cluster=run)
    for labels in (run + 0.5, [f"run {r}" for r in run], -run, np.array([f"{r}" for r in run], dtype=object)):
        other = fit("power-floor", x, y, cluster=labels)
        assert other.standard_errors == pytest.approx(fitted.standard_errors, rel=1e-9)
        assert (other.clusters, other.n, other.df) == (14, 56, 11)


def test_more_checkpoints_of_the_same_runs_add_no_certainty():
    few, many = (_checkpoints(each=each) for each in (3, 24))
    errors = [fit("power-floor", x, y, cluster=run).standard_errors["a"] for x, y, run in (few, many)]
    assert errors[1] == pytest.approx(errors[0], rel=0.35)
    # Negative control: counted as runs, eight times the rows claim a third of the error.
    alone = [fit("power-floor", x, y).standard_errors["a"] for x, y, _ in (few, many)]
    assert alone[1] < 0.5 * alone[0]


def test_few_clusters_give_no_interval_and_say_why():
    x, y, run = _checkpoints(runs=3, each=12)
    fitted = fit("power-floor", x, y, cluster=run)
    assert fitted.covariance is None
    assert set(fitted.intervals.values()) == {None}
    assert any("3 runs carry 3 free parameters" in text for text in fitted.warnings)
    two = fit("power-floor", *_checkpoints(runs=2, each=20)[:2], cluster=np.repeat([0, 1], 20))
    assert two.predict(params=1e9).interval is None


def test_a_run_that_alone_carries_a_parameter_gives_no_covariance():
    """One run holds all small sizes: without it the exponent is open."""
    x, _, run = _checkpoints(runs=6, each=5)
    size = np.where(run == 0, x["params"], 9e7)
    noise = 0.001 * np.random.default_rng(0).standard_normal(30)
    fitted = fit("power", {"params": size}, 10 * size**-0.1 + noise, cluster=run)
    problem, points = problem_of(fitted)
    assert jackknife(problem, np.array(fitted.theta), points.group_n) is None
    assert fitted.covariance is None


def test_clusters_are_what_is_resampled():
    x, y, run = _checkpoints()
    fitted = fit("power-floor", x, y, cluster=run, intervals="bootstrap", bootstrap=200)
    assert fitted.bootstrap.unit == "clusters"
    jack = fit("power-floor", x, y, cluster=run)
    low, high = fitted.intervals["a"]
    other_low, other_high = jack.intervals["a"]
    assert np.log(high / low) == pytest.approx(np.log(other_high / other_low), rel=0.4)
    # The band counts runs too: it is about as wide as the jackknife's.
    band, reference = fitted.predict(params=1e9).band, jack.predict(params=1e9).band
    assert np.log(band[1] / band[0]) == pytest.approx(np.log(reference[1] / reference[0]), rel=0.4)
    rows = fit("power-floor", x, y, intervals="bootstrap", bootstrap=200)
    assert rows.bootstrap.unit == "rows"
    assert np.ptp(np.log(rows.intervals["a"])) < 0.8 * np.log(high / low)


def test_checkpoints_have_no_profile_and_too_few_are_not_resampled():
    x, y, run = _checkpoints()
    with pytest.raises(InputError, match="no likelihood of their own"):
        fit("power-floor", x, y, cluster=run, intervals="profile")
    x, y, run = _checkpoints(runs=9)
    with pytest.raises(Refusal, match="9 runs are too few to resample"):
        fit("power-floor", x, y, cluster=run, intervals="bootstrap")


def test_the_left_out_fits_are_optima():
    x, y, run = _checkpoints()
    problem, points = problem_of(fit("power-floor", x, y, cluster=run))
    weights = np.where(points.group_n == np.arange(14)[:, None], 0.0, problem.w_n)
    part = Problem(problem.model, problem.y_n, weights, problem.objective, problem.delta)
    start = descend(problem, np.zeros((1, 3)))
    ends = descend(part, np.tile(start, (14, 1)))
    pull = (part.residuals(ends) * weights)[:, None, :] @ part.jacobian(ends)
    assert np.max(np.abs(pull)) < 1e-6
