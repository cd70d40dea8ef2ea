from typing import Annotated, Self

from pydantic import Field, model_validator

from isoloss.teach.settings import Settings

MOST_SCORES = 2**26
"""Attention alone stores batch x T x T scores: 256 MiB of them at most, and as much again a few times."""

Length = Annotated[int, Field(ge=16, le=4096)]
Threads = Annotated[int, Field(ge=0, le=64)]


class RaceSettings(Settings):
    lengths: tuple[Length, ...] = Field(
        default=(64, 256, 512), strict=False, min_length=1, max_length=8, description="Tokens T to read"
    )
    d_model: int = Field(default=128, ge=32, le=512, multiple_of=32, description="Width of every runner")
    batch: int = Field(default=4, ge=1, le=64, description="Sequences read at once")
    repeats: int = Field(default=6, ge=6, le=30, description="Times each runner is timed")
    threads: tuple[Threads, ...] = Field(
        default=(1, 0), strict=False, min_length=1, max_length=4, description="CPU threads; 0: all cores"
    )
    gpu: bool = Field(default=True, description="Race on the GPU too, if there is one")
    budget_seconds: float = Field(
        default=4.5, ge=1.0, le=600.0, description="Time for all runs; what does not fit is listed"
    )

    @model_validator(mode="after")
    def _fits_in_memory(self) -> Self:
        if self.batch * max(self.lengths) ** 2 > MOST_SCORES:
            raise ValueError(f"batch times the longest length squared must be at most {MOST_SCORES:,}")
        return self


class BillSettings(Settings):
    lengths: tuple[Length, ...] = Field(
        default=(64, 256, 1024, 4096),
        strict=False,
        min_length=1,
        max_length=12,
        description="Tokens n already read",
    )
    d_model: int = Field(default=128, ge=32, le=512, multiple_of=32, description="Width of both layers")
    repeats: int = Field(default=12, ge=6, le=60, description="Times each layer is timed")
    tokens: int = Field(default=16, ge=1, le=256, description="Steps timed as one, to beat the clock's grain")
