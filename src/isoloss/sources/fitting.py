"""From a table to a fit, with everything the table's checks said."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss import text
from isoloss.errors import InputError, Refusal, attempt
from isoloss.laws import Array, Fit, FitStatus, Form, fit, registered
from isoloss.plain import json_values
from isoloss.sources import unit_checks
from isoloss.sources.checks import accept, usable
from isoloss.sources.columns import runs
from isoloss.sources.mixed import mixtures
from isoloss.sources.mixed_labels import mixed_labels
from isoloss.sources.naming import LABELS
from isoloss.sources.repeats import run_names, without_repeats
from isoloss.sources.scales import unread_scales
from isoloss.sources.settings import unread_settings
from isoloss.sources.sides import one_sided
from isoloss.sources.sweeps import TUNED, best_of_sweeps, numbers_of
from isoloss.sources.table import COUNTS, Runs, row_words

NO_SEEDS = "rows of equal inputs count once, since they are no seeds"
ANOTHER_OBJECTIVE = "fitted by squared-log, since huber-log is refused"


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
        return source_warnings(self.source)

    def rows_of(self, flops: float, params: float) -> str:
        """'row 4 (N = 9.1e7)': the rows of one size at one compute budget."""
        near_n = np.abs(np.log(self.inputs["flops"] / flops)) < 0.2
        near_n &= np.abs(np.log(self.inputs["params"] / params)) < 0.02
        rows = self.runs.frame["row"].to_numpy()[near_n]
        return f"{row_words(rows.tolist())} (N = {text.count(params)})"

    def sweep(self, inputs: Sequence[str]) -> tuple[NDArray[np.intp], str]:
        """The best rows of each set of ``inputs``, where it was run at several rates or batches, and that."""
        tuned = numbers_of(self.runs.frame, [name for name in TUNED if name not in inputs])
        return best_of_sweeps({name: self.inputs[name] for name in inputs}, tuned, self.loss)

    def warnings_in_refusal(self) -> AbstractContextManager[None]:
        """A Refusal in the block says under its reason what was left out, and what else is wrong here."""
        return in_refusal(self.warnings)

    @property
    def source(self) -> dict[str, Any]:
        """Where the rows came from, which column is which, and which rows were left out, with the reasons.

        ``count`` is there where N is not ``params``; ``flops_factor`` where FLOPs are so many times 6 N D,
        ``flops_rule`` where by no constant.
        """
        uneven, factor = unit_checks.uneven_flops(self.runs), unit_checks.flops_factor(self.runs)
        return {
            **self.runs.source,
            **({} if self.runs.count == COUNTS[0] else {"count": self.runs.count}),
            **({"flops_rule": uneven} if uneven else {}),
            **({} if factor == 1 else {"flops_factor": factor}),
            "columns": dict(self.runs.columns),
            "excluded": json_values(self.runs.excluded),
            "findings": [
                {name: value for name, value in json_values(issue).items() if name != "severity"}
                for issue in self.runs.findings
            ],
        }


@contextmanager
def in_refusal(warnings: Sequence[str]) -> Generator[None, None, None]:
    """A Refusal in the block says ``warnings`` under its reason."""
    try:
        yield
    except Refusal as reason:
        if not warnings:
            raise
        what = "\n  warning: ".join([reason.what, *warnings])
        raise Refusal(what, where=reason.where, mend=reason.mend) from None


def source_warnings(source: Mapping[str, Any]) -> tuple[str, ...]:
    """Which rows were left out, and what the checks doubt, of the ``source`` that a result carries."""
    reasons: dict[str, list[int]] = {}
    why: dict[int, str] = {}
    for excluded in source.get("excluded", ()):
        reason, _, detail = excluded["reason"].partition(": ")
        reasons.setdefault(reason, []).append(excluded["row"])
        why[excluded["row"]] = detail
    out = (
        f"left out as {reason}: {row_words(rows)}{_why(rows[0], [why[row] for row in rows])}"
        for reason, rows in reasons.items()
    )
    return (*out, *(finding["message"] for finding in source.get("findings", ())))


def _why(first: int, details: list[str]) -> str:
    """The first row's reason, in brackets, which names the row where others have another one."""
    which = f"row {first}: " if len(set(details)) > 1 else ""
    return f" ({which}{details[0]})" if details[0] else ""


def _filled(runs_read: Runs, name: str) -> bool:
    """Whether a column has a value in every row, not in none. Raises InputError where it has some."""
    empty = runs_read.frame.filter(pl.col(name).is_null())["row"].to_list()
    if 0 < len(empty) < runs_read.frame.height:
        raise InputError(
            f"{runs_read.columns[name]} is empty in {row_words(empty)}",
            mend="fill it, or keep these rows out with where",
        )
    return not empty


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
    optional: tuple[str, ...] = (),
    accepted: Sequence[str] = (),
) -> Columns:
    """The columns that ``laws`` need (and ``more``), read, checked, refused or excluded with their reasons.

    Every command and ``isoloss.fit`` read a table here, and so say the same about it. ``optional`` are inputs
    that are taken where the table has them, and then for every row. ``count`` is the rule by which N is
    counted: params, params_total or params_executed. Rows of one run, and rows of equal inputs that are no
    seeds, form one cluster unless ``cluster`` says otherwise. Raises InputError as ``sources.runs`` and
    ``sources.accept`` do, and where an optional input is empty in some rows.
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
        optional=optional,
        bytes_per_token=bytes_per_token,
        tied_embeddings=tied_embeddings,
        allow_negative=allow_negative,
        accepted=accepted,
    )
    table_runs = accept(usable(table_runs))
    design = [name for name in table_runs.needed if name not in ("loss", *extra, "holdout")]
    table_runs = without_repeats(table_runs, design)
    frame = table_runs.frame
    column_of |= {name: name for name in optional if table_runs.has(name) and _filled(table_runs, name)}
    taken = {name: _floats(frame, column) for name, column in column_of.items() if name not in LABELS}
    findings = [*table_runs.findings, *mixtures(table_runs, design), *unread_settings(table_runs)]
    findings += unread_scales(table_runs, forms, taken)
    if forms and all(law.gives != "loss" for law in forms):  # sizes are no losses
        findings = [issue for issue in findings if not issue.kind.startswith("loss-")]
    run, note = (None, "") if cluster else run_names(table_runs, design)
    if cluster:
        run = frame["cluster"].cast(pl.String)
    elif run is None and any(issue.kind in ("no-seeds", "stacked") for issue in findings):
        run, note = _designs(frame, design), NO_SEEDS
    elif run is None and len(frame.unique([*design, "loss"])) < frame.height:
        # Losses that rounding made equal: each row stays a run, where a fit would merge them.
        run = frame["row"].cast(pl.String)
    findings += mixed_labels(table_runs, design, run, findings)
    notes = [*table_runs.source["notes"], *([note] if note else [])]
    side = one_sided(table_runs) if set(taken) == {"params", "tokens"} else ""
    source = {**table_runs.source, "notes": notes, **({"one_sided": side} if side else {})}
    table_runs = replace(table_runs, findings=tuple(findings), source=source)
    return Columns(
        table_runs,
        taken,
        _floats(frame, "loss"),
        _floats(frame, "weights") if weights else None,
        None if run is None else run.to_numpy(),
    )


def _designs(frame: pl.DataFrame, design: list[str]) -> pl.Series:
    return frame.select(
        pl.concat_str([pl.col(name).cast(pl.String) for name in design], separator=", ")
    ).to_series()


def _floats(frame: pl.DataFrame, column: str) -> Array:
    return frame[column].cast(pl.Float64).to_numpy()


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
    accepted: Sequence[str] = (),
    objective: str | None = None,
    **options: Any,
) -> Fit:
    """Fit ``law`` to a table: a path to CSV, Parquet or NDJSON, a study's folder, or a frame in memory.

    ``params`` and its like, and ``columns`` for all others, say which column holds what; well-known names are
    found, and columns that follow from others are derived (tokens from FLOPs and parameters). ``where`` keeps
    rows: polars SQL over the table's own names; no code is run. ``weights`` and ``cluster`` are columns too.
    ``count`` takes params_total or params_executed for N; ``tied_embeddings`` lets one follow from another.
    Rows of one run are one cluster unless told otherwise. ``accepted`` names kinds of findings that warn in
    place of refusing. Other options are those of ``isoloss.laws.fit``; the ``objective`` is "huber-log" and,
    where that refuses a law that squared-log determines, "squared-log", which a warning says.

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
        accepted=accepted,
    )
    inputs = {name: data.inputs[name] for name in law.inputs}
    row_n = data.runs.frame["row"].to_numpy()
    source, (keep, sweep) = data.source, data.sweep(law.inputs)
    if sweep:  # the fit takes all rows; a forecast of the same runs asks
        source |= {"sweep": {"message": sweep, "rows": row_n[keep].tolist()}}
    options |= {"weights": data.weights, "cluster": data.cluster, "source": source}
    options |= {"allow_negative": allow_negative}
    with data.warnings_in_refusal():
        fitted = fit_rows(law, inputs, data.loss, objective, **options)
    if fitted.data is not None:
        used_n = row_n if data.weights is None else row_n[data.weights > 0]
        fitted = replace(fitted, data=replace(fitted.data, rows=tuple(used_n.tolist())))
    return replace(fitted, warnings=(*data.warnings, *fitted.warnings))


def fit_rows(
    law: Form, inputs: Mapping[str, Array], loss: Array, objective: str | None = None, **options: Any
) -> Fit:
    """``laws.fit``; without an ``objective`` by huber-log, or by squared-log where the former refuses.

    A warning says the latter. Raises as ``laws.fit`` does; where both refuse, the Refusal of huber-log.
    """
    try:
        if objective is None:
            return _by_default(law, inputs, loss, options)
        return fit(law, inputs, loss, objective=objective, **options)
    except Refusal as reason:
        if not (held := options.get("fixed")):
            raise
        values = ", ".join(f"{name} = {value:g}" for name, value in held.items())
        mend = f"first look at what is held ({values}); then {reason.mend}"
        raise Refusal(reason.what, where=reason.where, mend=mend) from None


def _by_default(law: Form, inputs: Mapping[str, Array], loss: Array, options: Mapping[str, Any]) -> Fit:
    """Each objective once: a curve that huber-log leaves open is kept where squared-log does not close it."""
    first = attempt(fit, law, inputs, loss, objective="huber-log", **options)
    if isinstance(first, Fit) and first.status is not FitStatus.CURVE_ONLY:
        return first
    strict: dict[str, Any] = {**options, "curve_only": False}
    second = attempt(fit, law, inputs, loss, objective="squared-log", **strict)
    if isinstance(second, Fit) and second.status is FitStatus.CONVERGED:
        warning = f"{ANOTHER_OBJECTIVE}: {first.reason if isinstance(first, Fit) else first.what}"
        return replace(second, warnings=(warning, *second.warnings))
    if isinstance(first, Refusal):
        raise first
    return first
