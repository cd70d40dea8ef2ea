"""Accuracies and their differences: known values, and coverage by simulation with a control."""

import numpy as np
import pytest

from isoloss.stats import share
from isoloss.teach.shares import gap


@pytest.mark.parametrize(
    ("hits", "low", "high"), [(76, 0.030, 0.047), (1000, 0.478, 0.522), (1980, 0.985, 0.994)]
)
def test_wilson_at_two_thousand(hits, low, high):
    interval = share(hits, 2000).interval
    assert interval == pytest.approx((low, high), abs=5e-4)


def test_all_right_is_not_certain():
    low, high = share(2000, 2000).interval
    assert high == 1.0
    assert 0.997 < low < 1.0


def test_a_gap_flips_with_its_sides_and_needs_seeds():
    a, b = [share(1990, 2000), share(1985, 2000)], [share(400, 2000), share(420, 2000)]
    one, other = gap(a, b), gap(b, a)
    assert one.decided
    assert one.value == -other.value
    assert (one.low, one.high) == (-other.high, -other.low)
    assert gap(a[:1], b) is None


def test_the_same_numbers_are_no_difference():
    a = [share(1990, 2000), share(1000, 2000), share(500, 2000)]
    assert not gap(a, a).decided


def covered(spread: float, shrink: float = 1.0, trials: int = 2000) -> float:
    """How often the interval of two equal sides holds 0; seeds differ by ``spread``, each scored on 500."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(trials):
        p = np.clip(0.8 + spread * rng.standard_normal(6), 0, 1)
        sides = [share(int(rng.binomial(500, q)), 500) for q in p]
        difference = gap(sides[:3], sides[3:])
        half = shrink * (difference.high - difference.low) / 2
        held += abs(difference.value) <= half
    return held / trials


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_the_interval_covers_at_least_its_level(spread):
    assert covered(spread) >= 0.94


def test_control_a_narrower_interval_does_not():
    assert covered(0.05, shrink=0.4) < 0.9
