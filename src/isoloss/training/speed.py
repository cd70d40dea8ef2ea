"""How fast the training loop itself is: a cohort's updates timed, with no record and no file left behind."""

import time
from collections.abc import Callable
from dataclasses import replace

from isoloss.training.loop import update_of
from isoloss.training.setup import Setup, set_up
from isoloss.training.task import Task


def updater(task: Task, *, compiled: bool | None = None) -> tuple[Setup, Callable[[], int]]:
    """A function that makes the task's next updates, on a GPU a block of them, and says how many.

    ``compiled``: whether or not that pays.
    """
    setup = set_up(task)
    if compiled is not None:
        setup = replace(setup, environment=setup.environment.model_copy(update={"compiled": compiled}))
    state = setup.first_state()
    update, trunk = update_of(setup, state), setup.segments[0]

    def some() -> int:
        if state.step >= trunk.stop:
            state.step = state.done = 0
        count = 0
        for means_KP, _ in update(trunk):
            state.advance(means_KP.numpy())
            count += 1
        return count

    return setup, some


def tokens_per_second(task: Task, seconds: float) -> float:
    """Of all members together, after a warm-up as long; wall time, since a GPU's work is on no CPU clock."""
    setup, some = updater(task)
    rate = 0.0
    for _ in range(2):
        begin, updates = time.perf_counter(), some()
        while (taken := time.perf_counter() - begin) < seconds:
            updates += some()
        rate = updates / taken
    return rate * setup.settings.batch_tokens * len(task.members)
