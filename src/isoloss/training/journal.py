"""What is noted and kept while a cohort trains: events, seconds, speed, and checkpoints to go on from."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from torch import Tensor

from isoloss import files
from isoloss.records.schema import Event
from isoloss.training import checkpoint
from isoloss.training.setup import Setup
from isoloss.training.state import State
from isoloss.training.task import Progress


class Journal:
    """Events go to the log of the cohort's first member at once, and to the checkpoints with the state.

    ``begin``: when this attempt began, and the updates done by then. ``lap``: the wall and CPU seconds up to
    which the state's clocks have been set.
    """

    def __init__(self, setup: Setup, state: State):
        """Put the newest checkpoint, if there is one, into ``state``."""
        self.setup, self.state, self.ranks = setup, state, setup.ranks
        self.run_ids = [member.run_id for member in setup.task.members]
        self.log = setup.task.lead.folder / "log.jsonl"
        self.checkpoints = setup.task.lead.folder / "checkpoints"
        notes = checkpoint.restore(self.checkpoints, state, self.run_ids, self.ranks)
        self.attempt: int = (notes["attempt"] if notes else 0) + 1
        self.events = [Event(**event) for event in notes["events"]] if notes else []
        self.note("resumed" if notes else "started", self.ranks.method)
        if notes:
            self.note_environment(notes["environment"])
        self.lap = time.monotonic(), time.process_time()
        self.begin, self.begin_done = self.lap[0], state.done
        self.last_save = self.begin

    def note(self, kind: str, detail: str = "") -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        event = Event(kind=kind, attempt=self.attempt, step=self.state.done, time=now, detail=detail)
        self.events.append(event)
        if self.ranks.leads:
            files.append_line(self.log, event.model_dump())

    def note_environment(self, before: dict[str, Any]) -> None:
        now = self.setup.environment.model_dump()
        changed = [f"{key}: {before.get(key)} -> {now[key]}" for key in now if before.get(key) != now[key]]
        if changed:
            self.note("environment changed", "; ".join(changed))

    def note_divergence(self, **numbers_K: Sequence[float] | Tensor) -> None:
        """A member of whom one of these numbers is not finite stops here; the others go on."""
        for k, run_id in enumerate(self.run_ids):
            broken = [what for what, values in numbers_K.items() if not np.isfinite(float(values[k]))]
            if broken and self.state.diverged[k] is None:
                self.state.diverged[k] = self.state.done
                self.note("diverged", f"{run_id}: {broken[0].replace('_', ' ')} not finite")

    def finish(self) -> None:
        self.note("finished")
        self.set_clocks()

    def save_if_due(self) -> None:
        execution = self.setup.task.execution
        if execution.checkpoint_steps is not None:
            due = self.state.done % execution.checkpoint_steps == 0
        else:
            due = time.monotonic() - self.last_save >= execution.checkpoint_seconds
        if self.ranks.lead(due):
            self.save()

    def save(self) -> None:
        self.set_clocks()
        notes = {
            "attempt": self.attempt,
            "events": [event.model_dump() for event in self.events],
            "environment": self.setup.environment.model_dump(),
        }
        checkpoint.save(self.checkpoints, self.state, self.run_ids, notes, self.ranks)
        self.last_save = time.monotonic()

    def set_clocks(self) -> None:
        """Add the wall and CPU seconds since the last lap to the state's."""
        (wall, cpu), self.lap = self.lap, (time.monotonic(), time.process_time())
        self.state.wall_seconds += self.lap[0] - wall
        self.state.cpu_seconds += (self.lap[1] - cpu) * self.ranks.count

    def progress(self) -> Progress:
        state, settings = self.state, self.setup.settings
        loss_K = state.curve_UKP[state.done - 1, :, 0]
        living = loss_K[np.isfinite(loss_K)]
        members = len(self.run_ids)
        updates_per_second = (state.done - self.begin_done) / max(1e-9, time.monotonic() - self.begin)
        return Progress(
            run_id=self.run_ids[0],
            label=self.setup.task.lead.label,
            done=state.done,
            updates=len(state.curve_UKP),
            tokens=state.done * settings.batch_tokens,
            loss=float(living.mean()) if living.size else None,
            tokens_per_second=updates_per_second * settings.batch_tokens * members,
            members=members,
            diverged=sum(step is not None for step in state.diverged),
        )
