"""Slide 8: every step of one head, what nothing looks like, and a head with a known right answer."""

from typing import Self

from pydantic import Field, model_validator

from isoloss.teach.attention.sentence import SentenceText
from isoloss.teach.settings import Seeded, Settings

SENTENCE = "a small model reads every word we give it"


class StepsSettings(Settings):
    sentence: SentenceText = SENTENCE
    d_model: int = Field(default=4, ge=2, le=8, description="Width of the head: numbers per word")
    seed: int = Field(default=0, ge=0, le=10_000, description="Seed of the random weights")


class UntrainedSettings(Seeded):
    sentence: SentenceText = SENTENCE
    seeds: int = Field(default=5, ge=2, le=10, description="How many random networks")
    d_model: int = Field(default=32, ge=2, le=64, description="Width of the head: numbers per word")


class RightSlotSettings(Seeded):
    pairs: int = Field(default=4, ge=2, le=12, description="Key-value pairs in a string")
    keys: int = Field(default=64, ge=2, le=128, description="How many different keys there are")
    values: int = Field(default=32, ge=2, le=64, description="How many different values there are")
    updates: int = Field(default=275, ge=1, le=2_000, description="Updates of training")
    every: int = Field(default=50, ge=5, le=500, description="Updates between two looks")
    batch: int = Field(default=64, ge=8, le=128, description="Strings in a batch")
    rate: float = Field(default=3e-3, ge=1e-4, le=3e-2, description="Learning rate")

    @model_validator(mode="after")
    def _enough_keys(self) -> Self:
        if self.keys < self.pairs:
            raise ValueError(f"{self.pairs} pairs need as many different keys, got {self.keys}")
        return self

    @model_validator(mode="after")
    def _within_reason(self) -> Self:
        """Each alone is harmless; all at their largest would train for hours."""
        looks = 1 + -(-self.updates // self.every)
        tokens = 3 * self.pairs * self.seeds * (self.updates * self.batch + 1_000 * looks)
        if tokens > MOST_TOKENS:
            raise ValueError(
                f"together they ask for {tokens / MOST_TOKENS:.1f} times the work that is allowed: take "
                "fewer seeds, pairs, updates or strings, or look less often"
            )
        return self


MOST_TOKENS = 60_000_000
"""Tokens that all seeds read in training and looks: a quarter of an hour on one core."""
