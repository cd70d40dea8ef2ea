"""The training demo's panel and its settings."""

from typing import Self

from pydantic import model_validator

from isoloss.teach.progression.corpus import WordCorpus, corpus_of
from isoloss.teach.settings import Seeded, described

MOST_WORK = 10**12
"""Weights times tokens read in training: about half an hour on one core."""

MOST_LOGITS = 2**27
"""Half a gigabyte, of which a few are needed."""


@described("progression", "training")
class TrainingSettings(Seeded):
    updates: int
    d_model: int
    rates: tuple[float, ...]
    held_out: float
    split_seed: int
    prompt: str
    samples: int
    corpus: str

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        """Raises InputError, so that a corpus or a prompt that is no use is told before anything starts."""
        corpus = self.read()
        corpus.beginning(self.prompt)
        if len(set(self.rates)) < len(self.rates):
            raise ValueError("rates differ")
        self._within_reason(corpus)
        return self

    def _within_reason(self, corpus: WordCorpus) -> None:
        """Each setting alone is harmless; all at their largest, with thousands of words, would take days."""
        sentences = len(corpus.training) + len(corpus.held_out)
        weights = 16 * self.d_model**2 + corpus.vocab * self.d_model
        read = self.seeds * len(self.rates) * self.updates * sentences * corpus.context
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
