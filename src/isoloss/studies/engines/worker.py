"""One process that trains cohorts, one after the other: claim the folders, train, leave a record or a reason.

The parent sends a Task; messages back are tuples (kind, value): ("progress", Progress), and at last one of
("done", ""), ("diverged", sentence), ("failed", sentence), ("stopped", ""), ("busy", "") and
("elsewhere", ""). A closed pipe ends the process.
"""

import gc
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection

import torch

from isoloss import files
from isoloss.errors import IsolossError
from isoloss.models import load_file
from isoloss.models.registry import users_line
from isoloss.records.store import is_finished, read_record, write_failure
from isoloss.studies import progress_file
from isoloss.studies.stop import StopSignal
from isoloss.training.device import prepare_cpu
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
    one_core()
    gc.freeze()  # what was imported is never garbage, and slow to look through
    while (task := parent.next_task(lambda: stop.asked)) is not None:
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
    for path in task.family_files:
        load_file(path)
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


def one_core() -> None:
    """One process a core, one thread each: threads waiting for a taken core cost more than they give."""
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"
    prepare_cpu()
