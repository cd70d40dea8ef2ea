"""Tails and quantiles of the normal, Student's t, F and binomial distributions.

``scipy.special`` has them too, but importing it costs as much as a fit: it imports every part of NumPy.
Held against it in ``tests/test_distributions.py``.
"""

from functools import lru_cache
from math import erfc, exp, lgamma, log, log1p, nan, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MANY = 1e4  # degrees of freedom from which three terms about the normal quantile are exact to rounding
_ROUNDING = 1e-15
_SMALLEST = 1e-300  # stands for a 0 that would be divided by


def normal_cdf(x: ArrayLike) -> NDArray[np.float64]:
    """P(Z <= x) of a standard normal Z, for each x."""
    x = np.asarray(x, dtype=float)
    twice = map(erfc, (x.ravel() / -sqrt(2)).tolist())
    return np.fromiter(twice, float, x.size).reshape(x.shape) / 2


def normal_quantile(level: float) -> float:
    """The z with P(-z <= Z <= z) = ``level``: half-width of a two-sided interval in standard errors."""
    return -NormalDist().inv_cdf((1 - level) / 2) if level > 0.5 else NormalDist().inv_cdf(0.5 + level / 2)


@lru_cache(maxsize=1000)  # a fit asks for the same one several times, and so does every refit
def t_quantile(level: float, df: float) -> float:
    """The t with P(-t <= T <= t) = ``level``: half-width of a two-sided t interval in standard errors.

    At least one degree of freedom; NaN for NaN. By Newton's method from the normal quantile, which lies
    below: the density falls, so no step passes the root. With many degrees of freedom by Abramowitz and
    Stegun, 26.7.5.
    """
    z = normal_quantile(level)
    if not df > 0:
        return nan
    if df > _MANY:
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / df + second / df**2 + third / df**3
    t, step = z, z
    while step > _ROUNDING * t:
        density = 2 * exp(-_log_beta(df / 2, 0.5) - (df + 1) / 2 * log1p(t * t / df)) / sqrt(df)
        if level < 0.5:  # of the two chances the smaller is the exact one
            missing = level - beta_cdf(t * t / (df + t * t), 0.5, df / 2)
        else:
            missing = f_tail(1, df, t * t) - (1 - level)
        step = missing / density
        t += step
    return t


def f_tail(df_above: float, df_below: float, ratio: float) -> float:
    """P(F > ``ratio``), F with degrees of freedom above and below its line."""
    return beta_cdf(df_below / (df_below + df_above * ratio), df_below / 2, df_above / 2)


def binomial_cdf(hits: int, n: int, chance: float) -> float:
    """P(at most ``hits`` of ``n``), each with ``chance``."""
    return 1.0 if hits >= n else beta_cdf(1 - chance, n - hits, hits + 1)


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X <= x) of a beta distribution: the regularised incomplete beta function I_x(a, b)."""
    if not 0 < x < 1:
        return min(max(x, 0.0), 1.0)
    density = exp(a * log(x) + b * log1p(-x) - _log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return density / a / _fraction(x, a, b)
    return 1 - density / b / _fraction(1 - x, b, a)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)) of Abramowitz and Stegun, 26.5.8, by Lentz's method."""
    value = above = 1.0
    below, m, change = 0.0, 0, 0.0
    while abs(change - 1) > _ROUNDING:
        m += 1
        k = m // 2
        if m % 2:
            d = -(a + k) * (a + b + k) * x / ((a + m - 1) * (a + m))
        else:
            d = k * (b - k) * x / ((a + m - 1) * (a + m))
        below = 1 / (1 + d * below or _SMALLEST)
        above = 1 + d / above or _SMALLEST
        change = above * below
        value *= change
    return value
