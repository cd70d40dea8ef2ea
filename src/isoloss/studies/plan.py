"""From a study's scale to its runs: settings, names, counts and estimates. Trains nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from isoloss.corpus import library
from isoloss.corpus.tokenizer import load_tokenizer, tokenizer_hash, vocabulary_size
from isoloss.errors import InputError
from isoloss.models import Shape, count, family, shape_of
from isoloss.studies import estimate
from isoloss.studies.spec import Models, Scale, problem
from isoloss.training.recipe import learning_rate
from isoloss.training.schedule import trace_steps, updates
from isoloss.training.settings import RunSettings
from isoloss.units import Count


@dataclass(frozen=True)
class PlannedRun:
    """One run before it starts. ``seconds`` and ``memory_bytes`` are estimates."""

    settings: RunSettings
    label: str
    counts: Count
    seconds: float
    memory_bytes: float

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
            "params": self.counts.params,
            "params_total": self.counts.params_total,
            "params_executed": self.counts.params_executed,
            "tokens": tokens,
            "flops_6nd": self.counts.flops_6nd(tokens),
            "flops_exact": self.counts.flops_exact(tokens),
            "seconds": round(self.seconds, 2),
            "memory_bytes": round(self.memory_bytes),
            "seed": settings.seed,
            "learning_rate": settings.learning_rate,
        }


def plan(scale: Scale, *, gpu: bool, home: Path | None = None) -> list[PlannedRun]:
    """Every run of the scale, in the file's order. InputError for a shape or setting that cannot be."""
    corpus_hash = library.info(scale.corpus, home).corpus_hash
    tokenizer, vocab = identify_tokenizer(scale)
    runs = []
    for models in scale.models:
        for values in models.shapes:
            shape = shape_of(models.family, models.shape | values, where=f"models of family {models.family}")
            counted = count(family(models.family), shape, vocab, scale.context)
            for rate in rates(models, counted, shape):
                for seed in models.seeds if models.seeds is not None else scale.seeds:
                    settings = run_settings(scale, models, shape, corpus_hash, tokenizer, vocab, rate, seed)
                    runs.append(planned(settings, shape, counted, scale.micro_batches, gpu))
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


def rates(models: Models, counted: Count, shape: Shape) -> Sequence[float]:
    if models.learning_rates is not None:
        return models.learning_rates
    return [learning_rate(models.family, counted.params, shape.model_dump())]


def run_settings(
    scale: Scale,
    models: Models,
    shape: Shape,
    corpus_hash: str,
    tokenizer: str,
    vocab: int,
    rate: float,
    seed: int,
) -> RunSettings:
    try:
        return RunSettings(
            family=models.family,
            family_source=family(models.family).source,
            shape=shape.model_dump(mode="json"),
            corpus_hash=corpus_hash,
            tokenizer=tokenizer,
            vocab=vocab,
            context=scale.context,
            batch_size=scale.batch_size,
            tokens=tuple(scale.tokens),
            learning_rate=rate,
            seed=seed,
            recipe=scale.recipe,
            evaluation=scale.evaluation,
        )
    except ValidationError as error:
        raise problem(error, "study") from None


def planned(settings: RunSettings, shape: Shape, counted: Count, micro_batches: int, gpu: bool) -> PlannedRun:
    width = getattr(shape, "d_model", 64)
    layers = getattr(shape, "executed_layers", getattr(shape, "n_layer", 1))
    exits = getattr(shape, "n_exit", 1)
    trained = updates(settings) * settings.batch_tokens
    # A forward pass is a third of a training step.
    evaluated = evaluation_tokens(settings) / 3
    return PlannedRun(
        settings=settings,
        label=label(settings),
        counts=counted,
        seconds=estimate.seconds(counted.flops_exact(trained + evaluated), width, estimate.machine_rate(gpu)),
        memory_bytes=estimate.memory_bytes(
            counted.params_total, width, layers, exits, settings.batch_tokens // micro_batches, settings.vocab
        ),
    )


def evaluation_tokens(settings: RunSettings) -> int:
    wanted = settings.evaluation
    windows = len(trace_steps(settings)) * wanted.trace_windows + wanted.final_windows
    windows += (len(settings.tokens) - 1) * wanted.windows
    return windows * settings.context


def label(settings: RunSettings) -> str:
    """A name for people: 'transformer 3x64', 'lstm 1x160', 'looped 2x64, 4 loops'."""
    shape = settings.shape
    size = f"{shape['n_layer']}x{shape['d_model']}" if {"n_layer", "d_model"} <= shape.keys() else ""
    loops = f", {shape['recurrence']} loops" if "recurrence" in shape else ""
    return f"{settings.family} {size}{loops}".strip()


def cohorts(runs: Sequence[PlannedRun], most: int) -> list[list[PlannedRun]]:
    """Runs that can train as one module (equal but for seed and rate), at most ``most`` together."""
    alike: dict[str, list[PlannedRun]] = {}
    for run in runs:
        same = run.settings.model_copy(update={"seed": 0, "learning_rate": 1.0}).hash
        alike.setdefault(same, []).append(run)
    return [group[i : i + most] for group in alike.values() for i in range(0, len(group), most)]
