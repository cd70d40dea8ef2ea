"""The local engine: cohorts on this machine's cores or devices, the biggest first.

Each core has a process, which trains one cohort after the other and ends with one that failed. Running out of
memory or a crash ends one cohort and no other. The processes come from a fork server that has imported torch.
"""

import multiprocessing
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from isoloss.errors import RunError
from isoloss.records.store import write_failure
from isoloss.studies.engines.messages import BUSY_SECONDS, GIVE_UP_SECONDS, Ended, Held, Message, cause
from isoloss.studies.engines.worker import is_last, work
from isoloss.training.task import Progress, Task

PAUSES = (0.0, 0.0, 0.1, 0.5, 2.0)
"""Seconds before each try to start a worker."""
PRELOADED = (work.__module__, "torch._dynamo")
"""The second torch imports only when an optimiser is built, which would cost every worker a second."""


@dataclass
class Worker:
    """A process on a device, and what it trains; ``outcome`` and ``reason`` as it answered."""

    process: BaseProcess
    pipe: Connection
    device: str
    task: Task | None = None
    outcome: str = ""
    reason: str = ""

    @property
    def has_ended_task(self) -> bool:
        return bool(self.outcome) or not self.process.is_alive()


def run(devices: Sequence[str], tasks: Sequence[Task], stops: Callable[[], int]) -> Iterator[Message]:
    """Run every task in the given order, one at a time on each entry of ``devices``; what workers report.

    ``stops``: how often it was asked to stop. Raises RunError where no process can be started.
    """
    process_class = worker_class()
    queue = deque(tasks)
    idle: list[Worker] = []
    busy: list[Worker] = []
    waits: dict[str, float] = {}
    since: float | None = None
    try:
        while queue or busy:
            stopping = stops() > 0
            if stopping:
                queue.clear()
                since = since or time.monotonic()
                stop(busy, at_once=stops() > 1 or time.monotonic() - since > GIVE_UP_SECONDS)
            while queue and len(busy) < len(devices):
                task = next((t for t in queue if waits.get(t.lead.run_id, 0.0) <= time.monotonic()), None)
                if task is None:
                    break
                queue.remove(task)
                busy.append(give(task, free_device(devices, busy), idle, process_class))
            yield from listen(busy)
            for worker in [worker for worker in busy if worker.has_ended_task]:
                busy.remove(worker)
                yield from drain(worker)
                task = task_of(worker)
                if worker.outcome == "busy" and not stopping:
                    if task.lead.run_id not in waits:
                        yield Held(task)
                    waits[task.lead.run_id] = time.monotonic() + BUSY_SECONDS
                    queue.append(task)
                else:
                    yield verdict(worker, task, stopping)
                keep(worker, task, idle)
    finally:
        for worker in [*idle, *busy]:
            dismiss(worker)


def task_of(worker: Worker) -> Task:
    if worker.task is None:
        raise RuntimeError("a worker without a task ended one")
    return worker.task


def give(task: Task, device: str, idle: list[Worker], process_class: type[BaseProcess]) -> Worker:
    """The task to a worker that waits on that device, or to a new one."""
    task = replace(task, execution=task.execution.model_copy(update={"device": device}))
    for worker in [worker for worker in idle if worker.device == device]:
        idle.remove(worker)
        if hand_over(worker, task):
            return worker
        dismiss(worker)
    worker = start(process_class, device)
    hand_over(worker, task)  # where it has died already, that is seen as for any other
    return worker


def hand_over(worker: Worker, task: Task) -> bool:
    """Whether it is there to take it."""
    worker.task, worker.outcome, worker.reason = task, "", ""
    try:
        worker.pipe.send(task)
    except OSError:
        return False
    return True


def keep(worker: Worker, task: Task, idle: list[Worker]) -> None:
    """Let it wait for the next task, unless this was its last."""
    if worker.outcome and worker.process.is_alive() and not is_last(task, worker.outcome):
        idle.append(worker)
    else:
        dismiss(worker)


def dismiss(worker: Worker) -> None:
    """End a worker: without a pipe it has no more to do. It is not waited for."""
    worker.pipe.close()


def stop(busy: Sequence[Worker], *, at_once: bool) -> None:
    for worker in busy:
        if worker.process.is_alive():
            worker.process.kill() if at_once else worker.process.terminate()


def worker_class() -> type[BaseProcess]:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn").Process
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context.Process


def free_device(devices: Sequence[str], busy: Sequence[Worker]) -> str:
    """The first device with fewer busy workers than it has entries."""
    taken = [worker.device for worker in busy]
    return next(device for device in devices if taken.count(device) < devices.count(device))


def start(process_class: type[BaseProcess], device: str) -> Worker:
    here, there = multiprocessing.Pipe()
    process = process_class(target=work, args=(there,), daemon=False)
    begin(process)
    there.close()
    return Worker(process, here, device)


def begin(process: BaseProcess) -> None:
    """Start it, again where the fork server has died: a start after its end makes a new one.

    Raises RunError where none begins. A server that was killed may take a moment until it has ended.
    """
    reason = ""
    for pause in PAUSES:
        time.sleep(pause)
        try:
            with without_main():
                return process.start()
        except (EOFError, OSError) as error:
            reason = f"{type(error).__name__}: {error}"
    raise RunError(
        f"no process can be started ({reason})", mend="run the same command again: it goes on where it was"
    )


@contextmanager
def without_main() -> Generator[None, None, None]:
    """Hide the program that is run: a worker needs nothing of it, and would run its file again to begin."""
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
    for name in hidden:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


def listen(busy: Sequence[Worker]) -> Iterator[Progress]:
    """Sleep until a worker says something or ends, for a tenth of a second at most; then its progress."""
    if not busy:
        time.sleep(0.1)
        return
    pipes = [worker.pipe for worker in busy if not worker.pipe.closed]
    ready = wait([*pipes, *(worker.process.sentinel for worker in busy)], timeout=0.1)
    for worker in busy:
        if worker.pipe in ready:
            yield from drain(worker)


def drain(worker: Worker) -> Iterator[Progress]:
    """What the worker has sent: its progress, and how its task ended into ``worker``."""
    try:
        while not worker.pipe.closed and worker.pipe.poll():
            kind, value = worker.pipe.recv()
            if kind == "progress":
                yield value
            else:
                worker.outcome, worker.reason = kind, value
    except (EOFError, OSError):
        worker.pipe.close()


def verdict(worker: Worker, task: Task, stopping: bool) -> Ended:
    if worker.outcome and worker.outcome != "busy":
        return Ended(task, worker.outcome, worker.reason)
    if stopping:  # it had not come far enough to answer the signal
        return Ended(task, "stopped")
    reason = f"its process ended with {cause(worker.process.exitcode or 0)}"
    for member in task.members:
        with suppress(OSError):  # the reason is shown in any case
            write_failure(member.folder, reason)
    return Ended(task, "failed", reason)
