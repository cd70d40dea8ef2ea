"""Intervals hold the truth as often as they say, and intervals 30% narrower are caught.

Accepted at nominal 90%: the shares that a sound method misses once in a thousand times, from the binomial
distribution (86.8-93.0% of 1,000 data sets, 84.8-94.5% of 400). Data sets that are refused give no interval:
they are counted, at most one in a hundred, and coverage is that of the others.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from isoloss.errors import Refusal
from isoloss.laws import fit, problem_of, profile

SIGMA = 0.01


def _accepted(sims):
    return binom.ppf([0.0005, 0.9995], sims, 0.9) / sims


def _holds(interval, truth, factor=1.0, signed=False):
    """Whether the interval, narrowed by ``factor`` on its own scale, holds the truth."""
    low, high, at = (float(end) if signed else np.log(end) for end in (*interval, truth))
    return abs(at - (low + high) / 2) <= factor * (high - low) / 2


def _coverage(world, names, sims, *, seed, more=lambda fitted: [], **options):
    """Shares that hold: each of ``names``, the mean and a new run ten times beyond the data, ``more``; then
    each of ``names`` and the mean narrowed by 30%."""
    rng = np.random.default_rng(seed)
    mean, far = world.losses(), float(world.at(world.far))
    held, refused = [], 0
    for _ in range(sims):
        if options.get("objective", "squared") == "squared":
            y, new = mean + SIGMA * rng.standard_normal(len(mean)), far + SIGMA * rng.standard_normal()
        else:
            y, new = (
                mean * np.exp(SIGMA / 2 * rng.standard_normal(len(mean))),
                far * np.exp(SIGMA / 2 * rng.standard_normal()),
            )
        try:
            fitted = fit(world.law, world.inputs, y, **options)
        except Refusal:
            refused += 1
            continue
        prediction, signed = fitted.predict(**world.far), fitted.form.signed
        each = [(fitted.intervals[name], world.params[name], name in signed) for name in names]
        held.append(
            [_holds(interval, truth, signed=s) for interval, truth, s in each]
            + [_holds(prediction.band, far), _holds(prediction.interval, new), *more(fitted)]
            + [_holds(interval, truth, 0.7, s) for interval, truth, s in each]
            + [_holds(prediction.band, far, 0.7)]
        )
    assert refused <= 0.01 * sims
    shares = np.mean(held, axis=0)
    narrowed = len(names) + 1
    return shares[:-narrowed], shares[-narrowed:]


def _check(shares, narrowed, sims):
    low, high = _accepted(sims)
    assert np.all((low <= shares) & (shares <= high)), (shares, low, high)
    # Negative control: intervals 30% narrower must fail.
    assert np.all(narrowed < low), (narrowed, low)


def test_the_accepted_shares():
    np.testing.assert_allclose(_accepted(1000), [0.868, 0.930], atol=2e-3)
    np.testing.assert_allclose(_accepted(400), [0.848, 0.945], atol=3e-3)


@pytest.mark.parametrize("sizes", [5, 7, 12, 30])
def test_t_intervals_of_a_power_law_with_a_floor(worlds, sizes):
    world = replace(worlds["power-floor"], inputs={"params": np.geomspace(1e6, 1e8, sizes)})
    _check(*_coverage(world, ["a"], 1000, seed=sizes), 1000)


def test_t_intervals_of_a_grid_of_sizes_and_tokens(worlds):
    _check(*_coverage(worlds["chinchilla"], ["alpha", "beta"], 400, seed=1), 400)


def test_t_and_profile_intervals_of_the_looped_grid(worlds):
    world = worlds["loop-equivalence"]
    assert len(world.losses()) == 116

    def by_profile(fitted):
        interval = profile(fitted, problem_of(fitted)[0], "phi").interval
        return [_holds(interval, world.params["phi"], signed=True)]

    _check(*_coverage(world, ["alpha", "beta", "phi"], 400, seed=2, more=by_profile), 400)


def test_t_intervals_of_the_huber_objective(worlds):
    world = replace(worlds["power-floor"], inputs={"params": np.geomspace(1e6, 1e8, 30)})
    _check(*_coverage(world, ["a"], 200, seed=3, objective="huber-log"), 200)


@pytest.mark.parametrize(("sizes", "objective"), [(12, "squared"), (30, "huber-log")])
def test_bootstrap_intervals(worlds, sizes, objective):
    world = replace(worlds["power-floor"], inputs={"params": np.geomspace(1e6, 1e8, sizes)})
    options = {"objective": objective, "intervals": "bootstrap", "bootstrap": 100}
    _check(*_coverage(world, ["a"], 200, seed=4, **options), 200)


def test_checkpoints_of_one_run_count_once():
    """12 runs of 5 checkpoints whose losses share an offset: 90% where clusters count, not where rows do.

    The law is one of compute, so that the checkpoints of a run differ in their input.
    """
    runs, each, sims = 12, 5, 200
    compute = (np.geomspace(1e6, 1e8, runs)[:, None] * np.geomspace(1, 2, each)).ravel()
    run = np.repeat(np.arange(runs), each)
    held = []
    for seed in range(sims):
        rng = np.random.default_rng(seed)
        y = 1.8 + 400 * compute**-0.35 + 0.01 * rng.standard_normal(runs)[run]
        y += 0.001 * rng.standard_normal(runs * each)
        fitted = fit("power-floor", {"params": compute}, y, cluster=run)
        rows = fit("power-floor", {"params": compute}, y)
        assert (fitted.clusters, fitted.df) == (12, 9)
        far, mean = {"params": 1e9}, 1.8 + 400 * 1e9**-0.35
        held.append([_holds(one.intervals["a"], 0.35) for one in (fitted, rows)])
        held[-1] += [_holds(one.predict(**far).band, mean) for one in (fitted, rows)]
    exponent, exponent_by_rows, mean, mean_by_rows = np.mean(held, axis=0)
    low, high = _accepted(sims)
    assert low <= min(exponent, mean) <= max(exponent, mean) <= high, (exponent, mean)
    # Negative control: rows taken for runs.
    assert max(exponent_by_rows, mean_by_rows) < low, (exponent_by_rows, mean_by_rows)


@pytest.mark.parametrize("sizes", [6, 8])
def test_huber_with_few_runs_is_no_narrower_than_it_says(sizes):
    """Huber's fit runs through several of few points; intervals rest on the squares of the residuals then."""
    rng = np.random.default_rng(sizes)
    N = np.geomspace(1e6, 1e8, sizes)
    mean, far = 1.8 + 400 * N**-0.35, 1.8 + 400 * 1e9**-0.35
    held = []
    for _ in range(150):
        try:
            fitted = fit(
                "power-floor",
                {"params": N},
                mean * np.exp(0.004 * rng.standard_normal(sizes)),
                objective="huber-log",
            )
        except Refusal:
            continue
        prediction = fitted.predict(params=1e9)
        held.append(
            [
                fitted.intervals["a"][0] < 0.35 < fitted.intervals["a"][1],
                prediction.band[0] < far < prediction.band[1],
            ]
        )
    assert len(held) > 120
    assert np.min(np.mean(held, axis=0)) >= 0.84
