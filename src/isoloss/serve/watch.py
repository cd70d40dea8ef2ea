"""One study's folder, looked at again and again: what each run is doing, and what is known of it."""

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoloss.errors import InputError
from isoloss.records.store import read_plan, run_folder
from isoloss.serve.curves import Course, ended
from isoloss.serve.run import Run, planned
from isoloss.studies import checkpoint_curve
from isoloss.studies.engines.queue import job_ids, queue
from isoloss.studies.status import state_of

READ_AT_ONCE = 40
"""Records of newly finished runs read in one look: a study of a thousand is shown at once and fills in."""
QUEUE_SECONDS = 20.0
"""Between two questions to Slurm."""


class Watch:
    """``runs`` by id in the plan's order. ``trouble``: why it cannot be read; what was known stays."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.plan: Mapping[str, Any] = {}
        self.runs: dict[str, Run] = {}
        self.trouble = ""
        self._plan_stamp: tuple[int, ...] = ()
        self._stamps: dict[str, int] = {}
        self._courses: dict[str, Course] = {}
        self._checkpoints: dict[str, str] = {}
        self._leads: dict[str, str] = {}
        self._jobs: dict[str, str] = {}
        self._polled = -QUEUE_SECONDS

    @property
    def quiet_seconds(self) -> float:
        """Since anything changed in the study's plan or in the folder of a run, by the clock of its disk."""
        return time.time() - max([*self._plan_stamp[:1], *self._stamps.values()], default=0) / 1e9

    def of_state(self, *states: str) -> list[Run]:
        return [run for run in self.runs.values() if run.state in states]

    @property
    def recorded(self) -> tuple[tuple[int, ...], frozenset[tuple[str, str, int]]]:
        """What figures and findings depend on: the plan, and the runs that ended."""
        over = self.of_state("done", "diverged", "failed")
        return self._plan_stamp, frozenset((r.run_id, r.state, self._stamps.get(r.run_id, 0)) for r in over)

    def look(self) -> None:
        """Read what has changed. Nothing is written, but a claim that somebody left is tried for a moment."""
        try:
            self._read_plan()
            self._ask_queue()
            self.trouble = ""
        except InputError as error:
            self.trouble = str(error)
        except OSError as error:
            self.trouble = f"{error.filename or self.folder}: {error.strerror or error}"
            return
        there, left = stamps(self.folder / "runs"), READ_AT_ONCE
        for run_id, run in self.runs.items():
            known = run.state in ("done", "diverged") and self._stamps.get(run_id) == there.get(run_id)
            if known and run.loss is not None:
                continue
            now = self._state(run, there)
            if now.state == "done" and left > 0:
                now, left = self._ended(now), left - 1
            self.runs[run_id] = now
        self._stamps = there
        self._follow()

    def _read_plan(self) -> None:
        path = self.folder / "study.json"
        try:
            info = path.stat()
        except FileNotFoundError:
            if self.plan:
                raise
            return
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if stamp == self._plan_stamp:
            return
        plan = read_plan(self.folder)
        runs = [Run(planned(self.folder, run)) for run in plan["runs"]]
        self.runs = {run.run_id: replace(self.runs.get(run.run_id, run), plan=run.plan) for run in runs}
        self.plan, self._plan_stamp = plan, stamp

    def _ask_queue(self) -> None:
        """Slurm's state of each run that has a job."""
        if time.monotonic() - self._polled >= QUEUE_SECONDS:
            self._polled = time.monotonic()
            ids = job_ids(self.folder)
            jobs = queue() if ids and shutil.which("squeue") else {}
            self._jobs = {run_id: jobs[job] for run_id, job in ids.items() if job in jobs}

    def _state(self, run: Run, there: Mapping[str, int]) -> Run:
        job = self._jobs.get(run.run_id)
        if run.run_id not in there and job is None:
            return Run(run.plan)
        try:
            status = state_of(run_folder(self.folder, run.run_id), run.plan.label, job)
        except (InputError, OSError) as error:  # half removed, or not ours to read
            return replace(run, reason=str(error))
        loss = status.progress.loss if status.progress else None
        return Run(run.plan, status.state, status.reason, status.progress, loss, run.curve)

    def _ended(self, run: Run) -> Run:
        try:
            record, curve = ended(run_folder(self.folder, run.run_id))
        except (InputError, OSError) as error:
            return replace(run, state="failed", reason=str(error))
        diverged = record.status == "diverged"
        last = max(record.evaluations, key=lambda e: (e.tokens, e.cooled), default=None)
        return replace(
            run,
            state="diverged" if diverged else "done",
            reason=record.reason if diverged else "",
            loss=last.loss if last else float("nan"),
            curve=curve,
        )

    def _follow(self) -> None:
        """The curves of what runs, and the progress of members whose cohort tells it beside another."""
        running = self.of_state("running")
        for run in running:
            newer = checkpoint_curve.newest(
                run_folder(self.folder, run.run_id), self._checkpoints.get(run.run_id, "")
            )
            if newer is None:
                continue
            self._checkpoints[run.run_id] = newer.checkpoint
            for member, run_id in enumerate(newer.run_ids):
                self._leads[run_id] = run.run_id
                if course := self._course(run_id):
                    course.take(newer.total_UK[:, member])
        for run in running:
            lead = self.runs.get(self._leads.get(run.run_id, ""), run)
            progress, course = run.progress or lead.progress, self._course(run.run_id)
            if course is None:
                continue
            if progress and progress.members == 1:
                course.note(progress.done, progress.loss)
            self.runs[run.run_id] = replace(
                run, progress=progress, loss=progress.loss if progress else None, curve=course.curve
            )
        for run_id in self._courses.keys() - {run.run_id for run in running}:
            del self._courses[run_id]
            self._checkpoints.pop(run_id, None)

    def _course(self, run_id: str) -> Course | None:
        if run_id not in self.runs:
            return None
        if run_id not in self._courses:
            try:
                self._courses[run_id] = Course(run_folder(self.folder, run_id))
            except InputError:
                return None
        return self._courses[run_id]


def stamps(folder: Path) -> dict[str, int]:
    """When each folder inside last changed, by name; none where there is no such folder."""
    times: dict[str, int] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # removed since it was listed
                times[entry.name] = entry.stat(follow_symlinks=False).st_mtime_ns
    return times
