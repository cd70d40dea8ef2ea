"""Differences of mean losses, with an interval from the spread between seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import polars as pl

from isoloss.analysis.points import LEVEL
from isoloss.errors import Refusal
from isoloss.laws import Noise, pooled_noise, t_quantile


@dataclass(frozen=True)
class Difference:
    """``value`` nats, with its t interval; no interval when no size has two seeds."""

    value: float
    interval: tuple[float, float] | None
    level: float = LEVEL

    @property
    def sign(self) -> int | None:
        """-1 or 1 where the interval leaves out 0, 0 where it does not, None without an interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        return 1 if low > 0 else -1 if high < 0 else 0


def seed_noise(points: pl.DataFrame, value: str = "loss") -> Noise | Refusal:
    """Spread between seeds, pooled over every curve and size in ``points``, which hold one D."""
    groups = [rows[value].to_numpy() for _, rows in points.group_by("curve", "params", maintain_order=True)]
    try:
        return pooled_noise(groups)
    except Refusal as reason:
        return reason


def contrast(
    parts: Sequence[tuple[float, float, int]], noise: Noise | Refusal, level: float = LEVEL
) -> Difference:
    """sum of weight * mean over ``parts`` of (weight, mean, seeds).

    The standard error is sd sqrt(sum weight^2 / seeds), the interval +- t(df) of it.
    """
    value = sum(weight * mean for weight, mean, _ in parts)
    if isinstance(noise, Refusal):
        return Difference(value, None, level)
    reach = (
        t_quantile(level, noise.df) * noise.sd * sqrt(sum(weight**2 / seeds for weight, _, seeds in parts))
    )
    return Difference(value, (value - reach, value + reach), level)
