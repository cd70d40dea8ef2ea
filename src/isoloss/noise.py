"""How noisy one run is, told by the fewest runs that are enough: of its own size, else of wider company."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from numpy.typing import ArrayLike

from isoloss import text
from isoloss.errors import Refusal
from isoloss.stats import LEVEL, Noise, seed_noise

Key = tuple[Hashable, ...]
"""Of a group of runs alike but for their seed, from coarse to fine: (family, curve, params)."""
LEAST_DF = 4
"""Fewer degrees of freedom make t intervals so wide (2.8 s.e. at 4, 4.3 at 2) that pooling more is better."""
POOLED_OVER = ("families, depths and sizes", "the depths and sizes of a family", "the sizes of a curve", "")
"""By how many places of the key runs had to share."""

RANGES = f"Ranges are {text.level(LEVEL)} t intervals. Another text or recipe may give another result."
"""Said once for all findings; each adds what its own ranges rest on."""


def nested_noise(groups: Mapping[Key, ArrayLike]) -> dict[Key, Noise] | Refusal:
    """Seed noise of each group, pooled over no more groups than bring ``LEAST_DF`` degrees of freedom.

    First over the group alone, then over those whose keys begin alike, one place shorter each time. Over all
    groups it is taken with what it has. Refused where no group has two runs.
    """
    everyone = seed_noise(groups.values())
    if isinstance(everyone, Refusal):
        return everyone
    beginnings = {key[:places] for key in groups for places in range(1, len(key) + 1)}
    noises = {
        start: seed_noise(values for key, values in groups.items() if key[: len(start)] == start)
        for start in beginnings
    }
    enough = {
        start: replace(noise, within=start)
        for start, noise in noises.items()
        if isinstance(noise, Noise) and noise.df >= LEAST_DF
    }
    return {
        key: next((enough[key[:n]] for n in range(len(key), 0, -1) if key[:n] in enough), everyone)
        for key in groups
    }


def pooled_words(noises: Iterable[Noise]) -> str:
    """'pooled over the sizes of a curve', 'of each size by itself', or both: what it rests on."""
    levels = sorted({len(noise.within) for noise in noises}, reverse=True)
    words = [
        f"pooled over {POOLED_OVER[level]}" if POOLED_OVER[level] else "of each size by itself"
        for level in levels
    ]
    return " or ".join(words) + (", whichever has enough seeds" if len(words) > 1 else "")


def range_words(noises: Mapping[Key, Noise] | Refusal, of: str = "spread between seeds") -> str:
    """What the intervals of a finding rest on, and over what their noise is pooled."""
    over = "" if isinstance(noises, Refusal) else f" It is {pooled_words(noises.values())}."
    return f"Here they rest on the {of}.{over}"
