"""Seed noise: how much of a difference between two groups of runs is luck.

The seeds of one size are few, so their standard deviation is pooled over sizes, assuming that sizes (and both
families, where both are pooled) share one. Comparisons are unpaired unless asked for: a seed fixes the order
of the data but gives two families unrelated weights, so pairs may share little. Positive correlation within
pairs makes the unpaired interval too wide, never too narrow. Decide on pairing before looking at the losses.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError, Refusal
from isoloss.laws._intervals import check_level, t_quantile


@dataclass(frozen=True)
class Noise:
    """Pooled standard deviation of one run around its group, in nats, with its degrees of freedom."""

    sd: float
    df: int
    groups: int


@dataclass(frozen=True)
class Difference:
    """Mean of a minus mean of b, in nats, with a t interval; ``decided`` if that excludes 0."""

    value: float
    interval: tuple[float, float]
    level: float
    se: float
    df: int
    decided: bool


def pooled_noise(groups: Iterable[ArrayLike]) -> Noise:
    """Seed noise of groups of losses (one group a size): sqrt(sum of squares about group means / df).

    df = sum(n_i - 1). Raises InputError for a loss that is not finite, Refusal without a group of two runs.
    """
    arrays = [_losses(group) for group in groups]
    df = sum(len(array) - 1 for array in arrays)
    if df < 1:
        raise Refusal(
            "no size has two seeds, so the seed noise is unknown", mend="train at least one size twice"
        )
    total = sum(float(np.sum((array - array.mean()) ** 2)) for array in arrays)
    return Noise(float(np.sqrt(total / df)), df, len(arrays))


def difference(a: ArrayLike, b: ArrayLike, noise: Noise, *, level: float = 0.9) -> Difference:
    """Mean loss of runs ``a`` minus that of runs ``b``, unpaired: se = sd * sqrt(1/n_a + 1/n_b)."""
    losses_a, losses_b = _losses(a), _losses(b)
    se = noise.sd * float(np.sqrt(1 / len(losses_a) + 1 / len(losses_b)))
    return _difference(float(losses_a.mean() - losses_b.mean()), se, noise.df, level)


def paired_noise(
    a: Mapping[Hashable, Mapping[Hashable, float]], b: Mapping[Hashable, Mapping[Hashable, float]]
) -> Noise:
    """Noise of within-seed differences, pooled over sizes; ``a[size][seed]``, ``b[size][seed]`` are losses.

    Raises InputError if the two sides differ in sizes or seeds, Refusal without a size of two seeds.
    """
    if set(a) != set(b) or any(set(a[size]) != set(b[size]) for size in a):
        raise InputError(
            "the two sides differ in sizes or seeds", mend="compare unpaired, or train the missing runs"
        )
    return pooled_noise([[a[size][seed] - b[size][seed] for seed in a[size]] for size in a])


def paired_difference(
    a: Mapping[Hashable, float], b: Mapping[Hashable, float], noise: Noise, *, level: float = 0.9
) -> Difference:
    """Mean of ``a[seed] - b[seed]`` at one size, with the noise of ``paired_noise``: se = sd / sqrt(n)."""
    if set(a) != set(b):
        raise InputError("the two sides differ in seeds", mend="compare unpaired, or train the missing runs")
    differences = _losses([a[seed] - b[seed] for seed in a])
    return _difference(
        float(differences.mean()), noise.sd / float(np.sqrt(len(differences))), noise.df, level
    )


def _difference(value: float, se: float, df: int, level: float) -> Difference:
    reach = t_quantile(check_level(level), df) * se
    low, high = value - reach, value + reach
    return Difference(value, (low, high), level, se, df, decided=low > 0 or high < 0)


def _losses(values: ArrayLike) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.all(np.isfinite(array)):
        raise InputError("a group of losses is empty or not finite", mend="give one finite loss a run")
    return array
