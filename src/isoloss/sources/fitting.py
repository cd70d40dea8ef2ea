"""From a table to a fit, with everything the table's checks said."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss.errors import InputError
from isoloss.laws import Array, Fit, Form, fit, registered
from isoloss.sources.checks import accept, usable
from isoloss.sources.columns import runs
from isoloss.sources.naming import LABELS
from isoloss.sources.table import Excluded, Runs, TableIssue, row_words
from isoloss.strict import json_values

COUNTS = ("params", "params_total", "params_executed")


@dataclass(frozen=True)
class Columns:
    """A table as a law takes it: inputs, losses, and where asked for weights and clusters."""

    runs: Runs
    inputs: dict[str, Array]
    loss: Array
    weights: NDArray[Any] | None
    cluster: NDArray[Any] | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the checks doubt, and which rows were left out."""
        doubts = [issue.message for issue in self.runs.findings if issue.severity == "warn"]
        reasons: dict[str, list[int]] = {}
        for excluded in self.runs.excluded:
            reasons.setdefault(excluded.reason.split(":")[0], []).append(excluded.row)
        return (*doubts, *(f"left out as {reason}: {row_words(rows)}" for reason, rows in reasons.items()))

    @property
    def source(self) -> dict[str, Any]:
        """Where the rows came from, which column is which, and which rows were left out, with the reasons."""
        return {
            **self.runs.source,
            "columns": dict(self.runs.columns),
            "excluded": json_values(self.runs.excluded),
            "findings": [
                {name: value for name, value in json_values(issue).items() if name != "severity"}
                for issue in self.runs.findings
            ],
        }


def columns_for(
    laws: str | Form | list[str],
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    weights: str | None = None,
    cluster: str | None = None,
    bytes_per_token: float | None = None,
    tied_embeddings: bool | None = None,
    count: str = "params",
    allow_negative: bool = False,
    more: tuple[str, ...] = (),
) -> Columns:
    """The columns that ``laws`` need (and ``more``), read, checked, refused or excluded with their reasons.

    ``count`` is the rule by which N is counted: params, params_total or params_executed. Raises InputError as
    ``sources.runs`` and ``sources.accept`` do.
    """
    forms = [registered(law) for law in (laws if isinstance(laws, list) else [laws])]
    if count not in COUNTS:
        raise InputError(f"there is no count {count!r}", mend=f"choose one of {', '.join(COUNTS)}")
    inputs = dict.fromkeys([name for law in forms for name in law.inputs] + list(more))
    column_of = {name: count if name == "params" else name for name in inputs}
    needed = (*column_of.values(), "loss")
    extra = {name: column for name, column in (("weights", weights), ("cluster", cluster)) if column}
    table_runs = runs(
        table,
        columns={**(columns or {}), **extra},
        where=where,
        needed=(*needed, *extra),
        bytes_per_token=bytes_per_token,
        tied_embeddings=tied_embeddings,
        allow_negative=allow_negative,
    )
    table_runs = _with_law_issues(_without_copies(accept(usable(table_runs))), forms)
    run_id = table_runs.frame["run_id"] if "run_id" in table_runs.frame.columns else None
    if not cluster and run_id is not None and run_id.n_unique() < len(run_id):
        table_runs, cluster = _with_run_clusters(table_runs), "run_id"
    frame = table_runs.frame
    return Columns(
        table_runs,
        {name: _floats(frame, column) for name, column in column_of.items() if name not in LABELS},
        _floats(frame, "loss"),
        _floats(frame, "weights") if weights else None,
        frame["cluster"].cast(pl.String).to_numpy() if cluster else None,
    )


def _floats(frame: pl.DataFrame, column: str) -> Array:
    return frame[column].cast(pl.Float64).to_numpy()


def _with_run_clusters(table_runs: Runs) -> Runs:
    """Rows of one run are its checkpoints: they share its noise, so they are one cluster."""
    frame = table_runs.frame.with_columns(pl.col("run_id").alias("cluster"))
    notes = [*table_runs.source["notes"], "rows of one run_id count once"]
    return replace(table_runs, frame=frame, source={**table_runs.source, "notes": notes})


SETTINGS = (
    "family", "dataset", "vocab", "context", "n_layer", "d_model", "d_ff", "n_head", "learning_rate",
    "batch_tokens",
)  # fmt: skip


def _without_copies(table_runs: Runs) -> Runs:
    """Rows that repeat another in all that a fit needs, and in seed and run, are one run."""
    if "weights" in table_runs.frame.columns:
        return table_runs
    same = [*table_runs.needed, *(name for name in ("seed", "run_id") if name in table_runs.frame.columns)]
    first = table_runs.frame.group_by(same, maintain_order=True).agg(pl.col("row").min())["row"]
    copies = table_runs.frame.filter(~pl.col("row").is_in(first.to_list()))["row"].to_list()
    if not copies:
        return table_runs
    gone = tuple(Excluded(row, "a copy: repeats another row", False) for row in copies)
    return replace(
        table_runs,
        frame=table_runs.frame.filter(pl.col("row").is_in(first.to_list())),
        source={**table_runs.source, "rows_kept": first.len()},
        excluded=(*table_runs.excluded, *gone),
    )


def _with_law_issues(table_runs: Runs, forms: list[Form]) -> Runs:
    """Findings about what the laws ask: sizes are no losses, and seeds of a design share their settings."""
    findings = list(table_runs.findings)
    if all(law.gives != "loss" for law in forms) and forms:
        findings = [issue for issue in findings if not issue.kind.startswith("loss-")]
    inputs = [name for name in table_runs.needed if name in {i for law in forms for i in law.inputs}]
    settings = [name for name in SETTINGS if name in table_runs.frame.columns and name not in inputs]
    if inputs and settings:
        kinds = table_runs.frame.group_by(inputs).agg(pl.col(settings).n_unique())
        if mixed := [name for name in settings if (kinds[name] > 1).any()]:
            text = f"rows of equal {', '.join(inputs)} differ in {', '.join(mixed)}: they are no seeds"
            findings.append(TableIssue("no-seeds", "warn", (), text, "keep one setting with where"))
    return replace(table_runs, findings=tuple(findings))


def equal_to(series: pl.Series, value: str, column: str) -> np.ndarray:
    """Rows whose value is ``value``, written as in the table. Raises InputError if none or all are."""
    if series.dtype.is_numeric():
        try:
            mask = (series.cast(pl.Float64) == float(value)).fill_null(False).to_numpy()
        except ValueError:
            mask = np.zeros(len(series), dtype=bool)
    else:
        mask = (series.cast(pl.String).str.to_lowercase() == value.lower()).fill_null(False).to_numpy()
    if mask.any() and not mask.all():
        return mask
    values = ", ".join(map(str, series.unique().sort()[:8]))
    raise InputError(
        f"{'every' if mask.all() else 'no'} row has {column} = {value}",
        where="holdout",
        mend=f"hold out some rows; {column} takes {values}",
    )


def fit_table(
    law: str | Form,
    table: Any,
    *,
    params: str | None = None,
    tokens: str | None = None,
    flops: str | None = None,
    loss: str | None = None,
    recurrence: str | None = None,
    position: str | None = None,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    weights: str | None = None,
    cluster: str | None = None,
    bytes_per_token: float | None = None,
    tied_embeddings: bool | None = None,
    count: str = "params",
    allow_negative: bool = False,
    objective: str = "huber-log",
    **options: Any,
) -> Fit:
    """Fit ``law`` to a table: a path to CSV, Parquet or NDJSON, a study's folder, or a frame in memory.

    ``params`` and its like, and ``columns`` for all others, say which column holds what; well-known names are
    found, and columns that follow from others are derived (tokens from FLOPs and parameters). ``where`` keeps
    rows: polars SQL over the table's own names; no code is run. ``weights`` and ``cluster`` are columns too.
    ``count`` takes params_total or params_executed for N; ``tied_embeddings`` lets one follow from another.
    Rows of one ``run_id`` are one cluster unless told otherwise. Other options are those of
    ``isoloss.laws.fit``, the objective being "huber-log" by default.

    What the checks doubt becomes a warning of the fit; its ``source`` holds the columns, the rules and every
    excluded row with the reason.

    Raises InputError naming row (counted from 1 in the table as given) and column, and Refusal as
    ``isoloss.laws.fit`` does.
    """
    law = registered(law)
    mapped = {
        "params": params, "tokens": tokens, "flops": flops, "loss": loss, "recurrence": recurrence,
        "position": position,
    }  # fmt: skip
    data = columns_for(
        law,
        table,
        columns={**{name: column for name, column in mapped.items() if column}, **(columns or {})},
        where=where,
        weights=weights,
        cluster=cluster,
        bytes_per_token=bytes_per_token,
        tied_embeddings=tied_embeddings,
        count=count,
        allow_negative=allow_negative,
    )
    fitted = fit(
        law,
        {name: data.inputs[name] for name in law.inputs},
        data.loss,
        weights=data.weights,
        cluster=data.cluster,
        allow_negative=allow_negative,
        objective=objective,
        source=data.source,
        **options,
    )
    return replace(fitted, warnings=(*fitted.warnings, *data.warnings))
