"""How good a set of predictions is: errors, coverage, and paired differences, counted by point."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from isoloss.errors import Refusal
from isoloss.laws import pooled_noise, t_quantile


@dataclass(frozen=True)
class Score:
    """Errors of one predictor over the hidden runs: relative, of absolute size and signed; RMSE in nats."""

    name: str
    mean_abs_error: float
    bias: float
    rmse: float
    predicted: tuple[float, ...]


@dataclass(frozen=True)
class Coverage:
    """Share of hidden points inside their interval, with a Wilson interval for that share.

    The Wilson interval counts points as independent. They share one law, so their misses come together and
    the true doubt about the share is larger.
    """

    share: float
    interval: tuple[float, float]
    points: int


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
    share_p = by_point(inside_h.astype(np.float64), points_h)
    return Coverage(float(share_p.mean()), wilson(float(share_p.mean()), len(share_p), level), len(share_p))


def wilson(share: float, count: int, level: float) -> tuple[float, float]:
    """Wilson's score interval for a share of ``count`` trials (Wilson 1927, JASA 22, 209)."""
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    reach = np.sqrt(z2 * (share * (1 - share) / count + z2 / (4 * count**2))) / (1 + z2 / count)
    return max(0.0, float(middle - reach)), min(1.0, float(middle + reach))


def paired_interval(difference_g: np.ndarray, level: float) -> tuple[float, float] | None:
    """t interval of the mean difference over groups; None below three groups."""
    if len(difference_g) < 3:
        return None
    reach = (
        t_quantile(level, len(difference_g) - 1) * np.std(difference_g, ddof=1) / np.sqrt(len(difference_g))
    )
    return float(difference_g.mean() - reach), float(difference_g.mean() + reach)


def by_point(values_h: np.ndarray, points_h: np.ndarray) -> np.ndarray:
    """Means over the rows of each point."""
    _, place_h = np.unique(points_h, return_inverse=True)
    return np.bincount(place_h, values_h) / np.bincount(place_h)


def seed_noise(y_n: np.ndarray, points_n: np.ndarray) -> float | None:
    try:
        return pooled_noise([y_n[points_n == point] for point in np.unique(points_n)]).sd
    except Refusal:
        return None
