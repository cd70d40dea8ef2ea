"""Who is faster: the median of paired ratios of times, with an interval that assumes no distribution.

The k-th smallest and k-th largest of n independent ratios enclose their median with probability
1 - 2 P(Binomial(n, 1/2) < k); k is the largest that keeps this at 95% or more. Six repeats are the fewest
that can: then it is the smallest and the largest, at 96.9%. Both times of a pair come from the same round,
so that a machine that slows down slows both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from isoloss.errors import InputError
from isoloss.stats import LEVEL

FEWEST = 6
INTERVAL = "median; interval by order statistics, 95% or more"


@dataclass(frozen=True)
class Ratio:
    """How many times as long a takes as b."""

    value: float
    low: float
    high: float
    n: int

    @property
    def decided(self) -> bool:
        return self.low > 1 or self.high < 1

    def row(self) -> dict[str, float | int]:
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


def paired(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Times of a over times of b, repeat by repeat. Raises InputError with fewer than six pairs."""
    if len(a) != len(b) or len(a) < FEWEST:
        raise InputError(
            f"{len(a)} and {len(b)} repeats make no interval at 95%", mend=f"repeat each {FEWEST} times"
        )
    ratios = np.sort(np.asarray(a, dtype=float) / np.asarray(b, dtype=float))
    k = rank(len(ratios))
    return Ratio(float(np.median(ratios)), float(ratios[k - 1]), float(ratios[-k]), len(ratios))


def rank(n: int) -> int:
    """The largest k with 1 - 2 P(Binomial(n, 1/2) <= k - 1) >= 95%; 0 if there is none."""
    return int(sum(2 * binom.cdf(k - 1, n, 0.5) <= 1 - LEVEL for k in range(1, n // 2 + 1)))
