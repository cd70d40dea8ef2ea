"""Of two predictors of the same runs the better one is named; chance names none, large misses hide none."""

from collections.abc import Callable

import numpy as np
import pytest

from isoloss.plans.standing import Standing, stand, times_interval
from isoloss.stats import mean

RUNS = 20
ALONE = np.arange(RUNS)

Draw = Callable[[np.random.Generator], np.ndarray]

EQUAL: dict[str, Draw] = {
    "normal": lambda rng: rng.standard_normal((2, RUNS)),
    "heavy tails": lambda rng: rng.standard_t(2, (2, RUNS)),
    "some runs harder": lambda rng: np.exp(1.5 * rng.standard_normal(RUNS)) * rng.standard_normal((2, RUNS)),
    "most of it shared": lambda rng: rng.standard_normal(RUNS) + 0.5 * rng.standard_normal((2, RUNS)),
    "one large miss each": lambda rng: with_a_miss(rng.standard_normal((2, RUNS)), rng),
}
"""Errors of two predictors, neither better, in two rows."""


def with_a_miss(error_2h: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    error_2h[[0, 1], rng.integers(0, RUNS, 2)] *= 20
    return error_2h


def ahead(kind: str, times: float, level: float = 0.9, draws: int = 500) -> tuple[float, float]:
    """How often one is called ahead of a rival with ``times`` its errors: here, and by a t of the errors."""
    rng, named, by_errors = np.random.default_rng(0), 0, 0
    for _ in range(draws):
        ours_h, other_h = np.abs(EQUAL[kind](rng))
        other_h = times * other_h
        named += stand(other_h, ours_h, ALONE, level)[1] is Standing.AHEAD
        by_errors += mean(other_h - ours_h, level=level).low > 0
    return named / draws, by_errors / draws


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_predictors_are_seldom_told_apart(kind):
    assert ahead(kind, 1)[0] <= 0.05 + 3 * (0.05 * 0.95 / 500) ** 0.5


def test_a_lower_level_tells_equal_predictors_apart_more_often():
    """Negative control of the limit above."""
    assert ahead("normal", 1, level=0.7)[0] > 0.08


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("normal", 0.7),
        ("heavy tails", 0.5),
        ("some runs harder", 0.55),
        ("most of it shared", 0.9),
        ("one large miss each", 0.4),
    ],
)
def test_twice_the_error_is_told_and_large_misses_do_not_hide_it(kind, least):
    named, by_errors = ahead(kind, 2, draws=300)
    assert named >= least
    if kind not in ("normal", "most of it shared"):  # heavy tails
        assert named > by_errors


OURS = 0.01 * np.array([0.22, 0.54, 0.01, 0.27, 0.46, 0.24, 0.18, 0.53])
OTHER = 0.01 * np.array([0.41, 1.89, 1.57, 7.65, 19.3, 0.87, 2.49, 0.13])


def test_a_rival_is_not_saved_by_its_largest_misses():
    """Eight hidden runs, missed by 0.31 and 4.3% on average; a t interval of the errors holds 0."""
    eight = np.arange(8)
    times, standing = stand(OTHER, OURS, eight, 0.9)
    assert standing is Standing.AHEAD
    assert 1 < times[0] < np.exp(np.mean(np.log(OTHER / OURS))) < times[1]
    assert mean(OTHER - OURS, level=0.9).low < 0
    assert stand(OURS, OTHER, eight, 0.9)[1] is Standing.BEHIND
    assert stand(OURS, OTHER, eight, 0.9, among=10**4)[1] is Standing.NOT_TOLD_APART
    assert stand(OURS, OURS, eight, 0.9)[1] is Standing.NOT_TOLD_APART
    assert stand(OTHER[:2], OURS[:2], eight[:2], 0.9) == (None, Standing.TOO_FEW)


def test_a_run_hit_by_chance_decides_nothing():
    """Seven of eight runs at half the error; the rival hits the other to nine digits, or exactly."""
    ours = np.linspace(0.01, 0.02, 8)
    for hit in (1e-11, 0.0):
        other = 2 * ours
        other[3] = hit
        assert stand(other, ours, np.arange(8), 0.9)[1] is Standing.AHEAD
    lucky = np.log(np.maximum(other, 1e-11) / ours)
    assert mean(lucky, level=0.9).low < 0  # negative control: without the floor


def test_errors_of_nought_are_no_error_and_no_advantage_over_each_other():
    nought, some = np.zeros(5), np.full(5, 0.01)
    assert stand(some, nought, np.arange(5), 0.9)[1] is Standing.AHEAD
    assert stand(nought, nought, np.arange(5), 0.9)[1] is Standing.NOT_TOLD_APART
    assert np.isfinite(times_interval(np.array([0.0, 1e9, 1.0]), np.array([1e9, 0.0, 1.0]), 1 - 1e-9)).all()


def test_the_mean_error_must_agree():
    """All but one of twenty runs at a third of the error, that one missed by far: not better on average."""
    other = np.linspace(0.02, 0.04, RUNS)
    ours = other / 3
    assert stand(other, ours, ALONE, 0.9)[1] is Standing.AHEAD
    ours[0] = 1.0
    times, standing = stand(other, ours, ALONE, 0.9)
    assert times[0] > 1
    assert standing is Standing.NOT_TOLD_APART


def test_runs_of_one_point_count_once():
    twice, point = np.repeat([OTHER[:2], OURS[:2]], 4, axis=1), np.repeat(np.arange(2), 4)
    assert stand(*twice, point, 0.9) == (None, Standing.TOO_FEW)


@pytest.mark.parametrize("among", [1, 7])
def test_the_best_of_several_equal_baselines_seldom_beats_the_law(among):
    """Negative control: taken for the only one it is called better three times as often as it may be."""
    rng, behind, draws = np.random.default_rng(0), 0, 500
    for _ in range(draws):
        law_h, *rivals = np.abs(rng.standard_normal((8, RUNS)))
        behind += stand(min(rivals, key=np.mean), law_h, ALONE, 0.9, among)[1] is Standing.BEHIND
    assert (behind / draws <= 0.05) == (among == 7)
