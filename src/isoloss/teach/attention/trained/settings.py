"""A sentence of the audience's, read by the packaged models."""

from pydantic import Field

from isoloss.teach.attention.sentence import SentenceText
from isoloss.teach.settings import Settings

SENTENCE = "he was a man who had been in the old house"


class TrainedSettings(Settings):
    sentence: SentenceText = SENTENCE
    model_seed: int = Field(default=0, ge=0, le=2, description="Which of the three trained copies reads")
    seed: int = Field(default=0, ge=0, le=10_000, description="Seed of the random weights beside it")
