"""Means with t intervals, and differences of them: the package's seed noise at the level of the demos."""

from collections.abc import Mapping, Sequence
from math import sqrt

from isoloss.stats import LEVEL, Interval, difference, pooled_noise, t_quantile
from isoloss.teach.shares import Share


def means(groups: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """Of each group its mean, and a t interval with the noise pooled over the groups (two values or more)."""
    noise = pooled_noise(groups.values())
    found = {}
    for name, values in groups.items():
        mean, reach = sum(values) / len(values), t_quantile(LEVEL, noise.df) * noise.sd / sqrt(len(values))
        found[name] = {"value": mean, "low": mean - reach, "high": mean + reach, "n": len(values)}
    return found


def mean_share(values: Sequence[float]) -> dict[str, float]:
    """Mean of shares of several texts, with a t interval inside 0 to 1.

    Texts that all have 0, or all 1, have no spread, yet are not certain: a text's share is above 0 only if
    the text is one of those that have any, so Wilson's bound for none of n texts holds for the mean as well.
    """
    if set(values) in ({0.0}, {1.0}):
        return Share(round(sum(values)), len(values)).row()
    row = means({"all": values})["all"]
    return {**row, "low": max(0.0, row["low"]), "high": min(1.0, row["high"])}


def gap(a: Sequence[float], b: Sequence[float]) -> Interval:
    """Mean of a minus mean of b, unpaired, with the noise pooled over both."""
    return difference(a, b, pooled_noise([a, b]), level=LEVEL)
