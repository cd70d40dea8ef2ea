"""From a study's scale to its runs: settings, names, counts and estimates. Trains nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.corpus import library
from isoloss.corpus.tokenizer import load_tokenizer, tokenizer_hash, vocabulary_size
from isoloss.errors import InputError
from isoloss.models import Shape, count, family, shape_of
from isoloss.models.fixed_size import solved
from isoloss.strict import validate
from isoloss.studies import estimate
from isoloss.studies.spec import Models, Scale
from isoloss.training.distributed import check_execution
from isoloss.training.recipe import learning_rate
from isoloss.training.settings import RunSettings
from isoloss.units import Count

MEND = "change it in the study's file, or a key of its scale with --set KEY=VALUE"


@dataclass(frozen=True)
class PlannedRun:
    """One run before it starts. ``seconds`` and ``memory_bytes`` are estimates; ``target``: the N asked."""

    settings: RunSettings
    label: str
    counts: Count
    seconds: float
    memory_bytes: float
    target: int | None = None

    @property
    def run_id(self) -> str:
        return self.settings.run_id

    def as_row(self) -> dict[str, Any]:
        """The row of ``run --dry-run --json`` and of study.json."""
        settings, tokens = self.settings, self.settings.tokens[-1]
        return {
            "run_id": self.run_id,
            "family": settings.family,
            "label": self.label,
            **self.counts.params_by_rule(),
            "tokens": tokens,
            "flops_6nd": self.counts.flops_6nd(tokens),
            "flops_exact": self.counts.flops_exact(tokens),
            "seconds": round(self.seconds, 2),
            "memory_bytes": round(self.memory_bytes),
            "seed": settings.seed,
            "learning_rate": settings.learning_rate,
        }


@dataclass(frozen=True)
class TextLength:
    """Tokens of either side of a corpus: ``counted``, else as many as it can have, one a byte."""

    train: int
    validation: int
    counted: bool = True

    def likely_validation(self, vocab: int) -> int:
        return self.likely(self.validation, vocab)

    def likely(self, tokens: int, vocab: int) -> int:
        """The starter has 2.5 bytes a token of 1,024; each doubling of the vocabulary takes about as much."""
        return tokens if self.counted else round(tokens / (log2(vocab) / 4))


def training_tokens(scale: Scale) -> int:
    """Of the scale's corpus: counted where an earlier run has tokenized it, else about so many."""
    tokenizer, vocab = identify_tokenizer(scale)
    length = length_of(library.info(scale.corpus), tokenizer)
    return length.likely(length.train, vocab)


def plan(scale: Scale, *, gpu: bool) -> list[PlannedRun]:
    """Every run of the scale, in the file's order.

    Raises InputError for a shape or setting that cannot be, such as a context longer than the text.
    """
    info = library.info(scale.corpus)
    tokenizer, vocab = identify_tokenizer(scale)
    text = {"corpus_hash": info.corpus_hash, "tokenizer": tokenizer, "vocab": vocab}
    length = length_of(info, tokenizer)
    check_contexts(scale, length)
    validation = length.likely_validation(vocab)
    runs = [
        run
        for models in scale.models
        for values in models.shapes
        for run in runs_of_shape(scale, models, values, text, validation, gpu)
    ]
    run_id, times = Counter(run.run_id for run in runs).most_common(1)[0]
    if times > 1:
        raise InputError(f"the study names a run twice: {run_id}", mend="remove the repeated shape or seed")
    return runs


def identify_tokenizer(scale: Scale) -> tuple[str, int]:
    """Its identity in the settings and its vocabulary, without tokenizing anything."""
    if scale.tokenizer is None:
        return f"bpe-{scale.vocabulary}", scale.vocabulary
    tokenizer = load_tokenizer(Path(scale.tokenizer))
    return f"file-{tokenizer_hash(tokenizer)}", vocabulary_size(tokenizer)


def length_of(info: library.CorpusInfo, tokenizer: str) -> TextLength:
    """From the token files of an earlier run where they are there, else from the bytes."""
    kind = tokenizer if tokenizer.startswith("bpe-") else f"tokenizer-{tokenizer.removeprefix('file-')[:16]}"
    folder = files.home() / "tokens" / f"{info.corpus_hash[:16]}-{kind}"
    if folder.is_dir():
        corpus = library.open_tokenized(folder, info.corpus_hash)
        return TextLength(corpus.train.tokens, corpus.validation.tokens)
    train = info.train_bytes + info.train_documents  # each ends in a token of its own
    return TextLength(train, info.validation_bytes + info.validation_documents, counted=False)


def check_contexts(scale: Scale, length: TextLength) -> None:
    """Refuse before training what the text cannot give: a context, or two validation windows."""
    context = max(models.context or scale.context for models in scale.models)
    for split, tokens, windows in (("train", length.train, 1), ("validation", length.validation, 2)):
        if tokens < windows * context + 1:
            least = "" if length.counted else "at most "
            raise InputError(
                f"the {split} text has {least}{tokens:,} tokens, "
                f"too few for {'one context' if windows == 1 else 'two contexts'} of {context:,}",
                where=f"corpus {scale.corpus}",
                mend="use a shorter context, or more text",
            )


def runs_of_shape(
    scale: Scale,
    models: Models,
    values: dict[str, Any],
    text: dict[str, Any],
    validation: int,
    gpu: bool,
) -> Iterator[PlannedRun]:
    """One shape with each of its learning rates and seeds.

    ``text``: corpus, tokenizer and vocabulary; ``validation``: about how many tokens are held out.
    """
    shape = shape_in(models, values)
    kind = family(models.family)
    context, batch_size = sequences(scale, models)
    counts = count(kind, shape, text["vocab"], context)
    check_execution(scale.execution, shape, batch_size, where=f"models of family {models.family}")
    rates = models.learning_rates or [learning_rate(models.family, counts.params, shape.model_dump())]
    for rate, seed in product(rates, models.seeds or scale.seeds):
        run = {
            **text,
            "family": models.family,
            "family_source": kind.source,
            "shape": shape.model_dump(mode="json"),
            "context": context,
            "batch_size": batch_size,
            "tokens": tuple(models.tokens or scale.tokens),
            "learning_rate": rate,
            "seed": seed,
            "recipe": scale.recipe,
            "evaluation": scale.evaluation,
        }
        settings = validate(RunSettings, run, where="study", mend=MEND, by_hand=True)
        machine = estimate.machine_rate(gpu)
        cost = estimate.cost(settings, shape, counts, scale.micro_batches, machine, validation)
        short = f", context {context}" if models.context else ""
        yield PlannedRun(settings, label(settings) + short, counts, *cost, target=models.params)


def sequences(scale: Scale, models: Models) -> tuple[int, int]:
    """Context and batch size of an entry: as many tokens a step as the scale's, whatever its context."""
    context, tokens = models.context or scale.context, scale.batch_size * scale.context
    if tokens % context:
        raise InputError(
            f"a step of {tokens} tokens is no whole number of contexts of {context}",
            where=f"models of family {models.family}",
            mend=f"give a context that divides {tokens}",
        )
    return context, tokens // context


def shape_in(models: Models, values: dict[str, Any]) -> Shape:
    """One shape of an entry, solved for the entry's ``params`` where it has them. Raises InputError."""
    where, values = f"models of family {models.family}", models.shape | values
    if models.params is not None:
        if models.family != "transformer":
            mend = "leave params away and give the sizes, or use family transformer"
            raise InputError("params is solved for Transformers only", where=where, mend=mend)
        values = solved(values, models.params, where=where)
    return shape_of(models.family, values, where=where)


def label(settings: RunSettings) -> str:
    """A name for people: 'transformer 3x64', 'lstm 1x160', 'looped 2x64, 4 loops'."""
    shape = settings.shape
    size = f"{shape['n_layer']}x{shape['d_model']}" if {"n_layer", "d_model"} <= shape.keys() else ""
    loops = f", {shape['recurrence']} loops" if "recurrence" in shape else ""
    return f"{settings.family} {size}{loops}".strip()


def designs(runs: Sequence[PlannedRun]) -> list[list[PlannedRun]]:
    """Runs that differ only in their seed, in the order of their first."""
    alike: dict[str, list[PlannedRun]] = {}
    for run in runs:
        alike.setdefault(run.settings.model_copy(update={"seed": 0}).hash, []).append(run)
    return list(alike.values())


def wall_seconds(runs: Sequence[PlannedRun], workers: int) -> float:
    """Estimated, on so many workers: no shorter than the longest run."""
    seconds = [run.seconds for run in runs]
    return max(*seconds, sum(seconds) / workers)


def cohorts(runs: Sequence[PlannedRun], most: Callable[[PlannedRun, int], int]) -> list[list[PlannedRun]]:
    """Runs that can train as one module (equal but for seed and rate).

    At most ``most`` of the first and of how many there are.
    """
    alike: dict[str, list[PlannedRun]] = {}
    for run in runs:
        same = run.settings.model_copy(update={"seed": 0, "learning_rate": 1.0}).hash
        alike.setdefault(same, []).append(run)
    groups: list[list[PlannedRun]] = []
    for group in alike.values():
        size = most(group[0], len(group))
        groups += [group[i : i + size] for i in range(0, len(group), size)]
    return groups
