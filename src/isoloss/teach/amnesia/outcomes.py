"""From looks to outcomes: where each seed ended, how soon it got there, which rate suits a side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from statistics import fmean, median

import numpy as np
from scipy.stats import permutation_test, rankdata

from isoloss.stats import Interval, difference
from isoloss.teach.result import Row
from isoloss.teach.shares import Share

ENOUGH = 0.99
"""The share of unseen strings at which training ends."""


@dataclass(frozen=True)
class Outcome:
    """One side at one rate: per seed the last share and the update that first reached ``ENOUGH``, if any.

    ``every``: updates between looks, which is how coarsely ``reached`` is known; ``last``: the latest update.
    """

    side: str
    params: int
    rate: float
    shares: list[Share]
    reached: list[int | None]
    every: int
    last: int

    @property
    def mean(self) -> float:
        return fmean(share.value for share in self.shares)

    @property
    def n(self) -> int:
        return self.shares[0].n

    @property
    def seeds(self) -> int:
        return len(self.shares)

    @property
    def arrived(self) -> list[int]:
        return [update for update in self.reached if update is not None]

    @property
    def all_arrived(self) -> bool:
        return len(self.arrived) == self.seeds

    @property
    def times(self) -> list[float]:
        """Updates to arrive by seed; infinite where not within the cap: later than any that did."""
        return [inf if update is None else float(update) for update in self.reached]


def order_of_arrival(a: Outcome, b: Outcome) -> tuple[float, float]:
    """Mean rank of ``a``'s times minus that of ``b``'s, and p of a two-sided permutation test on it.

    Seeds that did not arrive tie for the last rank. Exact up to 9,999 ways to deal the seeds out to the
    sides; three seeds a side give no p below 0.1.
    """
    ranks = rankdata([*a.times, *b.times])
    sides = (ranks[: a.seeds], ranks[a.seeds :])
    found = permutation_test(sides, _apart, n_resamples=9_999, vectorized=True, rng=0)
    return float(found.statistic), float(found.pvalue)


def _apart(one: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
    return np.mean(one, axis=axis) - np.mean(other, axis=axis)


def share_of(row: Row) -> Share:
    return Share(round(row["value"] * row["n"]), row["n"])


def cells(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple, list[Row]]:
    """Rows by the values of ``names``, in the order of their first row."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def outcomes(rows: Iterable[Row]) -> dict[str, list[Outcome]]:
    """The sides of one cell, each with an outcome a rate."""
    found: dict[str, list[Outcome]] = {}
    for (side, rate), own in cells(list(rows), ("side", "rate")).items():
        found.setdefault(side, []).append(_outcome(side, rate, own))
    return found


def _outcome(side: str, rate: float, rows: Sequence[Row]) -> Outcome:
    by_seed = [
        list(own)
        for _, own in groupby(sorted(rows, key=lambda r: (r["seed"], r["update"])), lambda r: r["seed"])
    ]
    looks = sorted({row["update"] for row in rows})
    return Outcome(
        side=side,
        params=rows[0]["params"],
        rate=rate,
        shares=[share_of(own[-1]) for own in by_seed],
        reached=[next((row["update"] for row in own if row["value"] >= ENOUGH), None) for own in by_seed],
        every=looks[1] - looks[0] if len(looks) > 1 else 0,
        last=looks[-1],
    )


def best(rates: Sequence[Outcome]) -> Outcome:
    """The rate of the highest mean share; where all seeds arrive, that of the fewest updates."""
    return max(rates, key=lambda one: (min(one.mean, ENOUGH), -median(one.arrived or [one.last]), one.mean))


def sooner(a: Outcome, b: Outcome) -> Interval:
    """Mean updates of ``a`` until ``ENOUGH`` minus those of ``b``, over seeds that have all arrived.

    The variance of a seed is at least every^2 / 12, that of a reading known to one look.
    """
    return difference(a.arrived, b.arrived, floor=(a.every**2 / 12, b.every**2 / 12))
