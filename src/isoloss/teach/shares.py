"""Accuracies: shares of strings answered rightly, with the interval that n allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from scipy.stats import binomtest

from isoloss.stats import t_quantile

LEVEL = 0.95


@dataclass(frozen=True)
class Share:
    """``hits`` of ``n`` with Wilson's interval at 95 % (Wilson 1927), by SciPy."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n

    @property
    def interval(self) -> tuple[float, float]:
        found = binomtest(self.hits, self.n).proportion_ci(LEVEL, method="wilson")
        return float(found.low), float(found.high)

    def row(self) -> dict[str, int | float]:
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high, "n": self.n}


@dataclass(frozen=True)
class Gap:
    """Mean share of one side minus the other's, with a t interval over seeds; ``decided`` if without 0."""

    value: float
    low: float
    high: float
    seeds: int

    @property
    def decided(self) -> bool:
        return self.low > 0 or self.high < 0


def gap(a: Sequence[Share], b: Sequence[Share]) -> Gap | None:
    """Difference of mean shares; a share a seed. None with fewer than two seeds a side.

    se^2 = max(s_a^2, w_a) / k_a + the same for b, where s^2 is the variance between seeds and w the mean of
    p(1 - p) / n with p = (hits + 2) / (n + 4) (Agresti and Coull 1998): seeds that all score 100 % agree by
    the coarseness of n, not by having no error. Welch's degrees of freedom are bounded below by the smaller
    side's, which is what is used.
    """
    if min(len(a), len(b)) < 2:
        return None
    parts = [_variance_of_mean(side) for side in (a, b)]
    means = [sum(share.value for share in side) / len(side) for side in (a, b)]
    value, se = means[0] - means[1], sqrt(sum(parts))
    reach = t_quantile(LEVEL, min(len(a), len(b)) - 1) * se
    return Gap(value, value - reach, value + reach, min(len(a), len(b)))


def _variance_of_mean(side: Sequence[Share]) -> float:
    mean = sum(share.value for share in side) / len(side)
    between = sum((share.value - mean) ** 2 for share in side) / (len(side) - 1)
    smoothed = [(share.hits + 2) / (share.n + 4) for share in side]
    within = sum(p * (1 - p) / share.n for p, share in zip(smoothed, side, strict=True)) / len(side)
    return max(between, within) / len(side)


def percent(share: float) -> str:
    """One digit: 0.998 is "99.8 %". What is not all but would round to all is ">99.9 %"."""
    if 0.9995 <= share < 1.0:
        return ">99.9 %"
    return f"{100 * share:.1f} %"
