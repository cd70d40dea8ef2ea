"""Means, differences and shares with their intervals: made here, and nowhere else.

The seeds of one size are few, so their standard deviation is pooled over sizes where it can be, assuming that
sizes (and both families, where both are pooled) share one. Comparisons are unpaired: a seed fixes the
order of the data but gives two families unrelated weights, so pairs may share little. Positive correlation
within pairs makes the unpaired interval too wide, never too narrow.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss.distributions import normal_quantile, t_quantile
from isoloss.errors import InputError, Refusal, attempt

Row = dict[str, Any]
"""A row of a table: values by column."""

LEVEL = 0.95
"""Of every interval in figures, sentences and demos."""
LEAST_LEVEL, MOST_LEVEL = 1e-6, 0.999999
"""Beyond these an interval is a point, or nothing that runs could show."""
MOST_OF_ONE = 1 - 1e-12
"""Level of one of many intervals that hold together at a level (Bonferroni)."""
MEDIAN_TO_SD = 1.4826
"""Of absolute values of normal noise: its standard deviation over their median."""


@dataclass(frozen=True)
class Interval:
    """``value`` between ``low`` and ``high`` at ``level``; these are infinite where nothing is known.

    ``n``: values behind it, of the smaller side. ``df``: degrees of freedom of a t interval, 0 where there is
    none, None for another kind. ``se``: the standard error of a t interval.
    """

    value: float
    low: float
    high: float
    n: int
    df: int | None
    level: float = LEVEL
    se: float = inf

    @property
    def interval(self) -> tuple[float, float] | None:
        """None where nothing is known."""
        return None if self.df == 0 else (self.low, self.high)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Of ``interval``; None and None where nothing is known."""
        return self.interval or (None, None)

    @property
    def decided(self) -> bool:
        """Does it leave out 0?"""
        return self.low > 0 or self.high < 0

    @property
    def sign(self) -> int | None:
        """-1 or 1 where it leaves out 0, 0 where it does not, None where nothing is known."""
        if self.df == 0:
            return None
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    def within(self, least: float, most: float) -> "Interval":
        """Cut off at what is possible, such as 0 and 1 for the mean of shares."""
        return replace(self, low=max(least, self.low), high=min(most, self.high))

    def row(self) -> Row:
        """As columns of a table."""
        low, high = self.ends
        return {"value": self.value, "low": low, "high": high, "n": self.n}


@dataclass(frozen=True)
class Noise:
    """Pooled standard deviation of one run around its group, in nats, with its degrees of freedom.

    ``within``: what the groups have in common, where they are not all that there are (``isoloss.noise``).
    """

    sd: float
    df: int
    groups: int
    within: tuple[Hashable, ...] = ()


def check_level(level: float, most: float = MOST_LEVEL) -> float:
    """Raises InputError unless it is a share that an interval can have."""
    if not isinstance(level, int | float) or not LEAST_LEVEL <= level <= most:
        ends = f"{LEAST_LEVEL:.6f} to {MOST_LEVEL:.6f}"
        raise InputError(f"level is {level!r}", mend=f"give a share from {ends}, such as 0.9")
    return float(level)


def few_draws(draws: int, level: float) -> str:
    """A warning where ``draws`` are too few for quantiles at ``level``: both ends are their extremes."""
    least = round(2 / (1 - level))
    if draws >= least:
        return ""
    return f"the {100 * level:.10g}% interval ends at the extremes of {draws:,} draws: it takes {least:,}"


def t_interval(value: float, se: float, n: int, df: int, level: float = LEVEL) -> Interval:
    """value -+ t(df) se; nothing known where ``df`` is 0."""
    if df < 1:
        return Interval(value, -inf, inf, n, 0, level)
    reach = t_quantile(check_level(level, MOST_OF_ONE), df) * se
    return Interval(value, value - reach, value + reach, n, df, level, se)


def simultaneous(value: float, se: float, n: int, df: int, among: int) -> Interval:
    """As ``t_interval``, of a difference of two of ``among`` means: those of all pairs hold at once.

    value -+ q(among, df) se / sqrt(2), q of the studentised range (Tukey 1953; Kramer 1956 where counts
    differ), so that the best may be picked by its value before others are compared with it.
    """
    known = t_interval(value, se, n, df)
    if df < 1:
        return known
    reach = studentized_range(among, df) * se / sqrt(2)
    return replace(known, low=value - reach, high=value + reach)


@cache
def studentized_range(among: int, df: int) -> float:
    """The ``LEVEL`` quantile of (largest - smallest) / s of ``among`` means; slow, as is its import."""
    from scipy import stats

    return float(stats.studentized_range.ppf(LEVEL, among, df))


def mean(values: ArrayLike, *, noise: Noise | None = None, level: float = LEVEL) -> Interval:
    """mean -+ t(df) sd / sqrt(n): of ``values`` alone with df = n - 1, or by the ``noise`` of several groups.

    One value without a noise gives no interval. Raises InputError for values that are not finite, or none.
    """
    array = _values(values)
    n, middle = len(array), float(array.mean())
    if noise is None:
        if n < 2:
            return t_interval(middle, inf, n, 0, level)
        noise = Noise(float(array.std(ddof=1)), n - 1, 1)
    reach = t_quantile(check_level(level, MOST_OF_ONE), noise.df) * noise.sd / sqrt(n)
    return Interval(middle, middle - reach, middle + reach, n, noise.df, level, noise.sd / sqrt(n))


def difference(
    a: ArrayLike,
    b: ArrayLike,
    noise: Noise | Refusal | Sequence[Noise] | None = None,
    *,
    floor: float | tuple[float, float] = 0.0,
    level: float = LEVEL,
) -> Interval:
    """Mean of ``a`` minus mean of ``b``, unpaired.

    With a noise, or one a side: as ``contrast`` (Student 1908). Without: se^2 = max(s_a^2, floor_a) / n_a +
    the same for b (Welch 1938), and df those of the smaller side, which bound Welch's from below. ``floor``:
    the least variance that a value of a side can have, such as that of how coarsely it is read: seeds that
    agree to the last digit agree by that, not by having no error. Nothing is known where the noise was
    refused, or a side has one value.
    """
    sides = _values(a), _values(b)
    if noise is not None:
        parts = [(sign, float(side.mean()), len(side)) for sign, side in zip((1.0, -1.0), sides, strict=True)]
        return contrast(parts, noise, level=level)
    value, n = float(sides[0].mean() - sides[1].mean()), min(map(len, sides))
    if n < 2:
        return t_interval(value, inf, n, 0, level)
    floors = floor if isinstance(floor, tuple) else (floor, floor)
    variances = [max(float(side.var(ddof=1)), least) for side, least in zip(sides, floors, strict=True)]
    se = sqrt(sum(variance / len(side) for variance, side in zip(variances, sides, strict=True)))
    return t_interval(value, se, n, n - 1, level)


def contrast(
    parts: Sequence[tuple[float, float, int]],
    noise: Noise | Refusal | Sequence[Noise],
    *,
    level: float = LEVEL,
) -> Interval:
    """sum of weight * mean over ``parts`` of (weight, mean, n values): se^2 = sum weight^2 sd^2 / n.

    ``noise`` is one for all parts, or one a part: then df = se^4 / sum (share of se^2)^2 / df over the noises
    (Satterthwaite 1946), rounded down.
    """
    value, n = sum(weight * mean for weight, mean, _ in parts), min(n for *_, n in parts)
    if isinstance(noise, Refusal):
        return t_interval(value, inf, n, 0, level)
    each = [noise] * len(parts) if isinstance(noise, Noise) else noise
    variances = dict.fromkeys(each, 0.0)
    for (weight, _, count), own in zip(parts, each, strict=True):
        variances[own] += weight**2 * own.sd**2 / count
    variance = sum(variances.values())
    unsure = sum(part**2 / own.df for own, part in variances.items())
    df = int(variance**2 / unsure * (1 + 1e-9)) if unsure else min(own.df for own in each)
    return t_interval(value, sqrt(variance), n, df, level)


def share(hits: float, n: int, *, level: float = LEVEL) -> Interval:
    """``hits`` of ``n`` with Wilson's score interval (Wilson 1927, JASA 22, 209).

    As ``scipy.stats.binomtest(hits, n).proportion_ci(level, "wilson")``, but for hits that need not be whole:
    sums of shares count too.
    """
    value, z = hits / n, normal_quantile(check_level(level, MOST_OF_ONE))
    whole = 2 * (n + z**2)
    middle, reach = (2 * n * value + z**2) / whole, z / whole * sqrt(4 * n * value * (1 - value) + z**2)
    low = middle - reach if hits > 0 else 0.0
    high = middle + reach if hits < n else 1.0
    return Interval(value, low, high, n, None, level)


def pooled_noise(groups: Iterable[ArrayLike]) -> Noise:
    """Seed noise of groups of losses (one group a size): sqrt(sum of squares about group means / df).

    df = sum(n_i - 1). Raises InputError for a loss that is not finite, Refusal without a group of two runs.
    """
    arrays = [_values(group).astype(np.float64) for group in groups]
    df = sum(len(array) - 1 for array in arrays)
    if df < 1:
        raise Refusal(
            "no size has two seeds, so the seed noise is unknown", mend="train at least one size twice"
        )
    total = sum(float(np.sum((array - array.mean()) ** 2)) for array in arrays)
    return Noise(float(np.sqrt(total / df)), df, len(arrays))


def seed_noise(groups: Iterable[ArrayLike]) -> Noise | Refusal:
    """``pooled_noise``, or why there is none."""
    return attempt(pooled_noise, groups)


def robust_sd(rest: ArrayLike) -> NDArray[np.float64]:
    """Standard deviation of normal noise about 0, by the median absolute value over the last axis."""
    return MEDIAN_TO_SD * np.median(np.abs(rest), axis=-1)


def _values(values: ArrayLike) -> NDArray[np.floating]:
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    if array.ndim != 1 or not len(array) or not np.all(np.isfinite(array)):
        raise InputError("a group of losses is empty or not finite", mend="give one finite loss a run")
    return array
