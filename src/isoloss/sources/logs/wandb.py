"""Weights & Biases: the CSV of a panel or of the table of runs, a local ``wandb`` folder, or its API.

A folder holds one ``run-ID.wandb`` a run: records in the log format of LevelDB, each a message whose
definition comes with the package wandb.
"""

import json
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isoloss import files
from isoloss.errors import InputError, RunError
from isoloss.sources.logs.logged import LoggedRun, files_named, library
from isoloss.sources.naming import plain
from isoloss.sources.read import FAILURES, read

PACKAGE = "wandb"
_BLOCK, _HEAD = 32768, 7
_FULL, _FIRST, _LAST = 1, 2, 4
_LONGEST_WAIT = 60.0
_CLOCKS = ("_runtime", "_timestamp", "_wandb")


def runs(source: str) -> Iterator[LoggedRun]:
    """Runs of a panel's CSV, of a folder, or of ENTITY/PROJECT where no such path is."""
    path = Path(source)
    if path.is_file() and path.suffix != ".wandb":
        yield from _panel(path)
    elif path.exists():
        yield from _folder(path)
    else:
        yield from _project(source)


def _panel(path: Path) -> Iterator[LoggedRun]:
    """One run a column; ``__MIN`` and ``__MAX`` are those of the points that the panel averaged."""
    table = read(path)
    axis, *others = table.columns
    if not any(" - " in name for name in others):
        raise InputError(
            "has no column 'RUN - METRIC'",
            where=str(path),
            mend="export the panel of one metric such as val/loss, with its steps, or the table of runs",
        )
    metrics: dict[str, dict[str, pl.Series]] = {}
    for name in others:
        run, dash, metric = name.rpartition(" - ")
        if dash and not metric.endswith(("__MIN", "__MAX")):
            metrics.setdefault(run, {})[metric] = table[name]
    step = "step" if plain(axis) in ("step", "global_step", "train_global_step") else axis
    for run, columns in metrics.items():
        rows = pl.DataFrame([table[axis].alias(step), *(s.alias(n) for n, s in columns.items())]).to_dicts()
        logged = [row for row in rows if any(row[metric] is not None for metric in columns)]
        yield LoggedRun(run, str(path), logged)


def _folder(path: Path) -> Iterator[LoggedRun]:
    proto = library("wandb.proto.wandb_internal_pb2", PACKAGE, "a local wandb folder")
    parts: dict[str, LoggedRun] = {}
    for file in files_named(path, "*.wandb", "run of W&B (run-ID.wandb)"):
        try:
            messages = [proto.Record.FromString(data) for data in _records(files.read_bytes(file))]
        except FAILURES:
            raise InputError("is damaged", where=str(file), mend="sync or copy it again") from None
        key, run = _run(messages, file)
        if earlier := parts.get(key):  # a run that was resumed has a file for each of its parts
            rows, settings = [*earlier.rows, *run.rows], {**earlier.settings, **run.settings}
            run = LoggedRun(run.name, f"{earlier.origin}, {run.origin}", rows, settings, run.status)
        parts[key] = run
    yield from parts.values()


def _records(data: bytes) -> Iterator[bytes]:
    """The records of a log; what was torn off at its end is left out."""
    if data[:4] != b":W&B":
        raise ValueError("no log of W&B")
    place, record = _HEAD, b""
    while place + _HEAD <= len(data):
        left = _BLOCK - place % _BLOCK
        if left < _HEAD:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        body = data[place + _HEAD : place + _HEAD + length]
        place += _HEAD + length
        if len(body) < length or not _FULL <= kind <= _LAST:
            return
        record = body if kind in (_FULL, _FIRST) else record + body
        if kind in (_FULL, _LAST):
            yield record


def _run(messages: list[Any], file: Path) -> tuple[str, LoggedRun]:
    name, key, status = file.stem, file.stem, "running"
    settings: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for message in messages:
        kind = message.WhichOneof("record_type")
        if kind == "run":
            key = message.run.run_id or key
            name = message.run.display_name or key
        if kind in ("run", "config"):
            settings |= _items(message.run.config.update if kind == "run" else message.config.update)
        elif kind == "history":
            rows.append(_items(message.history.item))
        elif kind == "exit":
            status = "failed" if message.exit.exit_code else "finished"
    return key, LoggedRun(name, str(file), rows, settings, status)


def _items(items: Any) -> dict[str, Any]:
    named = {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}
    return {name: value for name, value in named.items() if name.partition(".")[0] not in _CLOCKS}


def _project(source: str) -> Iterator[LoggedRun]:
    """Over the network, with the key of the user's W&B login."""
    if source.count("/") != 1:
        raise InputError("there is no such path", where=source, mend="give a CSV, a folder or ENTITY/PROJECT")
    api = library(PACKAGE, PACKAGE, "the API of W&B")
    for run in api.Api().runs(source):
        rows = [{name: v for name, v in row.items() if name not in _CLOCKS} for row in run.scan_history()]
        settings = {name: value for name, value in run.config.items() if name not in _CLOCKS}
        yield LoggedRun(run.name, f"wandb.ai/{source}/runs/{run.id}", rows, settings, run.state)


def write(runs: Sequence[LoggedRun], study: str, out: Path) -> None:
    """Offline runs of the project ``study`` in the new folder ``out``; ``wandb sync`` sends them."""
    wandb = library(PACKAGE, PACKAGE, "a run of W&B")
    quiet = wandb.Settings(silent=True, x_disable_stats=True, x_disable_meta=True)
    with files.new_folder(out) as folder:
        options = {"dir": folder, "mode": "offline", "project": study, "settings": quiet}
        for run in runs:
            logger = wandb.init(name=run.name, config=dict(run.settings), **options)
            for row in run.rows:
                logger.log({name: value for name, value in row.items() if name != "step"}, step=row["step"])
            logger.finish(exit_code=0 if run.status == "finished" else 1)
        _wait_for_ends(folder)


def _wait_for_ends(folder: Path) -> None:
    """Until each run's file holds its end: another process writes it, and finish does not wait for that."""
    deadline = time.monotonic() + _LONGEST_WAIT
    while not _ended(folder):
        if time.monotonic() > deadline:
            raise RunError("W&B did not write the end of a run", where=str(folder), mend="try again")
        time.sleep(0.05)


def _ended(folder: Path) -> bool:
    try:
        return all(run.status != "running" for run in _folder(folder))
    except InputError:  # a file whose first bytes are not written yet
        return False
