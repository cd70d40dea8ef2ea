"""Slurm's queue, as its own commands tell it."""

import os
import subprocess
from pathlib import Path

from isoloss import files
from isoloss.errors import InputError

JOBS = "slurm.json"
"""Of a study's folder: which job was given each run."""


def job_ids(folder: Path) -> dict[str, str]:
    """Which Slurm job was given each run of a study. Raises InputError where the file says else."""
    path = folder / JOBS
    ids = files.read_json(path) if path.is_file() else {}
    if not (isinstance(ids, dict) and all(isinstance(job, str) for job in ids.values())):
        raise InputError("is not a job of each run", where=str(path), mend="delete it and run again")
    return ids


def queue(user: int | None = None) -> dict[str, str]:
    """State of each job that waits or runs, by its id; ``user``: whose, by default this one's."""
    whose = f"--user={os.getuid() if user is None else user}"
    said = command("squeue", "--noheader", "--array", whose, "--format=%i %T")
    return dict(line.split() for line in said.splitlines() if line.strip())


def command(*words: str) -> str:
    """What one of Slurm's commands says; a Ctrl-C does not reach it.

    Raises InputError where it fails or does not answer.
    """
    try:
        done = subprocess.run(  # noqa: S603 - one of Slurm's programs, no shell
            words, capture_output=True, text=True, timeout=60, check=True, start_new_session=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        what = f"{words[0]} fails: {said[0] if said else 'no word'}"
        raise InputError(what, where="--engine slurm", mend="see whether `sinfo` answers here") from None
    return done.stdout
