"""Forecasts from one size alone: how its two laws share, and that intervals hold."""

import numpy as np
import pytest

from isoloss.plans.forecast import forecast

SEEDS, RUNS, NEW = 10, 15, 10
BAND = (0.86, 0.98)
AT = 5e9


def losses(kind, N, rng, noise):
    falling = (N / 1e8) ** -rng.uniform(0.15, 0.5)
    curves = {"floor": rng.uniform(0.8, 2.2) + falling, "power": 2.5 * falling**0.3}
    return curves[kind] * np.exp(noise * rng.standard_normal(len(N)))


def asked(kind, noise, seed=0, runs=RUNS, at=AT):
    rng = np.random.default_rng(seed)
    N = 10 ** rng.uniform(7, 9.3, runs)
    every = losses(kind, np.concatenate([N, np.atleast_1d(at)]), rng, noise)
    return forecast({"params": N}, every[:runs], {"params": at}), every[runs:]


def test_a_floor_that_the_runs_show_leaves_the_law_without_one_no_share():
    prediction, truth = asked("floor", 0.002, at=1e11)
    shares = {name: law.share for name, law in prediction.laws.items()}
    assert shares["power-floor"] > 0.95
    assert sum(shares.values()) == pytest.approx(1.0)
    assert prediction.loss[0] == pytest.approx(truth[0], rel=0.02)
    equal = np.mean([law.loss[0] for law in prediction.laws.values()])
    assert abs(np.log(equal / truth[0])) > 0.05, "what the law without a floor would cost"
    assert not any("disagree" in warning for warning in prediction.warnings)


def test_a_floor_that_few_runs_leave_open_keeps_both_laws():
    prediction, _ = asked("power", 0.02, runs=10)
    assert all(0.1 < law.share < 0.9 for law in prediction.laws.values())


@pytest.mark.parametrize("factor", [0.9, 1.05, 1.15])
@pytest.mark.parametrize("runs", [12, 20])
def test_a_row_far_off_does_not_turn_the_shares(runs, factor):
    N = np.geomspace(1e7, 1e9, runs)
    loss = (1.8 + 480 * N**-0.35) * np.exp(0.001 * np.random.default_rng(3).standard_normal(runs))
    loss[5] *= factor
    prediction = forecast({"params": N}, loss, {"params": 1e10})
    assert prediction.laws["power-floor"].share > 0.9
    assert prediction.loss[0] == pytest.approx(1.8 + 480 * 1e10**-0.35, rel=0.01)


def test_laws_of_several_sizes_share_alike():
    rng = np.random.default_rng(0)
    N, D = 10 ** rng.uniform(7, 9, 30), 10 ** rng.uniform(9, 11, 30)
    loss = 1.8 + 480 * N**-0.35 + 2100 * D**-0.37
    prediction = forecast({"params": N, "tokens": D}, loss, {"params": AT, "tokens": 1e11})
    assert {law.share for law in prediction.laws.values()} == {0.25}


def test_order_and_factors_change_no_share():
    rng = np.random.default_rng(1)
    N = 10 ** rng.uniform(7, 9, 20)
    loss, order = losses("floor", N, rng, 0.02), rng.permutation(20)
    plain = forecast({"params": N}, loss, {"params": AT})
    for other in (
        forecast({"params": N[order]}, loss[order], {"params": AT}),
        forecast({"params": 1e3 * N}, 3 * loss, {"params": 1e3 * AT}),
    ):
        for name, law in plain.laws.items():
            assert other.laws[name].share == pytest.approx(law.share, rel=1e-6)


@pytest.fixture(scope="module")
def misses():
    """Log errors of new runs as parts of the interval's half-width, by kind of truth."""
    out = {}
    for kind in ("floor", "power"):
        each = []
        for seed, noise in ((seed, noise) for seed in range(SEEDS) for noise in (0.01, 0.05)):
            at = 10 ** np.random.default_rng(100 + seed).uniform(9.3, 10.3, NEW)
            prediction, truth = asked(kind, noise, seed, at=at)
            low, high = np.log(prediction.interval).T
            each.append(np.abs(np.log(truth / prediction.loss)) / ((high - low) / 2))
        out[kind] = np.concatenate(each)
    return out


def test_intervals_hold_as_often_as_they_say_and_narrower_ones_do_not(misses):
    pooled = np.concatenate(list(misses.values()))
    assert BAND[0] < np.mean(pooled < 1.0) < BAND[1]
    assert not BAND[0] < np.mean(pooled < 0.7) < BAND[1]


@pytest.mark.parametrize("kind", ["floor", "power"])
def test_no_kind_of_truth_is_held_seldom(misses, kind):
    assert np.mean(misses[kind] < 1.0) > 0.8
    assert np.mean(misses[kind] < 0.5) < 0.8  # negative control
