"""The amnesia demo: how far a gradient reaches, and three tests of memory that ask different things."""

from collections.abc import Sequence
from typing import Self

from pydantic import model_validator

from isoloss.teach.settings import Seeded, described
from isoloss.teach.shares import UNSEEN

MOST_TOKENS = 200_000_000
"""Tokens that all members of all sides read at width 32: most of an hour on one core."""

MOST_AT_ONCE, MOST_IN_A_LOOK = 2**18, 2**11
"""Seeds x batch x length, and seeds x length: a few GB of activations."""


class ContestSettings(Seeded):
    """What the three tests share: both sides get the same rates, updates, strings and sizes."""

    widths: tuple[int, ...]
    rates: tuple[float, ...]
    cap: int
    every: int
    batch: int

    def bounded(self, contexts: Sequence[int], *, sides: int) -> Self:
        """Raises ValueError where settings that are harmless alone take hours or all memory together."""
        widths = sum(max(1.0, (width / 32) ** 2) for width in self.widths)
        # Unseen strings are read forward only: a third of the work.
        looks = UNSEEN * (1 + -(-self.cap // self.every))
        runs = sides * self.seeds * len(self.rates) * widths * sum(contexts)
        tokens = runs * (self.cap * self.batch + looks / 3)
        if tokens > MOST_TOKENS:
            raise ValueError(
                f"together they ask for {tokens / MOST_TOKENS:.1f} times the work that is allowed: take "
                "fewer seeds, rates, widths, lengths or updates, or look less often"
            )
        at_once = self.seeds * max(contexts)
        if at_once * self.batch > MOST_AT_ONCE or at_once > MOST_IN_A_LOOK:
            raise ValueError(
                "together they would not fit in memory: take fewer seeds, or shorter or fewer strings"
            )
        return self


@described("amnesia", "reach")
class ReachSettings(Seeded):
    length: int
    width: int
    strings: int

    @model_validator(mode="after")
    def _fits_in_memory(self) -> Self:
        if self.strings * self.length > 2**16:
            raise ValueError(f"strings times length must be at most {2**16:,}")
        return self


@described("amnesia", "contest", "first-letter")
class FirstLetterSettings(ContestSettings):
    lengths: tuple[int, ...]

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        return self.bounded(self.lengths, sides=5)


@described("amnesia", "contest", "random-place")
class RandomPlaceSettings(ContestSettings):
    lengths: tuple[int, ...]

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        return self.bounded(self.lengths, sides=2)


@described("amnesia", "contest", "binding")
class BindingSettings(ContestSettings):
    pairs: tuple[int, ...]
    keys: tuple[int, ...]

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        return self.bounded([3 * min(pairs, keys) for pairs in self.pairs for keys in self.keys], sides=2)
