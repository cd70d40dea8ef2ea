"""The training demo's panel and its settings."""

from typing import Self

from pydantic import Field, model_validator

from isoloss.teach.progression.corpus import WordCorpus, corpus_of
from isoloss.teach.settings import Seeded

MOST_WORK = 10**12
"""Weights times tokens read in training: about half an hour on one core."""

MOST_LOGITS = 2**27
"""Half a gigabyte, of which a few are needed."""


class TrainingSettings(Seeded):
    updates: int = Field(
        default=100, ge=10, le=1_000, description="Updates of each model, all sentences each"
    )
    d_model: int = Field(default=24, ge=8, le=64, multiple_of=4, description="Width of both models")
    rates: tuple[float, ...] = Field(
        default=(3e-2,),
        strict=False,
        min_length=1,
        max_length=4,
        description="Learning rates tried on the first seed, the same for both models",
    )
    held_out: float = Field(default=0.2, ge=0.05, le=0.5, description="Share of sentences held out")
    split_seed: int = Field(default=0, ge=0, le=10_000, description="Which sentences are held out")
    prompt: str = Field(default="we propose a", max_length=200, description="How every sample begins")
    samples: int = Field(default=240, ge=200, le=2_000, description="Samples at a checkpoint, over all seeds")
    corpus: str = Field(
        default="", max_length=20_000, description="Own sentences, one a line; empty: those that ship"
    )

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        """Raises InputError, so that a corpus or a prompt that is no use is told before anything starts."""
        corpus = self.read()
        corpus.beginning(self.prompt)
        if len(set(self.rates)) < len(self.rates) or any(not 1e-5 <= rate <= 0.3 for rate in self.rates):
            raise ValueError("rates differ and lie between 0.00001 and 0.3")
        self._within_reason(corpus)
        return self

    def _within_reason(self, corpus: WordCorpus) -> None:
        """Each setting alone is harmless; all at their largest, with thousands of words, would take days."""
        sentences = len(corpus.training) + len(corpus.held_out)
        weights = 16 * self.d_model**2 + corpus.vocab * self.d_model
        read = (self.seeds + len(self.rates)) * self.updates * sentences * corpus.context
        if (work := read * weights) > MOST_WORK:
            raise ValueError(
                f"together they ask for {work / MOST_WORK:.1f} times the work that is allowed: take fewer "
                "seeds, rates, updates or sentences, or a smaller width"
            )
        at_once = max(self.seeds * sentences, self.samples + self.seeds) * corpus.context * corpus.vocab
        if at_once > MOST_LOGITS:
            raise ValueError("together they would not fit in memory: take fewer seeds, samples or sentences")

    def read(self) -> WordCorpus:
        return corpus_of(self.corpus, self.held_out, self.split_seed)
