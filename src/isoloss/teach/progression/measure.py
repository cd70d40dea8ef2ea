"""Measure the training demo: both models on the same sentences, with held-out loss and samples on the way.

Each update reads all training sentences, so seeds differ by their first weights alone. Every seed of both
models is trained at every learning rate, and both are shown at the same one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from isoloss.errors import RunError
from isoloss.stats import share
from isoloss.teach.learner import Cohort, Replica, Side, params
from isoloss.teach.panel import Report
from isoloss.teach.progression import curves
from isoloss.teach.progression.corpus import END, UNKNOWN, SameSentences, Sentence, WordCorpus, longest_copied
from isoloss.teach.progression.settings import TrainingSettings
from isoloss.teach.progression.writing import write
from isoloss.teach.result import Row, Tables
from isoloss.training.objective import losses, mean_over_asked

CHECKS = 24
GREEDY, DRAWN = "greedy", "drawn at temperature 1"


def sides(d_model: int) -> list[Side]:
    """Two layers each. With a feed-forward of 2 d both have 16 d^2 weights a pair of layers, and one table.

    Beyond that the Transformer has d a position, the LSTM 16 d biases.
    """
    transformer = {"d_model": d_model, "n_layer": 2, "n_head": 2, "d_ff": 2 * d_model, "positions": "learned"}
    return [
        Side("Transformer", "transformer", transformer),
        Side("LSTM", "lstm", {"d_model": d_model, "n_layer": 2}),
    ]


def checks(updates: int) -> list[int]:
    """Updates after which the losses are taken: about ``CHECKS``, evenly, with the first and the last."""
    return sorted({*range(0, updates, max(1, updates // CHECKS)), updates})


def writing_updates(looks: Sequence[int]) -> set[int]:
    """Those after which samples are written too: closer in the first half, where most is learned."""
    last = len(looks) - 1
    return {looks[last * eighths // 8] for eighths in (0, 1, 2, 3, 4, 6, 8)}


def measure(settings: TrainingSettings, report: Report) -> Tables:
    corpus = settings.read()
    tables: Tables = {"corpus": [corpus_row(corpus, settings)], "runs": [], "copies": [], "samples": []}
    tables |= {"rates": [], "losses": [], "best": []}
    lesson = Lesson(corpus, settings, tables, report)
    for side in sides(settings.d_model):
        for rate in settings.rates:
            lesson.take(side, [Replica(seed, rate) for seed in settings.seed_numbers])
    tables["rates"] = curves.rate_rows(tables)
    losses = curves.curves(tables)
    tables["losses"], tables["best"] = curves.loss_rows(losses), curves.best_rows(losses)
    return tables | {name: curves.at_chosen_rate(tables, name) for name in ("copies", "samples")}


@dataclass
class Lesson:
    """Trains cohorts one after the other and writes down what it sees of them."""

    corpus: WordCorpus
    settings: TrainingSettings
    tables: Tables
    report: Report
    done: int = 0

    def __post_init__(self) -> None:
        self.training, self.held_out = map(self.corpus.task, (self.corpus.training, self.corpus.held_out))
        self.prompt = self.corpus.beginning(self.settings.prompt)
        self.looks = checks(self.settings.updates)
        self.samples = -(-self.settings.samples // self.settings.seeds)
        self.all = 2 * self.settings.seeds * len(self.settings.rates) * len(self.looks)

    def take(self, side: Side, members: list[Replica]) -> None:
        cohort = Cohort(side, self.training, members)
        writing = writing_updates(self.looks)
        for update in self.looks:
            while cohort.done < update:
                cohort.update()
            self.tables["runs"] += self.losses(cohort)
            if update in writing:
                self.write(cohort)
            self.done += len(members)
            text = f"{side.name}, {params(cohort.model, len(members)):,} parameters: update {update}"
            self.report(self.done / self.all, text, self.tables)

    def losses(self, cohort: Cohort) -> list[Row]:
        return [
            cohort.label(member) | {"which": which, "value": float(loss), "tokens": task.answers}
            for which, task in ((curves.TRAINING, self.training), (curves.HELD_OUT, self.held_out))
            for member, loss in zip(cohort.members, mean_loss(cohort, task), strict=True)
        ]

    def write(self, cohort: Cohort) -> None:
        seeds = [member.seed for member in cohort.members]
        context = self.corpus.context
        written = write(cohort.model, self.prompt, context, seeds, cohort.done, self.samples)
        known: set[Sentence] = {(*sentence, END) for sentence in self.corpus.training}
        for member, (greedy, *samples) in zip(cohort.members, written, strict=True):
            hits = sum(sentence in known for sentence in samples)
            copied = {"hits": hits, **share(hits, len(samples)).row()}
            self.tables["copies"].append(cohort.label(member) | copied)
            self.tables["samples"] += [
                cohort.label(member) | {"decoding": decoding, **self.describe(sentence, known)}
                for decoding, sentence in ((GREEDY, greedy), (DRAWN, samples[0]))
            ]

    def describe(self, sentence: Sentence, known: set[Sentence]) -> Row:
        """What is said of a sentence; ``longest``: its longest run of own words that training has too."""
        words = sentence[:-1] if sentence[-1] == END else sentence
        new = words[len(self.prompt) :]
        return {
            "text": self.corpus.text(words) + ("" if sentence[-1] == END else " …"),
            "copied": sentence in known,
            "longest": longest_copied(new, self.corpus.training),
            "words": len(new),
        }


def mean_loss(cohort: Cohort, task: SameSentences) -> np.ndarray:
    """Nats a token over all sentences, (K,)."""
    members = len(cohort.members)
    x_KBT, y_KBT = (
        torch.from_numpy(part).expand(members, -1, -1)
        for part in task.batch(np.random.default_rng(0), len(task.sentences))
    )
    with torch.inference_mode():
        loss_KBT = losses(cohort.model(x_KBT), y_KBT).total
        loss_K = mean_over_asked(loss_KBT, y_KBT).double().numpy()
    if not np.isfinite(loss_K).all():
        raise RunError(f"a loss of the {cohort.side.name} is not finite", mend="try smaller rates")
    return loss_K


def corpus_row(corpus: WordCorpus, settings: TrainingSettings) -> Row:
    prompt = corpus.beginning(settings.prompt)
    return {
        "training": len(corpus.training),
        "held_out": len(corpus.held_out),
        "repeats_dropped": corpus.dropped,
        "vocabulary": corpus.vocab,
        "training_tokens": corpus.task(corpus.training).answers,
        "held_out_tokens": corpus.task(corpus.held_out).answers,
        "held_out_unknown": sum(sentence.count(UNKNOWN) for sentence in corpus.held_out),
        "floor": corpus.floor,
        "uniform": corpus.uniform,
        "own_sentences": bool(settings.corpus.strip()),
        "begin_with_prompt": sum(s[: len(prompt)] == prompt for s in corpus.training),
    }
