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

from isoloss.records.store import write_failure
from isoloss.studies.engines.worker import work
from isoloss.training.task import Progress, Task

BUSY_SECONDS = 1.0
"""Pause before a cohort that another process holds is tried again."""

PRELOADED = (work.__module__, "torch._dynamo")
"""The second torch imports only when an optimiser is built, which would cost every worker a second."""


@dataclass(frozen=True)
class Ended:
    """How a cohort's process ended: done, failed, stopped; ``reason`` for the failed."""

    task: Task
    outcome: str
    reason: str = ""


@dataclass
class Running:
    task: Task
    process: BaseProcess
    pipe: Connection
    outcome: str = ""
    reason: str = ""


def run(
    tasks: Sequence[Task], devices: Sequence[str], should_stop: Callable[[], bool]
) -> Iterator[Progress | Ended]:
    """Run every task in the given order, one at a time on each entry of ``devices``; what workers report."""
    process_class = worker_class()
    queue = deque(tasks)
    running: list[Running] = []
    waits: dict[str, float] = {}
    while queue or running:
        stopping = should_stop()
        if stopping:
            queue.clear()
            for job in running:
                if job.process.is_alive():
                    job.process.terminate()
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
                waits[job.task.lead.run_id] = time.monotonic() + BUSY_SECONDS
                queue.append(job.task)
            else:
                yield verdict(job, stopping)


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
    process.start()
    sender.close()
    return Running(task, process, receiver)


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
    reason = f"its process ended with {name}; out of memory is the usual cause"
    for member in job.task.members:
        with suppress(OSError):  # the reason is shown in any case
            write_failure(member.folder, reason)
    return Ended(job.task, "failed", reason)
