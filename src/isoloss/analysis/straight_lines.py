"""Straight lines through differences: their slopes, their common slope, and where they are zero."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss.distributions import f_tail, t_quantile
from isoloss.stats import LEVEL, Interval, t_interval


@dataclass(frozen=True)
class Scatter:
    """How far single runs lie from the line that is the mean of ``runs`` of them.

    ``lines``: covariance of one run's own height and slope. ``wander``: variance of a place about its run's
    line. ``bend``: variance of the runs' means about the line.
    """

    runs: int
    lines: NDArray[np.float64]
    wander: float
    bend: float


@dataclass(frozen=True)
class Line:
    """y = height + slope (x - middle), with the ``covariance`` of height and slope; df 0: none is known.

    ``own``: the share of its own runs in its slope, less than 1 where lines share one.
    """

    middle: float
    height: float
    slope: float
    covariance: NDArray[np.float64]
    df: int
    scatter: Scatter | None = None
    own: float = 1.0

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        return self.height + self.slope * (np.asarray(x, dtype=np.float64) - self.middle)

    def change(self, *, level: float = LEVEL) -> Interval:
        """The slope."""
        return t_interval(self.slope, sqrt(self.covariance[1, 1]), self.df + 1, self.df, level)

    def off(self, x: float, y: float, runs: int, shared: int, *, level: float = LEVEL) -> Interval:
        """y minus the line at a place that it was not fitted to, with all the noise of both.

        y is the mean of ``runs`` runs, of which the line was fitted to ``shared``. It errs to the wide side:
        the wander of fitted places counts in their spread and in their bend.
        """
        if self.scatter is None:
            return t_interval(y - float(self.at(x)), inf, runs, 0, level)
        of_y, scatter = np.array([1.0, x - self.middle]), self.scatter
        of_line = of_y * (1.0 - 2 * shared / scatter.runs * np.array([1.0, self.own]))
        own = of_y @ scatter.lines @ of_line + scatter.wander
        variance = of_y @ self.covariance @ of_y + own / runs + scatter.bend
        return t_interval(y - float(self.at(x)), sqrt(variance), runs, self.df, level)

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
    spread, df, miss, left, wander, free = np.zeros((2, 2)), 0, 0.0, 0, 0.0, 0
    for x_K, y_SK in groups:
        middle, design_K2, inverse_2K = _design(x_K)
        own_S2 = np.asarray(y_SK, dtype=np.float64) @ inverse_2K.T
        away_S2 = own_S2 - own_S2.mean(axis=0)
        rest_SK = np.asarray(y_SK) - own_S2 @ design_K2.T
        rest_K = rest_SK.mean(axis=0)
        spread, df = spread + away_S2.T @ away_S2, df + len(own_S2) - 1
        miss, left = miss + float(rest_K @ rest_K), left + len(rest_K) - 2
        wander += float(np.sum((rest_SK - rest_K) ** 2))
        free += (len(own_S2) - 1) * (len(rest_K) - 2)
        fits.append((middle, own_S2, inverse_2K))
    spread, miss, wander = spread / max(1, df), miss / max(1, left), wander / max(1, free)
    lines: list[Line] = []
    for middle, own_S2, inverse_2K in fits:
        height, slope = own_S2.mean(axis=0).tolist()
        covariance = spread / len(own_S2) + miss * inverse_2K @ inverse_2K.T
        lines.append(Line(middle, height, slope, covariance, df, Scatter(len(own_S2), spread, wander, miss)))
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
        if f_tail(len(lines) - 1, df, ratio) < 1 - LEVEL:
            return None
    parts = [
        np.array([[line.covariance[0, 0], c := w * line.covariance[0, 1]], [c, 1 / np.sum(1 / variance)]])
        for line, w in zip(lines, share, strict=True)
    ]
    return tuple(
        replace(line, slope=slope, covariance=part, own=float(w))
        for line, part, w in zip(lines, parts, share, strict=True)
    )


def line_through(x_K: ArrayLike, y_K: ArrayLike, variance_K: ArrayLike, df: int) -> Line:
    """A least-squares line through means of known ``variance_K`` and how far they lie from it."""
    middle, design_K2, inverse_2K = _design(x_K)
    height, slope = inverse_2K @ np.asarray(y_K)
    rest_K = np.asarray(y_K) - design_K2 @ (height, slope)
    noise_K = np.asarray(variance_K) + float(rest_K @ rest_K) / max(1, len(rest_K) - 2)
    return Line(middle, float(height), float(slope), (inverse_2K * noise_K) @ inverse_2K.T, df)
