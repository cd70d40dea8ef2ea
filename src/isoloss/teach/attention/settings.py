"""Slide 8: every step of one head, what nothing looks like, and a head with a known right answer."""

from typing import Self

from pydantic import model_validator

from isoloss.teach.attention.sentence import SentenceText
from isoloss.teach.settings import Seeded, Settings, described


@described("attention", "sentence", "steps")
class StepsSettings(Settings):
    sentence: SentenceText
    d_model: int
    seed: int


@described("attention", "sentence", "untrained")
class UntrainedSettings(Seeded):
    sentence: SentenceText
    d_model: int


@described("attention", "trained")
class TrainedSettings(Settings):
    """A sentence of the audience's, read by the packaged pair."""

    sentence: SentenceText
    seed: int


@described("attention", "right-slot")
class RightSlotSettings(Seeded):
    pairs: int
    keys: int
    values: int
    updates: int
    every: int
    batch: int
    rate: float

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
