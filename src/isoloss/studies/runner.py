"""Running a study: plan it, write the plan down, train what is missing, say what came of it."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from isoloss import files
from isoloss.corpus import library
from isoloss.errors import InputError, RunError
from isoloss.records.store import check, is_finished, read_plan, run_folder
from isoloss.studies.engines import local
from isoloss.studies.plan import PlannedRun, cohorts
from isoloss.studies.progress import Board, clock
from isoloss.studies.spec import Scale, Study
from isoloss.training.device import find
from isoloss.training.settings import Execution
from isoloss.training.task import Member, Task
from isoloss.version import __version__

GPU_COHORT = 8
"""Members trained as one module on a GPU; on a CPU stacking gains nothing and cores are better used apart."""

GPU_COHORT_PARAMS = 5_000_000
"""Above this size one model fills the GPU by itself."""


@dataclass(frozen=True)
class StudyOutcome:
    """Of the planned runs: finished before, newly ended, failed and why; whether it was cut short."""

    folder: Path
    planned: int
    already: int
    ended: int
    failed: dict[str, str]
    diverged: dict[str, str]
    stopped: bool


def run(
    study: Study,
    scale_name: str,
    scale: Scale,
    runs: Sequence[PlannedRun],
    folder: Path,
    *,
    workers: int | None = None,
    family_files: Sequence[Path] = (),
    execution: Execution | None = None,
    home: Path | None = None,
    console: Console | None = None,
) -> StudyOutcome:
    """Train every planned run that ``folder`` does not hold yet. Safe to kill, safe to call twice at once."""
    console = console or Console(stderr=True)
    execution = execution or Execution(device=scale.device, micro_batches=scale.micro_batches)
    gpu, workplaces = find(execution.device).type == "cuda", devices(execution.device, workers)
    refuse_other_study(folder, study)
    places = {run.run_id: run_folder(folder, run.run_id) for run in runs}
    missing = [run for run in runs if not is_finished(places[run.run_id])]
    for run in runs:
        if run not in missing:
            check(places[run.run_id])
    already = len(runs) - len(missing)
    if not missing:
        write_plan(folder, study, scale_name, scale, runs)
        return StudyOutcome(folder, len(runs), already, 0, {}, {}, False)
    console.print(f"tokenizing {scale.corpus} (once; then reused) ...", highlight=False)
    tokenizer = Path(scale.tokenizer) if scale.tokenizer else None
    corpus = library.tokenize(scale.corpus, scale.vocabulary, tokenizer, home=home)
    check_against_text(runs, corpus)
    write_plan(folder, study, scale_name, scale, runs)
    tasks, weights = make_tasks(study, missing, folder, scale, corpus, execution, family_files, gpu)
    total = sum(run.seconds for run in runs)
    stop, ended = Stop(console), []
    reasons: dict[str, dict[str, str]] = {"failed": {}, "diverged": {}}
    with stop, Board(console, weights, total - sum(weights.values()), total) as board:

        def on_end(end: local.Ended) -> None:
            ended.append(end)
            if end.outcome in reasons:
                reasons[end.outcome] |= {member.run_id: end.reason for member in end.task.members}
            board.end(end.task.lead.run_id, sentence(end), end.outcome)

        local.run(tasks, workplaces, on_progress=board.update, on_end=on_end, should_stop=lambda: stop.asked)
    count = {kind: members_of(ended, kind) for kind in ("done", "diverged", "elsewhere", "failed")}
    return StudyOutcome(
        folder,
        len(runs),
        already + count["elsewhere"],
        count["done"] + count["diverged"],
        reasons["failed"],
        reasons["diverged"],
        stop.asked and sum(count.values()) < len(missing),
    )


def members_of(ended: Sequence[local.Ended], outcome: str) -> int:
    return sum(len(end.task.members) for end in ended if end.outcome == outcome)


def write_plan(folder: Path, study: Study, scale_name: str, scale: Scale, runs: Sequence[PlannedRun]) -> None:
    """study.json, unless it says the same already: what the folder is meant to hold."""
    planned = {
        "study": study.name,
        "title": study.title,
        "scale": scale_name,
        "isoloss": __version__,
        "spec": scale.model_dump(mode="json"),
        "runs": [
            {
                "run_id": run.run_id,
                "label": run.label,
                "settings": run.settings.model_dump(mode="json"),
                "counts": {
                    "params": run.counts.params,
                    "params_total": run.counts.params_total,
                    "params_executed": run.counts.params_executed,
                },
            }
            for run in runs
        ],
    }
    path = folder / "study.json"
    with files.claim(folder / ".plan.lock", wait_seconds=30.0) as mine:
        if not mine:
            raise RunError(
                "another process has been writing the plan for long", where=str(path), mend="try again"
            )
        refuse_other_study(folder, study)
        if not path.is_file() or read_plan(folder) != planned:
            files.write_json(path, planned)


def refuse_other_study(folder: Path, study: Study) -> None:
    """Raises InputError if ``folder`` is a file, or holds another study or a damaged plan."""
    other = "choose another folder with --out"
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise InputError("is not a folder", where=str(nearest), mend=other)
    if not os.access(nearest, os.W_OK):
        raise InputError("cannot be written to", where=str(nearest), mend=other)
    if (folder / "study.json").is_file() and (there := read_plan(folder)["study"]) != study.name:
        raise InputError(f"holds the study {there!r}, not {study.name!r}", where=str(folder), mend=other)


def check_against_text(runs: Sequence[PlannedRun], corpus: library.TokenizedCorpus) -> None:
    """Refuse before training what the text cannot give: a context, or two validation windows."""
    context = runs[0].settings.context
    for tokens, windows in ((corpus.train, 1), (corpus.validation, 2)):
        if tokens.tokens < windows * context + 1:
            raise InputError(
                f"the {tokens.split} text has {tokens.tokens:,} tokens, "
                f"too few for {windows} context(s) of {context:,}",
                where=str(tokens.path),
                mend="use a shorter context, or more text",
            )


def make_tasks(
    study: Study,
    missing: Sequence[PlannedRun],
    folder: Path,
    scale: Scale,
    corpus: library.TokenizedCorpus,
    execution: Execution,
    family_files: Sequence[Path],
    gpu: bool,
) -> tuple[list[Task], dict[str, float]]:
    """Cohorts, the biggest first, and the estimated seconds of each by its lead's run_id."""
    small = [run for run in missing if run.counts.params <= GPU_COHORT_PARAMS]
    large = [run for run in missing if run.counts.params > GPU_COHORT_PARAMS]
    groups = cohorts(small, GPU_COHORT if gpu else 1) + cohorts(large, 1)
    groups.sort(key=lambda group: -sum(run.seconds for run in group))
    tasks = [
        Task(
            study=study.name,
            members=tuple(Member(run.settings, run.label, run_folder(folder, run.run_id)) for run in group),
            corpus=scale.corpus,
            tokens=corpus.tokenizer_path.parent,
            execution=execution,
            family_files=tuple(family_files),
        )
        for group in groups
    ]
    return tasks, {group[0].run_id: sum(run.seconds for run in group) for group in groups}


def sentence(end: local.Ended) -> str:
    member = end.task.lead
    many = f" and {len(end.task.members) - 1} more" if len(end.task.members) > 1 else ""
    words = {
        "done": "finished",
        "diverged": f"DIVERGED: {end.reason}",
        "elsewhere": "finished by another process",
        "stopped": "stopped; its checkpoint is kept",
        "failed": f"FAILED: {end.reason}",
    }
    return f"{member.label}, seed {member.settings.seed}{many}: {words.get(end.outcome, end.outcome)}"


class Stop:
    """Ctrl-C and SIGTERM: ask the workers to checkpoint, then end. A second Ctrl-C changes nothing."""

    def __init__(self, console: Console):
        self.asked, self.console = False, console
        self.before: dict[int, Callable | int | None] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self.before[number] = signal.signal(number, self.note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def note(self, *_: object) -> None:
        self.asked = True


def devices(wanted: str, workers: int | None) -> list[str]:
    """One entry a worker: every GPU in turn where any will do, else the one device, once a core.

    Raises InputError for less than one worker, which would wait for ever.
    """
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers train nothing", mend="give workers of 1 or more")
    kind = find(wanted).type
    if kind == "cuda" and ":" not in wanted:
        count = workers or gpu_count()
        return [f"cuda:{number % gpu_count()}" for number in range(count)]
    device = wanted if ":" in wanted else kind
    return [device] * (workers or (cores() if kind == "cpu" else 1))


def cores() -> int:
    """Cores this process may use, which in a container is fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpu_count() -> int:
    import torch

    return max(1, torch.cuda.device_count())


def estimated_wall(runs: Sequence[PlannedRun], workers: int) -> str:
    """Estimated wall time of all runs on this many workers, as a clock."""
    longest = max(run.seconds for run in runs)
    return clock(max(longest, sum(run.seconds for run in runs) / workers))
