"""How a study stands, read from its folder: which runs are done, failed, running, queued or not begun."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.errors import InputError
from isoloss.records.store import is_finished, read_failure, read_plan, run_folder
from isoloss.studies import progress_file
from isoloss.studies.engines.queue import JOBS, job_ids, queue
from isoloss.training.task import Progress

STATES = ("done", "running", "queued", "failed", "waiting")
"""Waiting: no process and no job has it."""


@dataclass(frozen=True)
class RunStatus:
    """``progress`` of a running one, where it has said any.

    ``reason`` of a failed one, of doubt, and of a waiting one from where it goes on.
    """

    run_id: str
    label: str
    state: str
    progress: Progress | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        progress = asdict(self.progress) if self.progress else None
        return {"run_id": self.run_id, "label": self.label, "state": self.state, "progress": progress} | (
            {"reason": self.reason} if self.reason else {}
        )


def status(folder: Path) -> list[RunStatus]:
    """Every planned run, in the plan's order. Raises InputError where ``folder`` holds no study.

    A run is running while a process holds its claim, which the kernel frees when the process dies.
    """
    runs, ids = read_plan(folder)["runs"], job_ids(folder)
    jobs: dict[str, str] = {}
    doubt = "is no longer in the queue and left no record; the same `isoloss run` goes on where it was"
    try:
        jobs = queue((folder / JOBS).stat().st_uid) if ids else {}
    except InputError as error:  # what the folder says is true without it
        doubt = f"may wait or run, which is not known: {error.what}"
    states = [
        state_of(run_folder(folder, run["run_id"]), run["label"], jobs.get(ids.get(run["run_id"], "")))
        for run in runs
    ]
    return [
        replace(run, reason=f"its Slurm job {ids[run.run_id]} {doubt}")
        if run.state == "waiting" and run.run_id in ids
        else run
        for run in states
    ]


def state_of(folder: Path, label: str, job: str | None) -> RunStatus:
    if is_finished(folder):
        return RunStatus(folder.name, label, "done")
    if job not in (None, "PENDING") or is_claimed(folder):
        return RunStatus(folder.name, label, "running", progress=progress_file.read(folder))
    if job is not None:
        return RunStatus(folder.name, label, "queued")
    try:
        failure = read_failure(folder)
    except InputError as error:
        failure = {"reason": str(error)}
    if failure is not None:
        return RunStatus(folder.name, label, "failed", reason=failure["reason"])
    begun = max((path.name for path in (folder / "checkpoints").glob("update-*")), default=None)
    reason = "" if begun is None else f"stopped; goes on from step {int(begun.removeprefix('update-')):,}"
    return RunStatus(folder.name, label, "waiting", reason=reason)


def holder(folder: Path) -> int | None:
    """The process of this machine that trains it; None where there is none, or the system does not tell."""
    try:
        inode = (folder / "claim.lock").stat().st_ino
        locks = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    # 1: FLOCK ADVISORY WRITE PROCESS DEVICE:INODE 0 EOF; of those that wait a line has "->" more.
    held = [fields for line in locks if (fields := line.split())[1] == "FLOCK"]
    return next((int(fields[4]) for fields in held if fields[5].endswith(f":{inode}")), None)


def is_claimed(folder: Path) -> bool:
    """Does a process train it? Only a claim that was made before is tried."""
    path = folder / "claim.lock"
    if not path.is_file():
        return False
    with files.claim(path) as mine:
        return not mine
