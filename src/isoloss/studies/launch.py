"""A study by name or file: read, planned, and then only costed, or run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from isoloss.corpus import library
from isoloss.errors import InputError
from isoloss.models import load_file
from isoloss.studies import runner, spec
from isoloss.studies.estimate import machine_rate
from isoloss.studies.plan import PlannedRun, plan
from isoloss.studies.spec import Scale, Study
from isoloss.training.device import find
from isoloss.training.settings import Execution


@dataclass(frozen=True)
class Forecast:
    """A study before it starts: its runs, the workers it would get, what the estimates rest on, warnings."""

    study: str
    scale: str
    runs: list[PlannedRun]
    workers: int
    basis: str
    warnings: list[str]


def forecast(study: str, scale: str, changes: Sequence[str], family_files: Sequence[Path] = ()) -> Forecast:
    """Plan a study and estimate its cost; writes nothing.

    A scale meant for a GPU is costed for one, whether or not one is here.
    """
    read, chosen = read_study(study, scale, changes, family_files)
    here = chosen.device.startswith("cuda") or (chosen.device == "auto" and torch.cuda.is_available())
    gpu = here or chosen.meant_for == "gpu"
    runs = plan_of(study, chosen, gpu=gpu)
    workers = runner.gpu_count() if here else 1 if gpu else runner.cores()
    return Forecast(read.name, scale, runs, workers, machine_rate(gpu).basis, text_warnings(chosen, runs))


def launch(
    study: str,
    *,
    scale: str = "mini",
    out: str | Path | None = None,
    changes: Sequence[str] = (),
    workers: int | None = None,
    family_files: Sequence[Path] = (),
    checkpoint_seconds: float = 30.0,
    keep_weights: bool = False,
    console: Console | None = None,
) -> runner.StudyOutcome:
    """Train what the study's folder does not hold yet. Raises InputError before anything is written."""
    read, chosen = read_study(study, scale, changes, family_files)
    runs = plan_of(study, chosen, gpu=find(chosen.device).type == "cuda")
    folder = Path(out) if out is not None else Path("studies") / f"{read.name}-{scale}"
    execution = Execution(
        device=chosen.device,
        micro_batches=chosen.micro_batches,
        checkpoint_seconds=checkpoint_seconds,
        keep_weights=keep_weights,
    )
    return runner.run(
        read,
        scale,
        chosen,
        runs,
        folder,
        workers=workers,
        family_files=family_files,
        execution=execution,
        console=console,
    )


def read_study(
    study: str, scale: str, changes: Sequence[str], family_files: Sequence[Path]
) -> tuple[Study, Scale]:
    for path in family_files:
        load_file(path)
    read = spec.read(study)
    return read, spec.scale_of(read, scale, changes)


def plan_of(study: str, scale: Scale, *, gpu: bool) -> list[PlannedRun]:
    """The plan, whose complaints name the study they are about."""
    try:
        return plan(scale, gpu=gpu)
    except InputError as error:
        where = f"study {study}" + (f", {error.where}" if error.where else "")
        raise InputError(error.what, where=where, mend=error.mend) from None


def text_warnings(scale: Scale, runs: Sequence[PlannedRun]) -> list[str]:
    """More tokens than the corpus has bytes means that text repeats: said before the money is spent."""
    text_bytes = library.info(scale.corpus).train_bytes
    most = max(run.settings.tokens[-1] for run in runs)
    if most < text_bytes:
        return []
    return [
        f"{most:,} tokens are more than the {text_bytes:,} bytes of {scale.corpus!r}: every text would "
        "repeat; add a larger corpus and name it with --set corpus=NAME"
    ]
