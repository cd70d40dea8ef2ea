"""How far a run is, in its folder: for `isoloss status`, and for engines whose workers have no pipe."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from isoloss import files
from isoloss.errors import InputError
from isoloss.training.task import Progress

NAME = "progress.json"

WRITE_SECONDS = 2.0
"""Between two writes; a run that is shorter writes none."""

PROGRESS = TypeAdapter(Progress)


def noted(folder: Path, report: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """``report``, which also writes to ``folder`` now and then."""
    last = time.monotonic()

    def both(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= WRITE_SECONDS:
            last = time.monotonic()
            files.write_json(folder / NAME, dataclasses.asdict(progress))
        report(progress)

    return both


def read(folder: Path) -> Progress | None:
    """The newest progress, None where there is none or it cannot be read: it decides nothing."""
    try:
        return PROGRESS.validate_python(files.read_json(folder / NAME))
    except (InputError, ValidationError):
        return None


def remove(folder: Path) -> None:
    files.remove_file(folder / NAME)
