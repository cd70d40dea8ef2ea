"""A run as a tracker logged it, and the frame that all readers make of theirs."""

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from isoloss import files
from isoloss.errors import InputError
from isoloss.sources.naming import plain
from isoloss.sources.read import flat, of_rows

_STEPS = (
    "step", "train_global_step", "trainer_global_step", "global_step", "iter", "iteration", "_step",
)  # fmt: skip
"""Keys of the step, the better first: a tracker's own counter may count its log lines."""


@dataclass(frozen=True)
class LoggedRun:
    """``rows``: what was logged, by key, with its step. ``settings``: what holds for the whole run.

    ``origin``: the file, and how a number that it does not print was found.
    """

    name: str
    origin: str
    rows: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: str | None = None


def frame_of(runs: Iterable[LoggedRun], where: str) -> tuple[pl.DataFrame, list[str]]:
    """A row a run and step, with its settings in each, and notes. What a later line logs again counts.

    Raises InputError where there is no run.
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    times = Counter[str]()
    for run in runs:
        times[run.name] += 1
        name = run.name if times[run.name] == 1 else f"{run.name} ({times[run.name]})"
        logged, repeated = by_step(run.rows)
        if repeated:
            notes.append(f"{name} logged {repeated} of its steps again, as after a restart: the later counts")
        settings = {name: value for name, value in flat(run.settings) if isinstance(value, _SCALARS)}
        identity = {"run_id": name, "origin": run.origin} | ({"status": run.status} if run.status else {})
        settings |= dict.fromkeys(settings.keys() & {name for row in logged for name in row})  # lines win
        rows += [{**settings, **row, **identity} for row in logged or [{}]]
    if not rows:
        raise InputError("holds no logged run", where=where, mend="name the folder that the tracker wrote")
    return of_rows(rows, where), notes


_SCALARS = (str, int, float, bool)


def by_step(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Rows of one step as one, and how many steps have a value twice."""
    clean = [dict(_values(row)) for row in rows]
    named = {name if name == "_step" else plain(name): name for row in clean for name in row}
    key = next((named[step] for step in _STEPS if step in named), None)
    merged: dict[Any, dict[str, Any]] = {}
    repeated: set[Any] = set()
    for place, row in enumerate(clean):
        step = row.pop(key, None) if key else None
        whole = merged.setdefault(("row", place) if step is None else step, {})
        if any(whole.get(name, value) != value for name, value in row.items() if "loss" in name):
            repeated.add(step)
        whole |= row if step is None else {**row, "step": step}
    return list(merged.values()), len(repeated)


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Numbers by key; trackers write NaN and infinity as words."""
    for name, value in flat(row):
        if isinstance(value, bool | int | float):
            yield name, value
        elif value in ("NaN", "Infinity", "-Infinity"):
            yield name, float(value)


def library(name: str, package: str, what: str) -> Any:
    """The module ``name`` of an optional package. Raises InputError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{what} needs {package}", mend=f"pip install {package}") from None


def files_named(path: Path, pattern: str, what: str) -> list[Path]:
    """``path`` itself, or the files below it whose names match. Raises InputError where there is none."""
    paths = [path] if path.is_file() else sorted(file for file in path.rglob(pattern) if file.is_file())
    if not paths:
        raise InputError(f"holds no {what}", where=str(path), mend="name the folder that the tracker wrote")
    return paths


def run_name(folder: Path, root: Path) -> str:
    """A run's name by its folder below ``root``."""
    return folder.relative_to(root).as_posix() if folder != root else folder.resolve().name


def object_in(file: Path) -> dict[str, Any]:
    """The JSON object in ``file``. Raises InputError for anything else."""
    value = files.read_json(file, nan=True, mend="copy it again")
    if not isinstance(value, dict):
        raise InputError("is not a JSON object", where=str(file), mend="name the file that the trainer wrote")
    return value
