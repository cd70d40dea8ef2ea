"""Who is faster: the median of paired ratios of times, with an interval that assumes no distribution.

The k-th smallest and k-th largest of n independent ratios enclose their median with probability
1 - 2 P(Binomial(n, 1/2) < k); k is the largest that keeps this at 95% or more. Six repeats are the fewest
that can: then it is the smallest and the largest, at 96.9%. Both times of a pair come from the same round,
so that a machine that slows down slows both.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from isoloss.errors import InputError
from isoloss.stats import LEVEL, Interval
from isoloss.teach.race.counts import ALONE
from isoloss.teach.result import Row

FEWEST = 6


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Interval:
    """How many times as long a takes as b, repeat by repeat. Raises InputError with fewer than six pairs."""
    if len(a) != len(b) or len(a) < FEWEST:
        raise InputError(
            f"{len(a)} and {len(b)} repeats make no interval at 95%", mend=f"repeat each {FEWEST} times"
        )
    ratios = np.sort(np.asarray(a, dtype=float) / np.asarray(b, dtype=float))
    k = rank(len(ratios))
    return Interval(float(np.median(ratios)), float(ratios[k - 1]), float(ratios[-k]), len(ratios), None)


def rank(n: int) -> int:
    """The largest k with 1 - 2 P(Binomial(n, 1/2) <= k - 1) >= 95%; 0 if there is none."""
    return int(sum(2 * binom.cdf(k - 1, n, 0.5) <= 1 - LEVEL for k in range(1, n // 2 + 1)))


def winner(row: Row, a: str, b: str) -> str | None:
    """The faster of two, if the interval of a's time over b's leaves out 1."""
    return b if row["low"] > 1 else a if row["high"] < 1 else None


def factor(row: Row) -> str:
    """The loser's time over the winner's, with its interval."""
    low, value, high = row["low"], row["value"], row["high"]
    if high < 1:
        low, value, high = 1 / high, 1 / value, 1 / low
    low, value, high = (f"{x:.2f}" if x < 10 else f"{x:,.0f}" for x in (low, value, high))
    return f"{value} times, {low} to {high}"


def judge(rows: Sequence[Row], a: str, b: str, column: str, *, numbers: bool = True) -> str:
    """Who is faster where; ``column`` holds the places, and a letter stands for it.

    Three places or more without a gap are named by their ends alone: the tables hold them all.
    """
    letter = {"length": "T", "n_before": "n"}[column]
    parts: list[str] = []
    order = sorted(row[column] for row in rows)
    for name in (b, a, None):
        wins = sorted((row for row in rows if winner(row, a, b) == name), key=lambda row: row[column])
        if not wins:
            continue
        places = [f"{row[column]:,}" + (f" ({factor(row)})" if numbers else "") for row in wins]
        first = order.index(wins[0][column])
        if len(wins) > 2 and order[first : first + len(wins)] == [row[column] for row in wins]:
            where = f"every {letter} measured from {places[0]} to {places[-1]}"
        else:
            where = f"{letter} = {', '.join(places)}"
        verdict = f"{the(name)} is faster" if name else f"no clear difference between {the(a)} and {the(b)}"
        parts.append(f"{verdict} at {where}")
    return "; ".join(parts)


def the(name: str) -> str:
    return name if name == ALONE.name else f"the {name}"
