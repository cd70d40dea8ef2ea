"""The package's own training loop as a step that can be timed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoloss.corpus import library
from isoloss.models import count, family, shape_of
from isoloss.training.settings import Execution, RunSettings
from isoloss.training.speed import updater
from isoloss.training.task import Member, Task
from isoloss.units import Count

CORPUS, MOST_WORDS, UPDATES = "starter", 4096, 1000


@dataclass(frozen=True)
class Design:
    """A model and its batch. ``size``: sequences and context."""

    family: str
    shape: dict[str, Any]
    vocab: int
    size: tuple[int, int]

    @property
    def label(self) -> str:
        loops = f", {self.shape['recurrence']} loops" if "recurrence" in self.shape else ""
        return f"{self.family} {self.shape['n_layer']}x{self.shape['d_model']}{loops}"

    def count(self) -> Count:
        return count(family(self.family), shape_of(self.family, self.shape), self.vocab, self.size[1])

    def flops_per_token(self) -> float:
        return self.count().flops_exact(1)


def task_of(
    design: Design,
    seeds: int,
    device: str,
    *,
    micro_batches: int = 1,
    updates: int = UPDATES,
    rate: float = 1e-3,
) -> Task:
    """A cohort on the shipped text; a vocabulary beyond what that bears is counted and never met."""
    corpus = library.tokenize(CORPUS, min(design.vocab, MOST_WORDS))
    sequences, context = design.size
    members = tuple(
        Member(
            RunSettings(
                family=design.family,
                shape=shape_of(design.family, design.shape).model_dump(mode="json"),
                corpus_hash=corpus.corpus_hash,
                tokenizer=f"bpe-{min(design.vocab, MOST_WORDS)}",
                vocab=design.vocab,
                context=context,
                batch_size=sequences,
                tokens=(updates * sequences * context,),
                learning_rate=rate,
                seed=seed,
            ),
            design.label,
            Path("bench"),
        )
        for seed in range(seeds)
    )
    execution = Execution(device=device, micro_batches=micro_batches)
    return Task("bench", members, CORPUS, corpus.tokenizer_path.parent, execution)


def loop(design: Design, device: str, *, seeds: int = 1, compiled: bool = False) -> Callable[[], float]:
    """Makes updates of the loop and gives the tokens of all members."""
    _, some = updater(task_of(design, seeds, device), compiled=compiled)
    tokens = design.size[0] * design.size[1] * seeds
    return lambda: float(tokens * some())
