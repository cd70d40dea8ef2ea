"""The race and the bill: which layers, how long a text, how often."""

from typing import Self

from pydantic import model_validator

from isoloss.teach.settings import Settings, described

MOST_SCORES = 2**26
"""Attention alone stores batch x T x T scores: 256 MiB of them at most, and as much again a few times."""


@described("race", "race")
class RaceSettings(Settings):
    lengths: tuple[int, ...]
    d_model: int
    batch: int
    repeats: int
    threads: tuple[int, ...]
    gpu: bool
    budget_seconds: float

    @model_validator(mode="after")
    def _fits_in_memory(self) -> Self:
        if self.batch * max(self.lengths) ** 2 > MOST_SCORES:
            raise ValueError(f"batch times the longest length squared must be at most {MOST_SCORES:,}")
        return self


@described("race", "bill")
class BillSettings(Settings):
    lengths: tuple[int, ...]
    d_model: int
    repeats: int
    tokens: int
