"""Accuracies: shares of strings answered rightly, each with its Wilson interval from ``stats.share``."""

from collections.abc import Sequence

from isoloss.stats import Interval, difference
from isoloss.text import percent

UNSEEN, ENOUGH = 2_000, 0.99
"""Strings that score a task, and the share of them at which it counts as learned."""


def gap(a: Sequence[Interval], b: Sequence[Interval]) -> Interval | None:
    """Difference of mean shares; a share a seed. None with fewer than two seeds a side.

    The variance of a seed is at least the mean of p(1 - p) / n with p = (hits + 2) / (n + 4) (Agresti and
    Coull 1998): seeds that all score 100 % agree by the coarseness of n, not by having no error.
    """
    if min(len(a), len(b)) < 2:
        return None
    ours, theirs = ([seed.value for seed in side] for side in (a, b))
    return difference(ours, theirs, floor=(_sampling(a), _sampling(b)))


def _sampling(side: Sequence[Interval]) -> float:
    smoothed = [(round(seed.value * seed.n) + 2) / (seed.n + 4) for seed in side]
    return sum(p * (1 - p) / seed.n for p, seed in zip(smoothed, side, strict=True)) / len(side)


def span(values: Sequence[float]) -> str:
    """The lowest and the highest share."""
    low, high = percent(min(values), 1), percent(max(values), 1)
    return low if low == high else f"{low} to {high}"
