"""Means over seeds, with the t interval that their number allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from isoloss.stats import t_quantile
from isoloss.teach.shares import LEVEL


@dataclass(frozen=True)
class Mean:
    value: float
    low: float
    high: float
    seeds: int


def mean_of(values: Sequence[float]) -> Mean | None:
    """None with fewer than two seeds, which give no interval."""
    if len(values) < 2:
        return None
    reach = t_quantile(LEVEL, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Mean(fmean(values), fmean(values) - reach, fmean(values) + reach, len(values))
