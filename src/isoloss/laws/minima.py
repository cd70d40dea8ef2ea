"""Minima of curves through a few points, by Akima interpolation or by a parabola, and their scatter."""

from collections.abc import Iterable
from enum import Enum

import numpy as np
import scipy

from isoloss.laws.forms import Array

FEWEST = 4
"""Points a curve needs: a parabola through three has nothing left to show that it fits."""
WINDOW = 5


class Method(Enum):
    AKIMA = "akima"
    PARABOLA = "parabola"


METHODS = tuple(method.value for method in Method)


def minima(x: Array, y_nS: Array, method: Method) -> tuple[Array, Array, Array]:
    """Where S curves over x are least, the least value, and whether that is inside: each of shape (S,).

    ``x`` ascends, ``y_nS`` holds a curve's points a column. A curve without a minimum inside gives its lower
    end.
    """
    curve_minima = _akima_minima if method is Method.AKIMA else _parabola_minima
    x_S, low_S, inside_S, ends_2S = curve_minima(x, y_nS)
    end_S = x[[0, -1]][np.argmin(ends_2S, axis=0)]
    return np.where(inside_S, x_S, end_S), np.where(inside_S, low_S, np.min(ends_2S, axis=0)), inside_S


def values(x: Array, y: Array, method: Method, new_x: Array) -> Array:
    """The curve through the points, at ``new_x``; nan outside x or where it has too few points."""
    inside = (new_x >= x[0] - 1e-9) & (new_x <= x[-1] + 1e-9)
    if len(x) < FEWEST:
        return np.full(new_x.shape, np.nan)
    if method is Method.AKIMA:
        drawn = scipy.interpolate.Akima1DInterpolator(x, y)(np.clip(new_x, x[0], x[-1]))
    else:
        drawn = np.polynomial.Polynomial.fit(x, y, 2)(new_x)
    return np.where(inside, drawn, np.nan)


def opens_down(x: Array, y: Array) -> bool:
    """Whether the least-squares parabola through the points has no minimum."""
    return bool(_parabola(x, y[:, None])[2][0] <= 0)


def scatter(curves: Iterable[tuple[Array, Array]]) -> tuple[float, int]:
    """Noise of a point about its curve and how many contrasts it rests on.

    The root mean square, unless single points lie so far off that the median of the contrasts, of which half
    exceed 0.674 standard deviations, is less than a quarter of it. Each run of 5 neighbours
    that holds the lowest point is fitted by a cubic (of 4, by a parabola): what is left over is one contrast
    of unit length, which has the noise's standard deviation. Bends that a cubic does not follow count as
    noise, so this errs on the high side.
    """
    contrasts = []
    for x, y in curves:
        size = min(WINDOW, len(x))
        if size < FEWEST:
            continue
        lowest = int(np.argmin(y))
        for first in range(max(0, lowest - size + 1), min(lowest, len(x) - size) + 1):
            window = slice(first, first + size)
            u = (x[window] - x[first]) / (x[window][-1] - x[first])
            rest = np.linalg.qr(np.vander(u, size - 1), mode="complete")[0][:, -1]
            contrasts.append(rest @ y[window])
    if not contrasts:
        return 0.0, 0
    mean, median = np.sqrt(np.mean(np.square(contrasts))), np.median(np.abs(contrasts)) / 0.6745
    return float(median if 0 < median < mean / 4 else mean), len(contrasts)


def off_curve(x: Array, y: Array, noise: float) -> int | None:
    """The point that lies far above or below the curve of the others, if there is just one.

    Each point is left out in turn: without it a parabola must fit the others far better than without any
    other one, and must miss it by 30 times the ``noise`` and by what it misses the others by.
    """
    if len(x) < FEWEST + 2:
        return None
    left, miss = np.empty(len(x)), np.empty(len(x))
    for out in range(len(x)):
        kept = np.arange(len(x)) != out
        parabola = np.polynomial.Polynomial.fit(x[kept], y[kept], 2)
        left[out] = np.sqrt(np.mean((parabola(x[kept]) - y[kept]) ** 2))
        miss[out] = abs(parabola(x[out]) - y[out])
    worst, second = np.argsort(left)[:2]
    alone = 5 * left[worst] < left[second] and miss[worst] > max(30 * noise, 10 * left[worst])
    return int(worst) if alone else None


def _akima_minima(x: Array, y_nS: Array) -> tuple[Array, Array, Array, Array]:
    # Each (n - 1, S), one cubic an interval.
    cubic, square, slope, value = scipy.interpolate.Akima1DInterpolator(x, y_nS).c
    root = np.sqrt(np.maximum(square**2 - 3 * cubic * slope, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # The derivative's root of positive curvature, in whichever form does not cancel.
        step = np.where(square > 0, -slope / (square + root), (root - square) / (3 * cubic))
    step = np.clip(np.nan_to_num(step), 0.0, np.diff(x)[:, None])
    low_mS = ((cubic * step + square) * step + slope) * step + value
    best = np.argmin(low_mS, axis=0)
    each = np.arange(y_nS.shape[1])
    x_S, low_S = x[best] + step[best, each], low_mS[best, each]
    ends_2S, rounding = y_nS[[0, -1]], 1e-9 * (x[-1] - x[0])
    inside_S = (x_S > x[0] + rounding) & (x_S < x[-1] - rounding) & np.all(low_S < ends_2S, axis=0)
    return x_S, low_S, inside_S, ends_2S


def _parabola_minima(x: Array, y_nS: Array) -> tuple[Array, Array, Array, Array]:
    level, slope, square = _parabola(x, y_nS)
    vertex = -slope / (2 * np.where(square > 0, square, np.nan))
    inside = np.abs(vertex) < 1
    ends_2S = np.stack([level - slope + square, level + slope + square])
    x_S = (x[0] + x[-1]) / 2 + vertex * (x[-1] - x[0]) / 2
    return x_S, level + slope * vertex / 2, inside, ends_2S


def _parabola(x: Array, y_nS: Array) -> Array:
    """Level, slope and square of the least-squares parabola over x scaled to -1..1."""
    u = (2 * x - x[0] - x[-1]) / (x[-1] - x[0])
    return np.linalg.lstsq(np.vander(u, 3, increasing=True), y_nS, rcond=None)[0]
