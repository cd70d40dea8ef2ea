"""Cohorts on other machines: what the engines for Ray and Slurm share.

A node reads the task's text and writes its records through the study's folder, which all nodes must see;
the folder also says how far each run is, and how it ended.
"""

import os
import platform
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from isoloss import files
from isoloss.errors import InputError
from isoloss.records.store import is_finished, read_failure, write_failure
from isoloss.studies import progress_file
from isoloss.studies.engines import worker
from isoloss.studies.engines.messages import BUSY_SECONDS, GIVE_UP_SECONDS, Ended, Message
from isoloss.studies.stop import StopSignal
from isoloss.training.task import Progress, Task

LOOK_SECONDS = 1.0
"""Between two looks at jobs and folders."""


class Jobs(Protocol):
    """What differs between engines. A job trains one task and is named by its lead's run_id."""

    def submit(self, tasks: Sequence[Task]) -> None:
        """Hand them over, the first ones first; those that wait or run there already are not doubled."""
        ...

    def unfinished(self) -> Collection[str]:
        """The jobs that wait or run."""
        ...

    def reason(self, run_id: str) -> str:
        """Why a job may have ended that left neither record nor reason."""
        ...

    def stop(self, *, at_once: bool) -> None:
        """Ask running jobs for a checkpoint, or kill them; forget those that wait."""
        ...


def follow(jobs: Jobs, tasks: Sequence[Task], stops: Callable[[], int]) -> Iterator[Message]:
    """Submit the tasks and say how they go, until every one has ended or was given up after a stop."""
    waiting = {task.lead.run_id: task for task in tasks}
    if not stops():
        for member in (member for task in tasks for member in task.members):
            files.remove_file(member.folder / "failure.json")  # of an earlier attempt
        jobs.submit(tasks)
    stop_count, since, seen = 0, 0.0, dict[str, Progress]()
    while waiting:
        if stops() > stop_count:
            stop_count, since = stops(), since or time.monotonic()
            jobs.stop(at_once=stop_count > 1)
        given_up = stop_count > 1 or (stop_count == 1 and time.monotonic() - since > GIVE_UP_SECONDS)
        if given_up and stop_count == 1:
            jobs.stop(at_once=True)
        unfinished = () if given_up else jobs.unfinished()
        for run_id in [run_id for run_id in waiting if run_id not in unfinished]:
            yield verdict(waiting.pop(run_id), jobs, stopping=stop_count > 0)
        for run_id, task in waiting.items():
            progress = progress_file.read(task.lead.folder)
            if progress is not None and progress != seen.get(run_id):
                seen[run_id] = progress
                yield progress
        if waiting:
            time.sleep(LOOK_SECONDS)


def verdict(task: Task, jobs: Jobs, *, stopping: bool) -> Ended:
    """How a job ended, as its folder says: the one place that all nodes write to."""
    for member in task.members:
        with suppress(OSError):
            os.listdir(member.folder)  # a network file system then looks again for what is new
    if all(is_finished(member.folder) for member in task.members):
        return Ended(task, *worker.verdict(task))
    if failure := next(filter(None, (read_failure(member.folder) for member in task.members)), None):
        return Ended(task, "failed", failure["reason"])
    if stopping:
        return Ended(task, "stopped")
    reason = jobs.reason(task.lead.run_id)
    for member in task.members:
        with suppress(OSError):  # the reason is shown in any case
            write_failure(member.folder, reason)
    return Ended(task, "failed", reason)


def study_folder(task: Task) -> Path:
    return task.lead.folder.parent.parent


def check_sees(task: Task) -> None:
    """Raises InputError on a node that does not see the study's folder or the token files."""
    node, mend = platform.node(), "keep it on a file system that every node mounts"
    if not ((folder := study_folder(task)) / "study.json").is_file():
        what = f"the node {node} does not see the study's folder"
        raise InputError(what, where=str(folder), mend=f"{mend}, and name it with --out")
    if not task.tokens.is_dir():
        what = f"the node {node} does not see the token files"
        raise InputError(what, where=str(task.tokens), mend=f"{mend}, and name it with ISOLOSS_HOME")


def train_here(task: Task, stop: StopSignal) -> str:
    """On a node: train the task; "stopped" if a signal ended it. Records, or a reason, are in its folder.

    Where another process holds one of its folders, as the one that was lost with its node, it is waited for.
    """
    worker.one_core(task.execution.device)
    while True:
        try:
            check_sees(task)
            with ExitStack() as claims:
                outcome, _ = worker.train_claimed(task, claims, lambda progress: None, lambda: stop.asked)
        except Exception as error:  # the folder says why
            return worker.fail(task, error)[0]
        if outcome != "busy":
            return outcome
        if stop.asked:
            return "stopped"
        time.sleep(BUSY_SECONDS)
