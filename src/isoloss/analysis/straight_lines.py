"""Straight lines through differences: their slopes, their common slope, and where they are zero."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc

from isoloss.stats import LEVEL, Interval, t_interval, t_quantile


@dataclass(frozen=True)
class Line:
    """y = height + slope (x - middle), with the ``covariance`` of height and slope; df 0: none is known."""

    middle: float
    height: float
    slope: float
    covariance: NDArray[np.float64]
    df: int

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        return self.height + self.slope * (np.asarray(x, dtype=np.float64) - self.middle)

    def change(self, *, level: float = LEVEL) -> Interval:
        """The slope."""
        return t_interval(self.slope, sqrt(self.covariance[1, 1]), self.df + 1, self.df, level)

    def zero(self, *, level: float = LEVEL) -> Interval | None:
        """The x at which the line is 0, with every x at which it may be (Fieller 1954).

        None where these have no end, as where the slope is not told from 0.
        """
        if self.df < 1:
            return None
        (height, cross), (_, slope) = t_quantile(level, self.df) ** 2 * self.covariance
        a, b, c = self.slope**2 - slope, self.height * self.slope - cross, self.height**2 - height
        if a <= 0 or (root := b * b - a * c) < 0:
            return None
        low, high = ((-b + sign * sqrt(root)) / a + self.middle for sign in (-1, 1))
        return Interval(self.middle - self.height / self.slope, low, high, self.df + 1, self.df, level)


def fitted_lines(groups: Sequence[tuple[ArrayLike, ArrayLike]]) -> tuple[Line, ...]:
    """Least-squares lines of groups (x_K, y_SK): K places, each read by the same S runs.

    The error of a line is the spread between the runs' own lines, pooled over groups, and how far the means
    lie from the line, pooled too: it counts as noise of every place, also where the truth is bent.
    """
    fits: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
    spread, df, miss, left = np.zeros((2, 2)), 0, 0.0, 0
    for x_K, y_SK in groups:
        middle, design_K2, inverse_2K = _design(x_K)
        own_S2 = np.asarray(y_SK, dtype=np.float64) @ inverse_2K.T
        away_S2 = own_S2 - own_S2.mean(axis=0)
        rest_K = np.asarray(y_SK).mean(axis=0) - design_K2 @ own_S2.mean(axis=0)
        spread, df = spread + away_S2.T @ away_S2, df + len(own_S2) - 1
        miss, left = miss + float(rest_K @ rest_K), left + len(rest_K) - 2
        fits.append((middle, own_S2, inverse_2K))
    lines: list[Line] = []
    for middle, own_S2, inverse_2K in fits:
        height, slope = own_S2.mean(axis=0).tolist()
        covariance = spread / max(1, df) / len(own_S2) + miss / max(1, left) * inverse_2K @ inverse_2K.T
        lines.append(Line(middle, height, slope, covariance, df))
    return tuple(lines)


def _design(x_K: ArrayLike) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """The middle of the places, the matrix of a line through them and its pseudo-inverse."""
    x = np.asarray(x_K, dtype=np.float64)
    design_K2 = np.stack([np.ones_like(x), x - x.mean()], axis=1)
    return float(x.mean()), design_K2, np.linalg.pinv(design_K2)


def one_slope(lines: Sequence[Line]) -> tuple[Line, ...] | None:
    """The lines with the one slope that suits all best; None where their slopes are told apart (F test)."""
    variance = np.array([line.covariance[1, 1] for line in lines])
    slopes = np.array([line.slope for line in lines])
    df = lines[0].df
    if df < 1 or not np.all(variance > 0):
        return None
    share = (1 / variance) / np.sum(1 / variance)
    slope = float(share @ slopes)
    if len(lines) > 1:
        ratio = float(np.sum((slopes - slope) ** 2 / variance)) / (len(lines) - 1)
        if fdtrc(len(lines) - 1, df, ratio) < 1 - LEVEL:
            return None
    parts = [
        np.array([[line.covariance[0, 0], c := w * line.covariance[0, 1]], [c, 1 / np.sum(1 / variance)]])
        for line, w in zip(lines, share, strict=True)
    ]
    return tuple(replace(line, slope=slope, covariance=part) for line, part in zip(lines, parts, strict=True))


def line_through(x_K: ArrayLike, y_K: ArrayLike, variance_K: ArrayLike, df: int) -> Line:
    """A least-squares line through means of known ``variance_K`` and how far they lie from it."""
    middle, design_K2, inverse_2K = _design(x_K)
    height, slope = inverse_2K @ np.asarray(y_K)
    rest_K = np.asarray(y_K) - design_K2 @ (height, slope)
    noise_K = np.asarray(variance_K) + float(rest_K @ rest_K) / max(1, len(rest_K) - 2)
    return Line(middle, float(height), float(slope), (inverse_2K * noise_K) @ inverse_2K.T, df)
