"""Slide 12: two language models of one size and one budget go on from the user's prompt, unnamed."""

from isoloss.teach.settings import Settings, described

MODEL_SEEDS = 3
"""Small models of each family: seeds 0, 1 and 2."""

EARLY = 8
"""Positions 1 to 8 of a window are early; its second half is late."""


@described("showdown", "showdown")
class ShowdownSettings(Settings):
    prompt: str
    tokens: int
    temperature: float
    top_k: int
    seed: int
    samples: int
