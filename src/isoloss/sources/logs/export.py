"""A study as a tracker keeps it: runs with settings, what they reached at each D point, their curves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from isoloss.errors import InputError
from isoloss.records import StudyData
from isoloss.sources.logs.logged import LoggedRun, by_step
from isoloss.sources.logs.loss_table import write
from isoloss.sources.logs.readers import SOURCES

SETTINGS = (
    "family", "params", "params_total", "params_executed", "n_layer", "d_model", "d_ff", "n_head",
    "recurrence", "context", "vocab", "batch_tokens", "learning_rate", "seed",
)  # fmt: skip
TARGETS = (*(name for name, source in SOURCES.items() if source.write), "parquet")


def export(study: StudyData, target: str, out: Path) -> None:
    """``study`` for ``target``: a new folder of W&B or TensorBoard, a new sqlite file of MLflow, a table.

    Raises InputError for an unknown target, a path that is there already, and a package that is missing.
    """
    if target not in TARGETS:
        raise InputError(f"nothing is exported to {target!r}", where="--to", mend=f"use {', '.join(TARGETS)}")
    writer: Callable[[Any, str, Path], None] | None = SOURCES[target].write if target in SOURCES else None
    if writer is None:
        write(study.table(), out)
    else:
        writer(logged_runs(study), study.plan["study"], out)


def logged_runs(study: StudyData) -> list[LoggedRun]:
    """``val_loss`` is that at the end of a cooldown, ``trunk_val_loss`` one on the way."""
    table, curves = study.table(), study.curves()
    logged: list[LoggedRun] = []
    for run in table.partition_by("run_id", maintain_order=True):
        first = run.row(0, named=True)
        curve = curves.filter(pl.col("run_id") == first["run_id"], pl.col("branch") == 0)
        rows: list[dict[str, Any]] = curve.select("step", "tokens", train_loss="total").to_dicts()
        for row in run.filter(pl.col("loss").is_not_null()).to_dicts():
            values = {"val_loss": row["loss"], "bits_per_byte": row["bits_per_byte"]} if row["cooled"] else {}
            values = values or {"trunk_val_loss": row["loss"]}
            rows.append({"step": row["step"], "tokens": row["tokens"], **values})
        settings = {name: first[name] for name in SETTINGS if first[name] is not None}
        ordered = sorted(by_step(rows)[0], key=lambda row: row["step"])
        logged.append(LoggedRun(first["run_id"], str(study.folder), ordered, settings, first["status"]))
    return logged
