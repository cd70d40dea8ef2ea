"""Differences between groups of runs under the names that they had here; see ``isoloss.stats``."""

from collections.abc import Hashable, Mapping

from numpy.typing import ArrayLike

from isoloss import stats
from isoloss.stats import Interval, Noise, paired_noise, pooled_noise

__all__ = ["Noise", "difference", "paired_difference", "paired_noise", "pooled_noise"]


def difference(a: ArrayLike, b: ArrayLike, noise: Noise, *, level: float = 0.9) -> Interval:
    """``stats.difference`` of losses, at the level of laws."""
    return stats.difference(a, b, noise, level=level)


def paired_difference(
    a: Mapping[Hashable, float], b: Mapping[Hashable, float], noise: Noise, *, level: float = 0.9
) -> Interval:
    """``stats.paired_difference`` of losses, at the level of laws."""
    return stats.paired_difference(a, b, noise, level=level)
