"""A study by name or file: read, planned, its own families checked, and then only costed, or run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from isoloss import text
from isoloss.errors import InputError
from isoloss.models import load_file
from isoloss.strict import key_and_value, validate
from isoloss.studies import runner, spec
from isoloss.studies.engines import ray, slurm
from isoloss.studies.engines.messages import Engine
from isoloss.studies.estimate import machine_rate
from isoloss.studies.own_families import check_families
from isoloss.studies.plan import PlannedRun, plan, training_tokens, wall_seconds
from isoloss.studies.spec import Scale, Study
from isoloss.studies.stop import StopSignal
from isoloss.training.device import find

REMOTE = {"ray": ray, "slurm": slurm}

BUSY = 0.75
"""Load a core from which an estimate is said to be too short."""


@dataclass(frozen=True)
class DryRun:
    """A study before it starts: its runs, the workers it would get, what the estimates rest on, warnings.

    ``families``: what checking each family that is not isoloss's own has found.
    """

    study: str
    scale: str
    runs: list[PlannedRun]
    workers: int
    basis: str
    warnings: list[str]
    families: dict[str, dict[str, str]]


def dry_run(
    study: str,
    scale: str,
    changes: Sequence[str],
    family_files: Sequence[str | Path] = (),
    *,
    out: str | Path | None = None,
    engine: str = "local",
    engine_settings: Sequence[str] = (),
    gpu: bool = False,
) -> DryRun:
    """Plan a study, check its families and estimate its cost; writes nothing.

    A scale meant for a GPU is costed for one, whether or not one is here; with ``gpu`` any scale is. A
    cluster is costed with as many workers as there are runs; whether it answers is not asked.
    Raises InputError for what ``launch`` would refuse of the engine, its settings and the folder.
    """
    read, chosen = read_study(study, scale, changes, family_files)
    runner.refuse_folder(folder_of(read, scale, out), read)
    remote = engine != "local" or bool(engine_settings)
    if remote:
        engine_of(engine, engine_settings, chosen, None)
    here = chosen.device.startswith("cuda") or (chosen.device == "auto" and torch.cuda.is_available())
    gpu = gpu or here or chosen.meant_for == "gpu"
    runs = plan_of(study, chosen, gpu=gpu)
    workers = len(runs) if remote else runner.gpu_count() if here else 1 if gpu else runner.cores()
    families = check_families(runs, find("auto" if here else "cpu"))
    warnings = [
        *size_warnings(runs),
        *text_warnings(chosen, runs),
        *([] if gpu or remote else load_warnings(runs, workers)),
    ]
    return DryRun(read.name, scale, runs, workers, machine_rate(gpu).basis, warnings, families)


def launch(
    study: str,
    *,
    scale: str = "mini",
    out: str | Path | None = None,
    changes: Sequence[str] = (),
    engine: str = "local",
    engine_settings: Sequence[str] = (),
    workers: int | None = None,
    family_files: Sequence[str | Path] = (),
    checkpoint_seconds: float = 30.0,
    keep_weights: bool = False,
    console: Console | None = None,
    stop: StopSignal | None = None,
) -> runner.StudyOutcome:
    """Train what the study's folder does not hold yet. Raises InputError before anything is
    written, also where the engine cannot be reached.

    KeyboardInterrupt where ``stop`` is asked before the first run begins, as while text is tokenized.
    """
    with stop or StopSignal() as stop:
        stop.raise_at_once()
        read, chosen = read_study(study, scale, changes, family_files)
        where = engine_of(engine, engine_settings, chosen, workers)
        device = find(chosen.device if engine == "local" else "cpu")
        runs = plan_of(study, chosen, gpu=where.gpu)
        arguments = [study, "--scale", scale]
        for option, values in (("--set", changes), ("--family", family_files)):
            arguments += [word for value in values for word in (option, str(value))]
        folder = folder_of(read, scale, out)
        there = "cuda" if where.gpu else "cpu"
        execution = chosen.execution.model_copy(
            update={
                "device": there if engine != "local" and chosen.device == "auto" else chosen.device,
                "checkpoint_seconds": checkpoint_seconds,
                "keep_weights": keep_weights,
            }
        )
        return runner.run(
            read,
            scale,
            chosen,
            runs,
            folder,
            engine=where,
            family_files=[Path(path).absolute() for path in family_files],
            origin={"arguments": arguments, "families": check_families(runs, device)},
            execution=execution,
            console=console or Console(stderr=True),
            stop=stop,
        )


def folder_of(study: Study, scale: str, out: str | Path | None) -> Path:
    return Path(out) if out is not None else Path("studies") / f"{study.name}-{scale}"


def engine_of(name: str, changes: Sequence[str], scale: Scale, workers: int | None) -> Engine:
    """The engine with its KEY=VALUE settings; a study that is meant for GPUs takes one a rank.

    Raises InputError for an engine or a setting that there is not.
    """
    values = dict(key_and_value(change, example="--engine-set gpus=1") for change in changes)
    if name == "local" and not values:
        return runner.local_engine(scale.device, workers, scale.ranks)
    if name not in REMOTE:
        what = f"there is no engine {name!r}" if name != "local" else "the local engine has no settings"
        raise InputError(what, where="--engine", mend=f"use local, {' or '.join(REMOTE)}")
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers train nothing", mend="give workers of 1 or more")
    module = REMOTE[name]
    options = validate(module.Options, values, where="--engine-set", mend=spec.CHANGE, by_hand=True)
    if options.gpus is None and (scale.meant_for == "gpu" or scale.device.startswith("cuda")):
        options = options.model_copy(update={"gpus": scale.ranks})
    options = options.model_copy(update={"cpus": max(options.cpus, scale.ranks)})
    sharers = max(1.0, 1.0 / (options.gpus or 1.0))
    return Engine(
        bool(options.gpus),
        partial(module.run, options, workers),
        sharers=sharers,
        check=partial(module.check, options),
    )


def read_study(
    study: str, scale: str, changes: Sequence[str], family_files: Sequence[str | Path]
) -> tuple[Study, Scale]:
    for path in family_files:
        load_file(Path(path))
    read = spec.read(study)
    return read, spec.scale_of(read, scale, changes)


def plan_of(study: str, scale: Scale, *, gpu: bool) -> list[PlannedRun]:
    """The plan, whose complaints name the study they are about."""
    try:
        return plan(scale, gpu=gpu)
    except InputError as error:
        where = f"study {study}" + (f", {error.where}" if error.where else "")
        raise InputError(error.what, where=where, mend=error.mend) from None


def size_warnings(runs: Sequence[PlannedRun]) -> list[str]:
    """Which of the shapes that were solved for an N miss it, and by how much; a line an N."""
    missed: dict[int, dict[str, float]] = {}
    for run in runs:
        if run.target is not None and abs(miss := run.counts.params / run.target - 1) >= 0.0005:
            missed.setdefault(run.target, {})[run.label] = miss
    return [
        f"of the shapes solved for N = {target:,} these miss it: "
        + ", ".join(f"{label} by {miss:+.1%}" for label, miss in shapes.items())
        for target, shapes in missed.items()
    ]


def load_warnings(runs: Sequence[PlannedRun], workers: int) -> list[str]:
    """The estimate is of cores by themselves; with others' work on them a worker gets its share of one."""
    load, cores = os.getloadavg()[0], runner.cores()
    if load < BUSY * cores:
        return []
    longer = (load + workers) / cores
    wall = text.duration(longer * wall_seconds(runs, workers))
    said = f"the machine is busy (load {load:.1f} on {cores} cores)"
    return [f"{said}: count on {longer:.1f} times as long, {wall}"]


def text_warnings(scale: Scale, runs: Sequence[PlannedRun]) -> list[str]:
    """More tokens than the corpus has means that text repeats: said before the money is spent."""
    there = training_tokens(scale)
    times = max(run.settings.tokens[-1] for run in runs) / there
    if times <= 1:
        return []
    return [
        f"the longest run takes {text.count(times * there)} tokens, and {scale.corpus!r} has about "
        f"{text.count(there)}: the text would be read about {times:,.{1 if times < 10 else 0}f} times; add a "
        "larger corpus and name it with --set corpus=NAME"
    ]
