"""Crossings of two laws: found, covered at the nominal rate, open where the data leave them open."""

import numpy as np
import pytest

from isoloss.errors import InputError
from isoloss.laws import CrossingOutcome, crossing, fit

SIZES = np.geomspace(1e4, 1e6, 6)
CROSS = 3e5  # of the two laws below


def _steep(N):
    return 4.0 * (N / CROSS) ** -0.09


def _flat(N):
    return 4.0 * (N / CROSS) ** -0.05


def _pair(rng, sigma=0.01, sizes=SIZES):
    return [
        fit(
            "power",
            {"params": sizes},
            law(sizes) * np.exp(sigma * rng.standard_normal(len(sizes))),
            objective="squared-log",
        )
        for law in (_steep, _flat)
    ]


def _ahead(fits, crossover):
    """Which of the two laws has the lower loss at the low and at the high end of the range searched."""
    losses = np.array([fit.predict(params=np.array(crossover.range)).loss for fit in fits])
    return losses.argmin(axis=0).tolist()


def test_a_known_crossing_is_found():
    fits = _pair(np.random.default_rng(0), sigma=1e-9)
    crossover = crossing(*fits)
    assert crossover.value == pytest.approx(CROSS, rel=1e-5)
    assert crossover.outcome is CrossingOutcome.CROSSES_INSIDE
    assert crossover.inside
    assert _ahead(fits, crossover) == [1, 0]
    assert crossover.interval[0] <= crossover.value <= crossover.interval[1]


def test_swapping_the_laws_changes_nothing():
    steep, flat = _pair(np.random.default_rng(1))
    crossover, swapped = crossing(steep, flat), crossing(flat, steep)
    assert swapped.value == pytest.approx(crossover.value)
    assert swapped.interval == pytest.approx(crossover.interval)
    assert swapped.outcome is crossover.outcome


def test_the_interval_covers_at_its_level():
    """400 simulations at nominal 90%: accept 84.8-94.5%; 30% narrower must fail."""
    rng = np.random.default_rng(2)
    held = np.zeros(2)
    for _ in range(400):
        low, high = crossing(*_pair(rng)).interval
        low, high = np.log(low or 1e-300), np.log(high or 1e300)
        middle, half = (low + high) / 2, (high - low) / 2
        held += [low <= np.log(CROSS) <= high, abs(np.log(CROSS) - middle) <= 0.7 * half]
    covered, narrowed = held / 400
    assert 0.848 <= covered <= 0.945
    assert narrowed < 0.848


def test_outside_the_data_the_interval_stays_open():
    small = np.geomspace(1e3, 3e4, 5)
    crossover = crossing(*_pair(np.random.default_rng(6), sigma=0.02, sizes=small))
    assert crossover.interval[1] is None
    assert not crossover.inside


def test_a_crossing_beyond_the_data_is_not_inside():
    small = np.geomspace(1e3, 1e5, 6)
    crossover = crossing(*_pair(np.random.default_rng(3), sigma=1e-4, sizes=small))
    assert crossover.outcome is CrossingOutcome.CROSSES_OUTSIDE
    assert crossover.value == pytest.approx(CROSS, rel=0.05)


def test_no_crossing_in_the_range_gives_no_number():
    fits = _pair(np.random.default_rng(4), sigma=1e-3)
    crossover = crossing(*fits, range=(1e4, 1e5))
    assert crossover.outcome is CrossingOutcome.NO_CROSSING
    assert crossover.value is None
    assert crossover.interval is None
    assert _ahead(fits, crossover) == [1, 1]


def test_two_crossings_are_counted():
    rng = np.random.default_rng(5)
    N = np.geomspace(1e4, 1e8, 12)
    straight = fit("power", {"params": N}, 5 * (N / 1e4) ** -0.08 + 1e-5 * rng.standard_normal(12))
    bent = fit("power-floor", {"params": N}, 2.2 + 3.0 * (N / 1e4) ** -0.25 + 1e-5 * rng.standard_normal(12))
    assert crossing(straight, bent).crossings == 2


def test_other_laws_and_ranges_are_input_errors():
    steep, flat = _pair(np.random.default_rng(0))
    T = np.arange(1.0, 33.0)
    context = fit("context", {"position": T}, 3 + 4 * T**-0.5 + 0.001 * np.cos(T))
    with pytest.raises(InputError, match="position"):
        crossing(steep, context)
    with pytest.raises(InputError, match="range"):
        crossing(steep, flat, range=(1e6, 1e5))
