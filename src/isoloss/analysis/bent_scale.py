"""A scale of training tokens on which differences are straight: a power of D where log D bends them.

Losses fall as powers of D, so a difference of two flattens. On the scale

    u(D) = (1 - (D / last)^-p) / (p ln 2),    log2(D / last) at p = 0

a + b D^-p is a line, and u changes by 1 with a doubling at ``last``. One p serves all sizes, by least
squares; its interval is the profile's, by an F test against the seeds' scatter about their own lines. Where
it holds p = 0 the lines are straight in log D.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss.distributions import t_quantile
from isoloss.stats import LEVEL, Interval

POWERS = np.linspace(-1.0, 3.0, 201)
"""Tried for p."""
STRAIGHT = 50
"""Where p = 0 stands among them."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """``power`` p and the ``ends`` of its interval; all are 0 where lines are straight in log D."""

    last: float
    power: float = 0.0
    ends: tuple[float, float] = (0.0, 0.0)

    def at(self, tokens: ArrayLike) -> Array:
        ratio = np.asarray(tokens, dtype=np.float64) / self.last
        if not self.power:
            return np.log2(ratio)
        return (1 - ratio**-self.power) / (self.power * log(2))

    @property
    def doubling(self) -> float:
        """The length of the last doubling of D: 1 where p = 0."""
        return -float(self.at(self.last / 2))

    def tokens(self, place: Interval | None) -> Interval | None:
        """The D of a place and of its ends; None where one of them is at no D."""
        if place is None:
            return None
        value, low, high = map(self._tokens, (place.value, place.low, place.high))
        return replace(place, value=value, low=low, high=high) if isfinite(low + value + high) else None

    def _tokens(self, place: float) -> float:
        if not self.power:
            return float(self.last * 2.0 ** np.clip(place, -200, 200))
        left = 1 - self.power * log(2) * place
        return float(self.last * left ** (-1 / self.power)) if left > 0 else float("inf")

    def at_ends(self) -> list["Scale"]:
        """The scales at the ends of the interval of p, where it is not one number."""
        return [replace(self, power=power) for power in set(self.ends) - {self.power}]


def scale_of(groups: Sequence[tuple[Sequence[float], ArrayLike]]) -> Scale:
    """Of groups (D_K, gap_SK). Straight where no group has three D, or no seed repeats."""
    last = float(max(tokens[-1] for tokens, _ in groups))
    gaps = [(tokens, np.asarray(gap_SK)) for tokens, gap_SK in groups if len(tokens) > 2]
    df = sum((len(gap_SK) - 1) * (len(tokens) - 2) for tokens, gap_SK in gaps)
    if df < 1:
        return Scale(last)
    misses = np.array([_misses(Scale(last, power), gaps) for power in POWERS])
    of_means, of_seeds = misses.T
    best = int(np.argmin(of_means))
    places = max(1, sum(len(tokens) - 2 for tokens, _ in gaps) - 1)
    # One p may not suit all sizes: how far their means miss is noise too, with the freedom that it has.
    noise, free = max((of_seeds[best] / df, df), (of_means[best] / places, places))
    allowed = of_means - of_means[best] <= noise * t_quantile(LEVEL, free) ** 2
    if allowed[STRAIGHT]:
        return Scale(last)
    ends = POWERS[allowed]
    return Scale(last, float(POWERS[best]), (float(ends.min()), float(ends.max())))


def _misses(scale: Scale, groups: Sequence[tuple[Sequence[float], Array]]) -> tuple[float, float]:
    """Squares about lines on this scale: of the groups' means, times seeds, and of the seeds about those."""
    of_means = of_seeds = 0.0
    for tokens, gap_SK in groups:
        u_K = scale.at(tokens) - scale.at(tokens).mean()
        rest_SK = gap_SK - gap_SK.mean(axis=1, keepdims=True)
        rest_SK = rest_SK - np.outer(rest_SK @ u_K / (u_K @ u_K), u_K)
        mean_K = rest_SK.mean(axis=0)
        of_means += len(gap_SK) * float(mean_K @ mean_K)
        of_seeds += float(np.sum((rest_SK - mean_K) ** 2))
    return of_means, of_seeds
