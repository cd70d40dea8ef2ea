"""One process that trains cohorts, one after the other: claim the folders, train, leave a record or a reason.

The parent sends a Task; messages back are tuples (kind, value): ("progress", Progress), and at last one of
("done", ""), ("diverged", sentence), ("failed", sentence), ("stopped", ""), ("busy", "") and
("elsewhere", ""). A closed pipe ends the process.
"""

import gc
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from isoloss import files
from isoloss.errors import IsolossError
from isoloss.models import load_file
from isoloss.models.registry import users_line
from isoloss.records.store import is_finished, read_record, write_failure
from isoloss.studies import progress_file
from isoloss.studies.engines import ranks
from isoloss.studies.stop import StopSignal
from isoloss.training.device import one_core
from isoloss.training.distributed import group, joined, lost
from isoloss.training.loop import train
from isoloss.training.task import Progress, Task

REPORT_SECONDS = 0.25
LOOK_SECONDS = 0.5
"""Who looks whether a run is claimed (`isoloss status`, `isoloss serve`) has its claim for a moment."""


class Parent:
    """The parent's end: tasks come from it, progress now and then goes to it.

    A broken pipe means that the parent died, so stop.
    """

    def __init__(self, pipe: Connection):
        self.pipe, self.last, self.gone = pipe, 0.0, False

    def next_task(self, asked: Callable[[], bool]) -> Task | None:
        """Wait for it. None where the parent wants no more, or is gone."""
        above = multiprocessing.parent_process()
        try:
            while not self.pipe.poll(1.0):
                if asked() or (above is not None and not above.is_alive()):
                    return None
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def send(self, kind: str, value: object = "") -> None:
        try:
            self.pipe.send((kind, value))
        except OSError:
            self.gone = True

    def progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_SECONDS:
            self.last = now
            self.send("progress", progress)


def work(pipe: Connection) -> None:
    """Entry point of a worker process."""
    stop, parent = StopSignal(), Parent(pipe)
    gc.freeze()  # what was imported is never garbage, and slow to look through
    while (task := parent.next_task(lambda: stop.asked)) is not None:
        one_core(task.execution.device)
        try:
            with ExitStack() as claims:
                answer = train_claimed(task, claims, parent.progress, lambda: stop.asked or parent.gone)
        except Exception as error:  # one failed run must never take the others along
            answer = fail(task, error)
        parent.send(*answer)
        if stop.asked or parent.gone or is_last(task, answer[0]):
            return
        gc.collect()


def is_last(task: Task, outcome: str) -> bool:
    """Does its process end after this cohort? Code of the user, and errors, may leave anything behind."""
    return bool(task.family_files) or outcome == "failed"


def train_claimed(
    task: Task, claims: ExitStack, report: Callable[[Progress], None], should_stop: Callable[[], bool]
) -> tuple[str, str]:
    """Claim the folders and train what they lack; how it ended, and why if it diverged."""
    if task.execution.ranks > 1:
        return ranks.launch(train_rank, task, report, should_stop)
    load_families(task)
    return claim_folders(task, claims) or train_to_records(task, report, should_stop)


def train_rank(task: Task, asked: Any) -> tuple[str, str]:
    """Entry point of one process of several that train a run together; ``asked``: an event, to stop."""
    one_core(task.execution.device)
    try:
        # Slurm sends what it sends a job to each of its processes.
        asks = signal.SIGINT, signal.SIGTERM, signal.SIGUSR2
        with StopSignal(asks) as stop, group(task.execution) as execution, ExitStack() as claims:
            answer = train_together(
                replace(task, execution=execution), claims, lambda: stop.asked or asked.is_set()
            )
    except Exception as error:
        if not lost(error):
            fail(task, error)
            raise
        # Where another died that is the reason, which who started both will tell.
        answer = "failed", f"the ranks lost each other: {error}"
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise SystemExit  # the launcher's own processes would wait for it for ever
    return answer


def train_together(task: Task, claims: ExitStack, should_stop: Callable[[], bool]) -> tuple[str, str]:
    """One rank's part of ``train_claimed``; rank 0 claims and says how it ended."""
    place = joined(task.execution)
    load_families(task)
    answer = claim_folders(task, claims) if place.leads else None
    if place.any(answer is not None):
        return answer or ("elsewhere", "")
    if place.leads:
        return train_to_records(task, lambda progress: None, should_stop)
    return "done" if train(task, should_stop=should_stop) else "stopped", ""


def load_families(task: Task) -> None:
    for path in task.family_files:
        load_file(path)


def claim_folders(task: Task, claims: ExitStack) -> tuple[str, str] | None:
    """Claim the folders and make them ready; an answer where there is nothing to train here."""
    for member in task.members:
        member.folder.mkdir(parents=True, exist_ok=True)
        claim = files.claim(member.folder / "claim.lock", wait_seconds=LOOK_SECONDS)
        if not claims.enter_context(claim):
            return "busy", ""
    if all(is_finished(member.folder) for member in task.members):
        return "elsewhere", ""
    for member in task.members:
        files.remove_leftovers(member.folder)
        files.write_json(member.folder / "settings.json", member.settings.model_dump(mode="json"))
    return None


def train_to_records(
    task: Task, report: Callable[[Progress], None], should_stop: Callable[[], bool]
) -> tuple[str, str]:
    """Train, saying in the folder how far it is; how it ended."""
    try:
        report = progress_file.noted(task.lead.folder, report)
        if not train(task, report=report, should_stop=should_stop):
            return "stopped", ""
    finally:
        progress_file.remove(task.lead.folder)
    return verdict(task)


def verdict(task: Task) -> tuple[str, str]:
    """What the records say: done, or diverged and why."""
    reasons = [r.reason for r in (read_record(m.folder) for m in task.members) if r.status == "diverged"]
    return ("diverged", "; ".join(reasons)) if reasons else ("done", "")


def fail(task: Task, error: Exception) -> tuple[str, str]:
    """Write beside each member why it failed; what the parent is told."""
    sentence = str(error) if isinstance(error, IsolossError) else f"{type(error).__name__}: {error}"
    if line := users_line(error):
        sentence = f"{line}: {sentence}"
    for member in task.members:
        try:
            write_failure(member.folder, sentence, traceback.format_exc())
        except OSError as unwritable:
            sentence = f"{sentence} (and its folder cannot be written: {unwritable})"
    return "failed", sentence
