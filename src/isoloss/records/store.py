"""A study on disk, and reading it back.

    DIR/study.json                 the resolved study: name, scale, every planned run
    DIR/runs/RUN_ID/
        settings.json              what the run is
        log.jsonl                  its progress, for people; nothing reads a number from it
        checkpoints/               the newest two
        failure.json               why the last attempt failed, if it did
        positions.parquet          per-position sums at every evaluation
        sliding.parquet            the same targets at every position, by block of text
        curve.parquet              training loss at every step
        weights.safetensors        weights at the last D point, if they were to be kept
        record.json                the record, written last: the run is finished

A run folder belongs to whoever holds its ``claim.lock``.
"""

import gc
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import inf, isclose
from pathlib import Path
from typing import Any

import polars as pl

from isoloss import files
from isoloss.errors import InputError
from isoloss.face import StudyFace
from isoloss.records.divergence import mark_divergence
from isoloss.records.schema import SCHEMA_VERSION, Record, StudyPlan
from isoloss.records.table import COLUMNS, loss_table, run_columns
from isoloss.strict import validate

WEIGHTS = "weights.safetensors"
SLIDING = "sliding.parquet"
CURVE = "curve.parquet"
POSITIONS = "positions.parquet"

IDENTITY = {
    name: COLUMNS[name]
    for name in ("run_id", "family", "label", "params", "n_layer", "recurrence", "seed", "status")
}
"""The columns in front of a run's positions and curve."""

POSITION_COLUMNS = {
    "step": pl.Int64,
    "tokens": pl.Int64,
    "cooled": pl.Boolean,
    "part": pl.String,
    "position": pl.Int64,
    "sum": pl.Float64,
    "sumsq": pl.Float64,
    "count": pl.Int64,
}
"""``part``: exit_1, exit_2, ... (cross-entropy per exit), and for gated models expected, entropy, total.
``position`` is 1-based. Sums, not means: divide once, at the end."""

SLIDING_COLUMNS = {
    "step": pl.Int64,
    "tokens": pl.Int64,
    "cooled": pl.Boolean,
    "first": pl.Int64,
    "last": pl.Int64,
    "block": pl.Int64,
    "sum": pl.Float64,
    "count": pl.Int64,
}
"""Loss of the last exit with ``first`` to ``last`` tokens of context, summed over the same ``count`` targets
of a block of text for every group and run (``isoloss.training.sliding``)."""

CURVE_COLUMNS = {
    "branch": pl.Int64,
    "step": pl.Int64,
    "tokens": pl.Int64,
    "cooled": pl.Boolean,
    "total": pl.Float64,
}
"""``branch`` is 0 on the trunk; gated models have their parts beside ``total``."""


SAID_OF_RUNS = {"run_id", "label", "settings", "counts"}
NO_CURVE = pl.DataFrame(schema=CURVE_COLUMNS)

MAY_LACK = (SLIDING, POSITIONS)
"""Runs of before the same targets were measured lack the one, reference studies the other."""


def run_folder(folder: Path, run_id: str) -> Path:
    return files.safe_child(folder / "runs", run_id)


def is_finished(folder: Path) -> bool:
    return (folder / "record.json").is_file()


def check(folder: Path) -> Record:
    """The record of a finished run. Raises InputError if it or a file beside it is damaged."""
    record = read_record(folder)
    check_unsealed(folder, record)
    for name in {CURVE, *record.files}:
        check_file(folder, record, name)
    return record


def check_unsealed(folder: Path, record: Record) -> None:
    """Raises InputError if a record without a digest was edited: what it says is also said beside it.

    Its name ends in the hash of its settings; its losses are the means over positions of the last exit.
    """
    if record.digest:
        return
    where, mend = str(folder / "record.json"), "delete the run's folder; run again"
    if not record.run_id.endswith(files.hash_of(record.settings)[:12]):
        raise InputError("its settings are not those that its name is the hash of", where=where, mend=mend)
    if POSITIONS not in record.files:
        return
    sums = pl.read_parquet(check_file(folder, record, POSITIONS)).group_by("step", "cooled", "part")
    means = sums.agg(pl.col("sum").sum() / pl.col("count").sum())
    said = {(step, cooled, part): mean for step, cooled, part, mean in means.iter_rows()}
    for one in record.evaluations:
        mean = said.get((one.step, one.cooled, f"exit_{len(one.exits)}"), inf)
        if not isclose(one.loss, mean, rel_tol=1e-9):
            what = f"its loss after {one.step} updates, {one.loss}, is not that of {POSITIONS}, {mean}"
            raise InputError(what, where=where, mend=mend)


def check_planned(folder: Path, run: Mapping[str, Any], record: Record) -> None:
    """Raises InputError where study.json says otherwise of a run than its record, as after an edit."""
    planned, ran = (
        run_columns(record.study, values) for values in (run, record.model_dump(include=SAID_OF_RUNS))
    )
    for name, value in planned.items():
        if value != ran[name] and name != "label":  # which a later version may spell otherwise
            raise InputError(
                f"says {name} = {value!r} of {record.run_id}, whose record says {ran[name]!r}",
                where=str(folder / "study.json"),
                mend="delete it and run the study again: it is written anew",
            )


def write_parquet(path: Path, table: pl.DataFrame) -> str:
    """Write a table in one step; returns the file's sha256."""
    files.replace_file(path, table.write_parquet)
    return files.sha256(path)


def read_record(folder: Path) -> Record:
    """The record of a run that ended. Raises InputError naming the file and the key that is wrong."""
    path = folder / "record.json"
    values = files.read_json(path)
    if not isinstance(values, dict):
        raise InputError("is no record", where=str(path), mend="delete the run's folder; run again")
    version = values.get("schema_version")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"schema version {version!r}; this isoloss reads {SCHEMA_VERSION}",
            where=str(path),
            mend="use the isoloss that wrote it, or a newer one",
        )
    record = validate(Record, values, where=str(path), mend="delete the run's folder; run again")
    if record.run_id != folder.name:
        raise InputError(
            f"is the record of {record.run_id}, but lies in {folder.name}",
            where=str(path),
            mend="move it back",
        )
    return record


def read_plan(folder: Path) -> dict[str, Any]:
    """study.json as it stands. Raises InputError if there is none, or if it is no plan."""
    path = folder / "study.json"
    if not path.is_file():
        raise InputError(
            "holds no study (no study.json)",
            where=str(folder),
            mend="give the folder that `isoloss run` wrote",
        )
    values = files.read_json(path)
    mend = "delete it and run the study again: it is written anew"
    validate(StudyPlan, values, where=str(path), mend=mend)
    return values


def write_failure(folder: Path, reason: str, traceback: str = "") -> None:
    """Why the last attempt at the run of this folder failed. The next success removes it."""
    value = {"run_id": folder.name, "reason": reason, "traceback": traceback}
    files.write_json(folder / "failure.json", value)


def read_failure(folder: Path) -> dict[str, Any] | None:
    path = folder / "failure.json"
    if not path.is_file():
        return None
    values = files.read_json(path)
    if not isinstance(values, dict) or not isinstance(values.get("reason"), str):
        raise InputError("gives no reason", where=str(path), mend="delete it and run the study again")
    return values


def read_parts(folder: Path, records: Sequence[Record], name: str) -> Iterator[pl.DataFrame]:
    """That Parquet file of every run, checked against its record: the rows behind their ``run_id``.

    A table for each shape, by one scan: of very many small files opening each by itself is the dearest.
    """
    alike: dict[str, list[Record]] = {}
    for record in records:
        alike.setdefault(repr((record.family, record.settings["shape"])), []).append(record)
    for group in alike.values():
        paths = [str(check_file(run_folder(folder, record.run_id), record, name)) for record in group]
        rows = pl.scan_parquet(paths, glob=False, include_file_paths="path").collect()
        runs = pl.DataFrame({"run_id": [record.run_id for record in group], "path": paths})
        yield runs.join(rows, on="path", maintain_order="left_right").drop("path")


def check_file(folder: Path, record: Record, name: str) -> Path:
    """The path of a run's file. Raises InputError unless it has the sha256 in its record."""
    path = files.safe_child(folder, name)
    mend = "delete the run's folder and run the study again"
    if not path.is_file():
        raise InputError("is missing", where=str(path), mend=mend)
    if files.sha256(path) != record.files.get(name):
        raise InputError("does not match the sha256 in its record", where=str(path), mend=mend)
    return path


@dataclass(frozen=True)
class StudyData(StudyFace):
    """A study as read from disk. ``plan`` is study.json; ``records`` are the finished and diverged runs."""

    folder: Path
    plan: Mapping[str, Any]
    records: list[Record]
    failures: Mapping[str, Mapping[str, Any]]

    def table(self) -> pl.DataFrame:
        """The loss table: one row per run and evaluation, and one for each planned run without any."""
        return self._table

    @cached_property
    def derived(self) -> dict[str, pl.DataFrame]:
        """Tables made of it elsewhere, by name, for whoever asks for the same again."""
        return {}

    @cached_property
    def _table(self) -> pl.DataFrame:
        return loss_table(self.plan, self.records, self.failures)

    @cached_property
    def _positions(self) -> pl.DataFrame:
        return self._parts(POSITIONS, POSITION_COLUMNS)

    @cached_property
    def _sliding(self) -> pl.DataFrame:
        return self._parts(SLIDING, SLIDING_COLUMNS)

    def positions(self) -> pl.DataFrame:
        """Per-position sums of all runs, long form, with each run's identity columns in front."""
        return self._positions

    def sliding(self) -> pl.DataFrame:
        """Loss of the same targets by context read; empty for runs of before they were measured so."""
        return self._sliding

    def curves(self) -> pl.DataFrame:
        """Training losses of all runs: branch, step, tokens, cooled, total; for gated models its parts."""
        return self._parts(CURVE, CURVE_COLUMNS)

    def _parts(self, name: str, columns: Mapping[str, Any]) -> pl.DataFrame:
        there = [record for record in self.records if name not in MAY_LACK or name in record.files]
        if not there:
            return pl.DataFrame(schema={**IDENTITY, **columns})
        rows = pl.concat(read_parts(self.folder, there, name), how="diagonal")
        values = [
            {**run_columns(r.study, r.model_dump(include=SAID_OF_RUNS)), "status": r.status} for r in there
        ]
        identity = pl.DataFrame(
            [[row[key] for key in IDENTITY] for row in values], schema=IDENTITY, orient="row"
        )
        return identity.join(rows, on="run_id", maintain_order="left_right")


def load(folder: str | Path) -> StudyData:
    """Read a study folder; records of before a rule of ``divergence`` was made are held to it too.

    Raises InputError if it is none, or if any record in it cannot be trusted.
    """
    with uncollected():
        return _loaded(Path(folder))


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """No search for cycles while very many objects are made that stay: each would be looked at again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _loaded(folder: Path) -> StudyData:
    plan = read_plan(folder)
    records: list[Record] = []
    failures: dict[str, Mapping[str, Any]] = {}
    for run in plan["runs"]:
        run_path = run_folder(folder, run["run_id"])
        if is_finished(run_path):
            records.append(record := read_record(run_path))
            check_unsealed(run_path, record)
            check_planned(folder, run, record)
        elif failure := read_failure(run_path):
            failures[run["run_id"]] = failure
    with_curve = [record for record in records if CURVE in record.files]
    curves: dict[Any, pl.DataFrame] = {}
    for rows in read_parts(folder, with_curve, CURVE):
        curves |= rows.partition_by("run_id", as_dict=True)
    judged = {r.run_id: mark_divergence(r, curves.get((r.run_id,), NO_CURVE)) for r in with_curve}
    return StudyData(folder, plan, [judged.get(record.run_id, record) for record in records], failures)
