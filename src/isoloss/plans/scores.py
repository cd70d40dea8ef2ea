"""How good a set of predictions is: errors and coverage, counted by point."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import Refusal
from isoloss.laws import input_word
from isoloss.stats import seed_noise, share


@dataclass(frozen=True)
class Score:
    """Errors of one predictor over the hidden runs: relative, of absolute size and signed; RMSE in nats."""

    name: str
    mean_abs_error: float
    bias: float
    rmse: float
    predicted: tuple[float, ...]

    @property
    def words(self) -> str:
        """What a sentence calls it: 'power law in N' for that in params."""
        start, _, name = self.name.partition("power law in ")
        return self.name if start or name in ("", "all inputs") else f"power law in {input_word(name)}"


@dataclass(frozen=True)
class Coverage:
    """Share of hidden points inside their interval, with a Wilson interval for that share.

    The Wilson interval counts points as independent. They share one law, so their misses come together and
    the true doubt about the share is larger.
    """

    share: float
    interval: tuple[float, float]
    points: int


@dataclass(frozen=True)
class IntervalScore:
    """How well intervals held: ``coverage``; ``half_width``, the mean of the half-width over the loss.

    ``winkler``: mean of width + 2 / (1 - level) times what was missed, of log losses; the least is the best
    (Winkler 1972, JASA 67, 187; proper by Gneiting and Raftery 2007).
    """

    coverage: Coverage
    half_width: float
    winkler: float


def interval_score(
    ends_2h: np.ndarray, observed_h: np.ndarray, points_h: np.ndarray, level: float
) -> IntervalScore:
    """Of intervals from ``ends_2h[0]`` to ``ends_2h[1]``."""
    (low_h, high_h), log_h = np.log(ends_2h), np.log(observed_h)
    return IntervalScore(
        coverage_of((low_h <= log_h) & (log_h <= high_h), points_h, level),
        float(np.mean(np.expm1((high_h - low_h) / 2))),
        float(np.mean(winkler_of(ends_2h, observed_h, level))),
    )


def winkler_of(ends_2h: np.ndarray, observed_h: np.ndarray, level: float) -> np.ndarray:
    """Of each run: the width of its interval and 2 / (1 - level) times what was missed, of log losses."""
    (low_h, high_h), log_h = np.log(ends_2h), np.log(observed_h)
    missed_h = np.maximum(low_h - log_h, 0.0) + np.maximum(log_h - high_h, 0.0)
    return high_h - low_h + 2 / (1 - level) * missed_h


def score_of(name: str, predicted_h: ArrayLike, observed_h: np.ndarray) -> Score:
    predicted_h = np.asarray(predicted_h, dtype=np.float64)
    relative_h = predicted_h / observed_h - 1
    return Score(
        name,
        float(np.mean(np.abs(relative_h))),
        float(np.mean(relative_h)),
        float(np.sqrt(np.mean((predicted_h - observed_h) ** 2))),
        tuple(predicted_h.tolist()),
    )


def coverage_of(inside_h: np.ndarray, points_h: np.ndarray, level: float) -> Coverage:
    inside_p = by_point(inside_h.astype(np.float64), points_h)
    held = share(float(inside_p.sum()), len(inside_p), level=level)
    return Coverage(held.value, (held.low, held.high), held.n)


def by_point(values_h: np.ndarray, points_h: np.ndarray) -> np.ndarray:
    """Means over the rows of each point."""
    _, index_h = np.unique(points_h, return_inverse=True)
    return np.bincount(index_h, values_h) / np.bincount(index_h)


def seed_sd(y_n: np.ndarray, points_n: np.ndarray) -> float | None:
    """Standard deviation of runs about the mean of their point; None where no point has two."""
    noise = seed_noise(y_n[points_n == point] for point in np.unique(points_n))
    return None if isinstance(noise, Refusal) else noise.sd
