"""Runs of equal inputs: the noise of a seed, the law's own error, and what intervals count then."""

import numpy as np
import pytest
from scipy.stats import f as f_test

from isoloss.laws import fit

SIZES = np.geomspace(1e6, 1e8, 9)
TRUTH = 1.8 + 400 * SIZES**-0.35


def _seeded(rng, seeds=3, noise=0.01, form_error=0.0):
    losses = TRUTH + form_error * rng.standard_normal(9)
    return {"params": np.tile(SIZES, seeds)}, np.tile(losses, seeds) + noise * rng.standard_normal(9 * seeds)


def test_the_lack_of_fit_test_is_the_textbook_one():
    x, y = _seeded(np.random.default_rng(0))
    fitted = fit("power-floor", x, y)
    by_size = y.reshape(3, 9)
    pure = np.sum((by_size - by_size.mean(axis=0)) ** 2)
    whole = np.sum(np.square(fitted.residuals))
    assert fitted.seeds.df == 18
    assert fitted.seeds.designs == 9
    assert fitted.seeds.sd == pytest.approx(np.sqrt(pure / 18), rel=1e-9)
    statistic = ((whole - pure) / (9 - 3)) / (pure / 18)
    assert fitted.seeds.p == pytest.approx(f_test.sf(statistic, 6, 18), rel=1e-6)


def test_a_true_law_is_suspected_as_often_as_the_test_says():
    """p below 0.05 in 5% of 200, between 0.5 and 11%; and nearly always where the law errs."""
    true, wrong = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        true.append(fit("power-floor", *_seeded(rng)).seeds.p)
        if seed < 40:
            wrong.append(fit("power-floor", *_seeded(rng, form_error=0.05), curve_only=True).seeds.p)
    assert 0.005 <= np.mean(np.array(true) < 0.05) <= 0.11
    assert np.mean(np.array(wrong) < 0.05) > 0.95


def test_intervals_that_count_designs_hold_where_the_law_errs():
    """The law's own error, shared by the seeds of a size: 90% of 200 by designs, not by rows."""
    held, by_rows = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, y = _seeded(rng, seeds=4, noise=0.002, form_error=0.01)
        fitted = fit("power-floor", x, y)
        assert fitted.clusters == 9
        low, high = fitted.intervals["a"]
        held.append(low <= 0.35 <= high)
        # Negative control: t intervals of rows, from the same numbers.
        error = fitted.standard_errors["a"] / fitted.params["a"] * np.sqrt(6 / 33)
        by_rows.append(abs(np.log(fitted.params["a"] / 0.35)) <= 1.69 * error)
    assert 0.825 <= np.mean(held) <= 0.96
    assert np.mean(by_rows) < 0.825


def test_a_new_run_holds_the_laws_own_error():
    """A new size is off by the law's error and a seed's: 90% of 200, and seeds alone are too narrow."""
    held, narrow = [], []
    for seed in range(200):
        rng = np.random.default_rng(1000 + seed)
        fitted = fit("power-floor", *_seeded(rng, noise=0.003, form_error=0.01))
        new = 1.8 + 400 * 2e7**-0.35 + 0.01 * rng.standard_normal() + 0.003 * rng.standard_normal()
        prediction = fitted.predict(params=2e7)
        held.append(prediction.interval[0] <= new <= prediction.interval[1])
        narrow.append(abs(new - prediction.loss) <= 1.73 * fitted.seeds.sd)
    assert 0.825 <= np.mean(held) <= 0.96
    assert np.mean(narrow) < 0.7


def test_without_repeats_nothing_is_claimed():
    y = TRUTH + 0.01 * np.random.default_rng(0).standard_normal(9)
    assert fit("power-floor", {"params": SIZES}, y).seeds is None
    # The same rows again are no seeds: a row repeated exactly is one run.
    twice = fit("power-floor", {"params": np.tile(SIZES, 2)}, np.tile(y, 2))
    assert twice.seeds is None
    assert twice.df == 6
