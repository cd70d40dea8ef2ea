"""Intervals hold the truth as often as they say, and intervals 30% narrower are caught.

Acceptance at nominal 90%: 86.8-93.0% of 1,000 data sets, 84.8-94.5% of 400 (false alarm 0.1%).
"""

from functools import cache

import numpy as np
import pytest

from isoloss.laws import fit

A_THOUSAND = (0.868, 0.930)
FOUR_HUNDRED = (0.848, 0.945)
FAR = 1e9  # ten times the largest model


def _holds(interval, truth, factor=1.0):
    """Whether the interval, narrowed by ``factor`` on its log scale, holds the truth."""
    low, high = np.log(interval)
    return abs(np.log(truth) - (low + high) / 2) <= factor * (high - low) / 2


@cache
def _coverage(sizes, sims, objective="squared"):
    """Shares that hold: exponent, mean and new run at ten times the largest N; exponent, mean narrowed."""
    rng = np.random.default_rng(sizes)
    N = np.geomspace(1e6, 1e8, sizes)
    law, far = 1.8 + 400 * N**-0.35, 1.8 + 400 * FAR**-0.35
    noise = (lambda mean, shape: mean + 0.01 * rng.standard_normal(shape)) if objective == "squared" else None
    noise = noise or (lambda mean, shape: mean * np.exp(0.005 * rng.standard_normal(shape)))
    held = np.zeros(5)
    for _ in range(sims):
        found = fit("power-floor", {"params": N}, noise(law, sizes), objective=objective)
        exponent, at = found.intervals["a"], found.predict(params=FAR)
        held += [
            _holds(exponent, 0.35),
            _holds(at.band, far),
            _holds(at.interval, noise(far, None)),
            _holds(exponent, 0.35, 0.7),
            _holds(at.band, far, 0.7),
        ]
    return held / sims


@pytest.mark.parametrize("sizes", [7, 12])
def test_least_squares_covers(sizes):
    low, high = A_THOUSAND
    exponent, mean, new, *narrowed = _coverage(sizes, 1000)
    assert low <= exponent <= high
    assert low <= mean <= high
    assert low <= new <= high
    # Negative control: intervals 30% narrower must fail.
    assert max(narrowed) < low


def test_huber_covers():
    low, high = FOUR_HUNDRED
    exponent, mean, new, *narrowed = _coverage(30, 400, "huber-log")
    assert low <= exponent <= high
    assert low <= mean <= high
    assert low <= new <= high
    assert max(narrowed) < low
