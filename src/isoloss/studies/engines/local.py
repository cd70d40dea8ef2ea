"""The local engine: cohorts on this machine's cores or devices, the biggest first.

Each cohort has a process of its own, so that running out of memory or a crash ends that cohort and no other.
The processes come from a fork server that has imported torch once.
"""

import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from isoloss.errors import RunError
from isoloss.records.store import write_failure
from isoloss.studies.engines.worker import work
from isoloss.training.task import Progress, Task

BUSY_SECONDS = 1.0
"""Pause before a cohort that another process holds is tried again."""

GIVE_UP_SECONDS = 30.0
"""A worker that has not ended so long after a stop was asked, as one that is suspended, is killed: its newest
checkpoint is whole. A second request does not wait."""

PRELOADED = (work.__module__, "torch._dynamo")
"""The second torch imports only when an optimiser is built, which would cost every worker a second."""


@dataclass(frozen=True)
class Ended:
    """How a cohort's process ended: done, failed, stopped; ``reason`` for the failed."""

    task: Task
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Held:
    """A cohort that another process trains: it is waited for."""

    task: Task


@dataclass
class Running:
    task: Task
    process: BaseProcess
    pipe: Connection
    outcome: str = ""
    reason: str = ""


def run(
    tasks: Sequence[Task], devices: Sequence[str], stops: Callable[[], int]
) -> Iterator[Progress | Held | Ended]:
    """Run every task in the given order, one at a time on each entry of ``devices``; what workers report.

    ``stops``: how often it was asked to stop. Raises RunError where no process can be started.
    """
    process_class = worker_class()
    queue = deque(tasks)
    running: list[Running] = []
    waits: dict[str, float] = {}
    since: float | None = None
    while queue or running:
        stopping = stops() > 0
        if stopping:
            queue.clear()
            since = since or time.monotonic()
            stop(running, at_once=stops() > 1 or time.monotonic() - since > GIVE_UP_SECONDS)
        while queue and len(running) < len(devices):
            task = next((t for t in queue if waits.get(t.lead.run_id, 0.0) <= time.monotonic()), None)
            if task is None:
                break
            queue.remove(task)
            running.append(start(process_class, task, free_device(devices, running)))
        yield from listen(running)
        for job in [job for job in running if not job.process.is_alive()]:
            running.remove(job)
            yield from drain(job)
            if job.outcome == "busy" and not stopping:
                if job.task.lead.run_id not in waits:
                    yield Held(job.task)
                waits[job.task.lead.run_id] = time.monotonic() + BUSY_SECONDS
                queue.append(job.task)
            else:
                yield verdict(job, stopping)


def stop(running: Sequence[Running], *, at_once: bool) -> None:
    for job in running:
        if job.process.is_alive():
            job.process.kill() if at_once else job.process.terminate()


def worker_class() -> type[BaseProcess]:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn").Process
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context.Process


def free_device(devices: Sequence[str], running: Sequence[Running]) -> str:
    """The first device with fewer running tasks than it has entries."""
    busy = [job.task.execution.device for job in running]
    return next(device for device in devices if busy.count(device) < devices.count(device))


def start(process_class: type[BaseProcess], task: Task, device: str) -> Running:
    task = replace(task, execution=task.execution.model_copy(update={"device": device}))
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = process_class(target=work, args=(task, sender), name=task.lead.run_id, daemon=False)
    begin(process)
    sender.close()
    return Running(task, process, receiver)


def begin(process: BaseProcess) -> None:
    """Start it, again where the fork server has died: the next start makes a new one."""
    try:
        process.start()
    except (EOFError, OSError):
        try:
            process.start()
        except (EOFError, OSError) as error:
            what = f"no process can be started ({type(error).__name__}: {error})"
            raise RunError(what, mend="run the same command again: it goes on where it was") from None


def listen(running: Sequence[Running]) -> Iterator[Progress]:
    """Sleep until a worker says something or ends, for a tenth of a second at most; then its progress."""
    pipes = [job.pipe for job in running if not job.pipe.closed]
    if not running:
        time.sleep(0.1)
        return
    ready = wait([*pipes, *(job.process.sentinel for job in running)], timeout=0.1)
    for job in running:
        if job.pipe in ready:
            yield from drain(job)


def drain(job: Running) -> Iterator[Progress]:
    """What the worker has sent: its progress, and how it ended into ``job``."""
    try:
        while not job.pipe.closed and job.pipe.poll():
            kind, value = job.pipe.recv()
            if kind == "progress":
                yield value
            else:
                job.outcome, job.reason = kind, value
    except (EOFError, OSError):
        job.pipe.close()


def verdict(job: Running, stopping: bool) -> Ended:
    if job.outcome and job.outcome != "busy":
        return Ended(job.task, job.outcome, job.reason)
    if stopping:  # it had not come far enough to answer the signal
        return Ended(job.task, "stopped")
    code = job.process.exitcode or 0
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    reason = f"its process ended with {name}"
    if code == -signal.SIGKILL:
        reason += "; out of memory is the usual cause"
    for member in job.task.members:
        with suppress(OSError):  # the reason is shown in any case
            write_failure(member.folder, reason)
    return Ended(job.task, "failed", reason)
