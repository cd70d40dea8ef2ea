"""What an engine is, and what it says while cohorts train."""

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from isoloss.training.task import Progress, Task

BUSY_SECONDS = 1.0
"""Pause before a cohort that another process holds is tried again."""

GIVE_UP_SECONDS = 30.0
"""What has not ended so long after a stop was asked, as a worker that is suspended, is killed: its newest
checkpoint is whole. A second request does not wait."""


@dataclass(frozen=True)
class Ended:
    """How a cohort ended: done, diverged, elsewhere, failed, stopped, queued; ``reason`` for the failed."""

    task: Task
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Held:
    """A cohort that another process trains: it is waited for."""

    task: Task


Message = Progress | Held | Ended


def cause(code: int) -> str:
    """What a process ended with, from its exit code."""
    if code == -signal.SIGKILL:
        return "SIGKILL; out of memory is the usual cause"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


@dataclass(frozen=True)
class Engine:
    """``gpu``: do cohorts get a GPU there, which ``sharers`` of them share? ``here``: is it this machine's?

    ``check`` raises InputError where it cannot be reached: asked before anything is written.
    ``run`` trains tasks, the first ones first, and says how it goes. It is also given how often it was asked
    to stop, ends when every task has an ``Ended``, and raises RunError or InputError where nothing can be
    trained at all.
    """

    gpu: bool
    run: Callable[[Sequence[Task], Callable[[], int]], Iterator[Message]]
    here: bool = False
    sharers: float = 1.0
    check: Callable[[], None] = lambda: None
