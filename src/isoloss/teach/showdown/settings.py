"""Slide 12: two small language models of one size and one budget go on from the user's prompt, unnamed."""

from pydantic import Field

from isoloss.teach.settings import Settings

MODEL_SEEDS = 3
"""Packaged checkpoints of each family: seeds 0, 1 and 2."""

EARLY = 8
"""Positions 1 to 8 of a window are early; its second half is late."""


class ShowdownSettings(Settings):
    prompt: str = Field(default="It was a dark and", max_length=500, description="Text that both go on from")
    tokens: int = Field(default=40, ge=8, le=120, description="Tokens that each writes")
    temperature: float = Field(
        default=0.8, ge=0.1, le=2.0, strict=False, description="Below 1: surer; above 1: more daring"
    )
    top_k: int = Field(default=40, ge=1, le=1_024, description="Choose among this many likeliest tokens")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Seed of the dice, which both sides share")
    model_seed: int = Field(
        default=0, ge=0, lt=MODEL_SEEDS, description="Which of the trained seeds writes the shown texts"
    )
    samples: int = Field(default=8, ge=2, le=24, description="Texts of each trained model for the counts")
