"""Running a study: plan it, write the plan down, train what is missing, say what came of it."""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from isoloss import files, text
from isoloss.corpus import library
from isoloss.errors import InputError, RunError
from isoloss.records.schema import Record
from isoloss.records.store import check, is_finished, read_plan, read_record, run_folder
from isoloss.studies.engines import local
from isoloss.studies.engines.messages import Ended, Engine, Held
from isoloss.studies.gpu import calibrated, execution_on_gpu, members_at_once
from isoloss.studies.plan import PlannedRun, TextLength, check_contexts, cohorts
from isoloss.studies.progress import Board
from isoloss.studies.spec import Scale, Study
from isoloss.studies.status import holder
from isoloss.studies.stop import StopSignal
from isoloss.training.device import find
from isoloss.training.distributed import check_ranks
from isoloss.training.recipe import swept
from isoloss.training.settings import Execution
from isoloss.training.task import Member, Progress, Task
from isoloss.version import __version__


@dataclass(frozen=True)
class StudyOutcome:
    """Of the planned runs: here before, newly ended, failed or diverged and why; whether it was cut short.

    ``queued``: left to an engine that trains them without this command.
    """

    folder: Path
    planned: int
    already: int
    ended: int
    failed: dict[str, str]
    diverged: dict[str, str]
    stopped: bool
    queued: int = 0


def run(
    study: Study,
    scale_name: str,
    scale: Scale,
    runs: Sequence[PlannedRun],
    folder: Path,
    *,
    engine: Engine,
    family_files: Sequence[Path],
    execution: Execution,
    origin: Mapping[str, object],
    console: Console,
    stop: StopSignal,
) -> StudyOutcome:
    """Train every planned run that ``folder`` does not hold yet. Safe to kill, safe to call twice at once.

    ``origin``: the command's arguments and what was checked of families, for study.json.
    ``stop``: to be asked to end.
    """
    refuse_folder(folder, study)
    folders = {run.run_id: run_folder(folder.absolute(), run.run_id) for run in runs}
    there = {run_id: divergence(check(place)) for run_id, place in folders.items() if is_finished(place)}
    missing = [run for run in runs if run.run_id not in there]
    if other := sum(is_finished(place) for place in (folder / "runs").glob("*") if place.name not in folders):
        runs_here = f"{text.plural(other, 'finished run')} of other settings in {folder}"
        say(console, f"{runs_here}: kept, but no part of this plan")
    before = {run_id: reason for run_id, reason in there.items() if reason is not None}
    planned = plan_json(study, scale_name, scale, runs) | dict(origin)
    if not missing:
        write_plan(folder, study, planned)
        return outcome_of(folder, runs, missing, [], before, stopped=False)
    engine.check()
    check_folder(folder)
    say(console, f"reading {scale.corpus}, which is tokenized at its first use ...")
    tokenizer = Path(scale.tokenizer) if scale.tokenizer else None
    corpus = library.tokenize(scale.corpus, scale.vocabulary, tokenizer)
    check_contexts(scale, TextLength(corpus.train.tokens, corpus.validation.tokens))
    write_plan(folder, study, planned)

    def how(run: PlannedRun) -> Execution:
        return execution_on_gpu(run, execution, sharers=engine.sharers) if engine.gpu else execution

    def task_of(group: Sequence[PlannedRun]) -> Task:
        return Task(
            study=study.name,
            members=tuple(
                Member(run.settings, run.label, run_folder(folder.absolute(), run.run_id)) for run in group
            ),
            corpus=scale.corpus,
            tokens=corpus.tokenizer_path.parent.absolute(),
            execution=how(group[0]),
            family_files=tuple(family_files),
        )

    how_many = partial(
        most_members, engine=engine, execution=execution, task_of=task_of, say=partial(say, console)
    )
    groups = groups_of(missing, how_many)
    tasks = [task_of(group) for group in groups]
    seconds = {group[0].run_id: sum(run.seconds for run in group) for group in groups}
    total = sum(run.seconds for run in runs)
    ended: list[Ended] = []
    stop.at_once = False  # from here on there are checkpoints to be kept
    with Board(console, seconds, total - sum(seconds.values()), total) as board:
        for message in engine.run(tasks, lambda: stop.times):
            if isinstance(message, Progress):
                board.update(message)
            elif isinstance(message, Held):
                board.say(f"{name_of(message.task)}: {who_trains(message.task)}; waiting for it to end")
            else:
                ended.append(message)
                board.end(message.task.lead.run_id, sentence(message), message.outcome)
    return outcome_of(folder, runs, missing, ended, before, stopped=stop.asked)


def outcome_of(
    folder: Path,
    runs: Sequence[PlannedRun],
    missing: Sequence[PlannedRun],
    ended: Sequence[Ended],
    before: Mapping[str, str],
    *,
    stopped: bool,
) -> StudyOutcome:
    members = [(end, member.run_id) for end in ended for member in end.task.members]
    count = Counter(end.outcome for end, _ in members)
    return StudyOutcome(
        folder=folder,
        planned=len(runs),
        already=len(runs) - len(missing) + count["elsewhere"],
        ended=count["done"] + count["diverged"],
        failed={run_id: end.reason for end, run_id in members if end.outcome == "failed"},
        diverged={**before, **diverged(folder, missing)},
        stopped=stopped and count.total() - count["stopped"] < len(missing),
        queued=count["queued"],
    )


def diverged(folder: Path, runs: Sequence[PlannedRun]) -> dict[str, str]:
    """Why, of each of the runs that ended so."""
    folders = [run_folder(folder, run.run_id) for run in runs]
    reasons = {place.name: divergence(read_record(place)) for place in folders if is_finished(place)}
    return {run_id: reason for run_id, reason in reasons.items() if reason is not None}


def divergence(record: Record) -> str | None:
    return record.reason if record.status == "diverged" else None


def plan_json(study: Study, scale_name: str, scale: Scale, runs: Sequence[PlannedRun]) -> dict[str, object]:
    """study.json: what the folder is meant to hold."""
    by_recipe = {models.family for models in scale.models if models.learning_rates is None}
    return {
        "study": study.name,
        "title": study.title,
        "scale": scale_name,
        "isoloss": __version__,
        "swept": {family: sizes for family, sizes in swept().items() if family in by_recipe},
        "spec": scale.model_dump(mode="json"),
        "runs": [
            {
                "run_id": run.run_id,
                "label": run.label,
                "settings": run.settings.model_dump(mode="json"),
                "counts": run.counts.params_by_rule(),
            }
            for run in runs
        ],
    }


def write_plan(folder: Path, study: Study, planned: Mapping[str, object]) -> None:
    """study.json, unless it says the same already."""
    path = folder / "study.json"
    with files.claim(folder / ".plan.lock", wait_seconds=30.0) as mine:
        if not mine:
            raise RunError(
                "another process has been writing the plan for long", where=str(path), mend="try again"
            )
        refuse_other_study(folder, study)
        if not path.is_file() or read_plan(folder) != planned:
            files.write_json(path, planned)


def refuse_folder(folder: Path, study: Study) -> None:
    """Raises InputError for an address of a store, which cannot lock or rename in one step, and as below."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", folder.as_posix()):
        mend = "name a folder, on several machines one of a file system that all of them mount"
        raise InputError("is an address, not a folder", where=f"--out {folder}", mend=mend)
    refuse_other_study(folder, study)


def check_folder(folder: Path) -> None:
    """Raises InputError where it cannot be made, before minutes of tokenizing; leaves nothing."""
    try:
        files.try_folder(folder)
    except OSError as error:
        what = f"cannot be made: {error.strerror}"
        raise InputError(what, where=f"--out {folder}", mend="choose another folder with --out") from None


def refuse_other_study(folder: Path, study: Study) -> None:
    """Raises InputError if ``folder`` is a file, or holds another study or a damaged plan."""
    other = "choose another folder with --out"
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise InputError("is not a folder", where=str(nearest), mend=other)
    if not os.access(nearest, os.W_OK):
        raise InputError("cannot be written to", where=str(nearest), mend=other)
    if (folder / "study.json").is_file() and (planned := read_plan(folder)["study"]) != study.name:
        raise InputError(f"holds the study {planned!r}, not {study.name!r}", where=str(folder), mend=other)


def say(console: Console, words: str) -> None:
    console.print(words, highlight=False, markup=False)


def most_members(
    run: PlannedRun,
    alike: int,
    *,
    engine: Engine,
    execution: Execution,
    task_of: Callable[[Sequence[PlannedRun]], Task],
    say: Callable[[str], None],
) -> int:
    """How many such runs make a cohort: one with ranks, and on a CPU, whose cores are better used apart."""
    if not engine.gpu or execution.ranks > 1:
        return 1
    if engine.here:
        return calibrated(run, task_of, engine.sharers, alike=alike, say=say)
    return members_at_once(run, sharers=engine.sharers)


def groups_of(
    missing: Sequence[PlannedRun], most: Callable[[PlannedRun, int], int]
) -> list[list[PlannedRun]]:
    """Cohorts of at most so many, the biggest first."""
    return sorted(cohorts(missing, most), key=lambda group: -sum(run.seconds for run in group))


def name_of(task: Task) -> str:
    """'transformer 3x64, seed 0 and 2 more'."""
    many = f" and {len(task.members) - 1} more" if len(task.members) > 1 else ""
    return f"{task.lead.label}, seed {task.lead.settings.seed}{many}"


def who_trains(task: Task) -> str:
    number = next(filter(None, (holder(member.folder) for member in task.members)), None)
    return "another process trains it" if number is None else f"process {number} of this machine trains it"


def sentence(end: Ended) -> str:
    has_checkpoint = (end.task.lead.folder / "checkpoints").is_dir()
    words = {
        "done": "finished",
        "diverged": f"DIVERGED: {end.reason}",
        "elsewhere": "finished by another process",
        "stopped": "stopped; its checkpoint is kept"
        if has_checkpoint
        else "stopped before its first checkpoint",
        "queued": "queued",
        "failed": f"FAILED: {end.reason}",
    }
    return f"{name_of(end.task)}: {words.get(end.outcome, end.outcome)}"


def local_engine(device: str, workers: int | None, ranks: int) -> Engine:
    """This machine's cores or devices. Raises InputError for a device that is not here."""
    check_ranks(ranks, find(device))
    places = devices(device, workers, ranks)
    sharers = max(map(places.count, places))
    return Engine(places[0].startswith("cuda"), partial(local.run, places), here=True, sharers=sharers)


def devices(wanted: str, workers: int | None, ranks: int = 1) -> list[str]:
    """One entry a worker: every GPU in turn where any will do, else the one device, once a core.

    With ranks a worker has as many GPUs, of which the first stands here, or as many cores.

    Raises InputError for less than one worker, which would wait for ever.
    """
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers train nothing", mend="give workers of 1 or more")
    kind = find(wanted).type
    if kind == "cuda" and ":" not in wanted:
        groups = max(1, gpu_count() // ranks)
        return [f"cuda:{number % groups * ranks}" for number in range(workers or groups)]
    device = wanted if ":" in wanted else kind
    return [device] * (workers or (max(1, cores() // ranks) if kind == "cpu" else 1))


def cores() -> int:
    """Cores this process may use, which in a container is fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpu_count() -> int:
    return max(1, torch.cuda.device_count())
