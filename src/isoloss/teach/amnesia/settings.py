"""The amnesia demo: how far a gradient reaches, and three tests of memory that ask different things."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from isoloss.teach.settings import Seeded
from isoloss.teach.shares import UNSEEN

Rate = Annotated[float, Field(ge=1e-5, le=0.1)]
Width = Annotated[int, Field(ge=8, le=96, multiple_of=4)]


def several(default: tuple[Any, ...], description: str) -> Any:
    return Field(default=default, strict=False, min_length=1, max_length=4, description=description)


class ContestSettings(Seeded):
    """What the three tests share: both sides get the same rates, updates, strings and sizes."""

    widths: tuple[Width, ...] = several(
        (28,), "d_model of the Transformer; the LSTM's is chosen to match its parameters"
    )
    rates: tuple[Rate, ...] = several((3e-3,), "Learning rates, the same for both sides")
    cap: int = Field(default=200, ge=1, le=10_000, description="Updates after which training ends")
    every: int = Field(default=50, ge=5, le=1_000, description="Updates from one look to the next")
    batch: int = Field(default=32, ge=4, le=256, description="Strings an update")


MOST_TOKENS = 200_000_000
"""Tokens that all members of all sides read at width 32: most of an hour on one core."""

MOST_AT_ONCE, MOST_IN_A_LOOK = 2**18, 2**11
"""Seeds x batch x length, and seeds x length: a few GB of activations."""


def bounded(settings: ContestSettings, contexts: Sequence[int], *, sides: int) -> None:
    """Raises ValueError for settings that are harmless one by one and take hours or all memory together."""
    widths = sum(max(1.0, (width / 32) ** 2) for width in settings.widths)
    # Unseen strings are read forward only: a third of the work.
    looks = UNSEEN * (1 + -(-settings.cap // settings.every))
    runs = sides * settings.seeds * len(settings.rates) * widths * sum(contexts)
    tokens = runs * (settings.cap * settings.batch + looks / 3)
    if tokens > MOST_TOKENS:
        raise ValueError(
            f"together they ask for {tokens / MOST_TOKENS:.1f} times the work that is allowed: take fewer "
            "seeds, rates, widths, lengths or updates, or look less often"
        )
    at_once = settings.seeds * max(contexts)
    if at_once * settings.batch > MOST_AT_ONCE or at_once > MOST_IN_A_LOOK:
        raise ValueError(
            "together they would not fit in memory: take fewer seeds, or shorter or fewer strings"
        )


class ReachSettings(Seeded):
    length: int = Field(default=128, ge=8, le=512, description="Tokens T of a string")
    width: int = Field(default=64, ge=8, le=128, multiple_of=4, description="Width of input and state")
    strings: int = Field(default=16, ge=2, le=512, description="Random strings a seed")
    seeds: int = Field(default=4, ge=1, le=20, description="How many random seeds")

    @model_validator(mode="after")
    def _fits_in_memory(self) -> Self:
        if self.strings * self.length > 2**16:
            raise ValueError(f"strings times length must be at most {2**16:,}")
        return self


class FirstLetterSettings(ContestSettings):
    lengths: tuple[Annotated[int, Field(ge=3, le=256)], ...] = several(
        (16,), "Letters T of a string: the answer is T - 1 steps back"
    )
    rates: tuple[Rate, ...] = several((1e-2,), "Learning rates, the same for both sides")
    cap: int = Field(default=100, ge=1, le=10_000, description="Updates after which training ends")

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        bounded(self, self.lengths, sides=5)
        return self


class RandomPlaceSettings(ContestSettings):
    lengths: tuple[Annotated[int, Field(ge=4, le=256)], ...] = several(
        (16,), "Letters T of a string: the answer is 1 to T - 2 steps back"
    )
    rates: tuple[Rate, ...] = several((5e-3,), "Learning rates, the same for both sides")
    every: int = Field(default=75, ge=5, le=1_000, description="Updates from one look to the next")
    cap: int = Field(default=225, ge=1, le=10_000, description="Updates after which training ends")
    batch: int = Field(default=48, ge=4, le=256, description="Strings an update")

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        bounded(self, self.lengths, sides=2)
        return self


class BindingSettings(ContestSettings):
    pairs: tuple[Annotated[int, Field(ge=1, le=32)], ...] = several(
        (4,), "Key-value pairs D of a string; its length is 3 D"
    )
    keys: tuple[Annotated[int, Field(ge=2, le=128)], ...] = several(
        (64,), "Different keys; there are as many values, but at most 32"
    )
    cap: int = Field(default=400, ge=1, le=10_000, description="Updates after which training ends")
    every: int = Field(default=200, ge=5, le=1_000, description="Updates from one look to the next")

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        bounded(self, [3 * min(pairs, keys) for pairs in self.pairs for keys in self.keys], sides=2)
        return self
