"""A table under this project's names: columns mapped or known, rows kept by ``where``, the rest derived."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.selectors import integer, numeric

from isoloss import files
from isoloss.errors import InputError
from isoloss.sources import checks, endings
from isoloss.sources.cells import AMOUNTS, numbers_in
from isoloss.sources.derive import derive, rules
from isoloss.sources.naming import (
    COUNTED,
    LABELS,
    NUMBERS,
    SYNONYMS,
    candidates,
    device_time,
    header,
    is_panel,
    loss_unit,
    may_be_setting,
    other_counts,
    plain,
)  # fmt: skip
from isoloss.sources.read import FAILURES, first_line, read
from isoloss.sources.table import ONE_EPOCH, Runs
from isoloss.sources.where import check_where, multiplies

NEEDED = ("params", "tokens", "loss")
SHARED = ("cluster", "holdout", "weights")  # may be a column that something else is too
_LARGEST = {"tokens": 1e14, "unique_tokens": 1e14, "flops": 1e30}
"""Smallest value of a whole column that its header's unit may make; of parameters 1e12."""
_INDEX = re.compile(r"(unnamed_.*|index|level_0)?")


def runs(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    needed: Sequence[str] = NEEDED,
    optional: Sequence[str] = (),
    bytes_per_token: float | None = None,
    tied_embeddings: bool | None = None,
    allow_negative: bool = False,
    accepted: Sequence[str] = (),
) -> Runs:
    """The runs in ``source`` (anything ``read`` takes), checked.

    ``columns`` maps our names to the table's. A name that is not mapped is taken from the one column that
    has a well-known name for it (``naming.SYNONYMS``), and ``source["notes"]`` says so; a ``needed`` name
    without a column is derived (``derive.rules``), and ``source["derived"]`` says by which rule. ``optional``
    names are read where the table has them.
    A count whose header names a unit ("params_M", "Tokens (B)", "PF-days") is multiplied by it, and a note
    says so. ``where`` keeps rows: polars SQL over the table's own names ("arch = 'llama' AND
    \\"Model Size\\" > 1e8").

    Findings do not raise here: ``accept`` refuses, ``usable`` leaves out unfinished and diverged rows.
    ``accepted`` names kinds of findings that then warn only.

    Raises InputError for a column that is missing, ambiguous or not numbers (naming the row), a ``where``
    that does not work or keeps nothing, and whatever ``read`` raises.
    """
    _check_options(bytes_per_token, columns or {})
    table = read(source)
    selected, rows = _keep_where(table, where)
    column_of, notes = _map_columns(selected, columns or {}, needed)
    arrays: dict[str, pl.Series] = {}
    for name, column in column_of.items():
        try:
            series = _column_values(selected[column], name, column, rows, name in needed, notes)
            arrays[name] = _in_units(series, name, column, notes)
        except InputError as error:
            if name in needed or name in optional or name in (columns or {}):
                raise
            notes.append(f"{column} is left out: {error.what}")
    column_of = {name: column for name, column in column_of.items() if name in arrays}
    frame = pl.DataFrame({"row": rows, **arrays})
    in_force = rules(bytes_per_token=bytes_per_token, tied_embeddings=tied_embeddings)
    derived: dict[str, str] = {}
    for name in needed:
        step = derive(name, frame, in_force)
        if step is None:
            raise _missing(name, selected.columns, in_force)
        frame, more = step
        derived |= more
    if "unique_tokens" not in frame.columns and _repeats(frame):
        frame, more = derive("unique_tokens", frame, in_force) or (frame, {})
        derived |= more
    cut_short, unclear = endings.cut_short(selected, rows, column_of)
    runs_read = Runs(
        frame=frame,
        columns=column_of,
        needed=tuple(needed),
        source={
            **_origin(source),
            "rows_read": table.height,
            "rows_kept": selected.height,
            "where": where,
            "columns": column_of,
            "derived": derived,
            "notes": notes,
            "loss_unit": loss_unit(column_of.get("loss", "loss")),
        },
        copies=_equal_rows(selected, rows),
        labels=_labels(selected, rows, column_of),
        unread=_unread(selected, rows, column_of),
        cut_short=cut_short,
        unknown_states={column: tuple(selected[column].drop_nulls().unique().sort()) for column in unclear},
        allow_negative=allow_negative,
        accepted=tuple(accepted),
    )
    return replace(runs_read, findings=checks.check(runs_read))


def _repeats(frame: pl.DataFrame) -> bool:
    """Whether a column of epochs says that data were repeated."""
    return {"tokens", "epochs"} <= set(frame.columns) and bool((frame["epochs"] > ONE_EPOCH).any())


def _check_options(bytes_per_token: float | None, columns: Mapping[str, str]) -> None:
    if bytes_per_token is not None and not (math.isfinite(bytes_per_token) and bytes_per_token > 0):
        raise InputError(f"bytes_per_token is {bytes_per_token}", mend="give a positive number")
    if "row" in columns:
        raise InputError("'row' is the number of the row", mend="choose another name for that column")


def _origin(source: Any) -> dict[str, Any]:
    if not isinstance(source, str | Path):
        return {"path": None, "sha256": None, "study": False}
    path = Path(source)
    sha256 = files.sha256(path) if path.is_file() else None
    return {"path": str(path), "sha256": sha256, "study": path.is_dir()}


def _keep_where(table: pl.DataFrame, where: str | None) -> tuple[pl.DataFrame, pl.Series]:
    rows = pl.Series("row", range(1, table.height + 1), dtype=pl.Int64)
    if where is None:
        return table, rows
    mark = "row"
    while mark in table.columns:
        mark += "_"
    where = check_where(where)
    compared = table.with_columns(integer().cast(pl.Float64)) if multiplies(where) else table
    try:
        numbers = compared.with_columns(rows.alias(mark)).filter(pl.sql_expr(where))[mark]
        selected = table[numbers - 1]
    except FAILURES as error:
        what = f"where does not work on this table ({first_line(error).split(';')[0]})"
        mend = f"put text in single quotes, as in family = 'lstm'; {_has(table.columns)}"
        raise InputError(what, where=where[:200], mend=mend) from None
    if not selected.height:
        raise InputError("where keeps no row", where=where[:200], mend="widen it")
    return selected, numbers.alias("row")


def _has(columns: Sequence[str]) -> str:
    return f"the table has {', '.join(map(repr, columns))}"


def _map_columns(
    table: pl.DataFrame, columns: Mapping[str, str], needed: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Our name -> column, and notes on what was taken without being asked for."""
    names = table.columns
    column_of = dict(columns)
    notes: list[str] = []
    used: dict[str, str] = {}
    for name, column in columns.items():
        if column not in names:
            raise InputError(f"there is no column {column!r} for {name}", mend=_has(names))
        if name not in SHARED and used.setdefault(column, name) != name:
            raise InputError(
                f"column {column!r} is mapped to {used[column]} and to {name}", mend="map it once"
            )
    free = [column for column in names if column not in used]
    for name in dict.fromkeys([*needed, *SYNONYMS]):
        if name in column_of or name == "row":
            continue
        matches = [column for column in candidates(name, free) if could_be(table[column], name)]
        if name in ("run_id", "dataset", "epochs"):  # either tells: the best known one that varies
            best = sorted(matches, key=lambda column: SYNONYMS[name].index(plain(column)))
            matches = sorted(best, key=lambda column: table[column].drop_nulls().n_unique() < 2)[:1]
        if len(matches) > 1 and name in needed:
            first, second = matches[:2]
            raise InputError(
                f"two columns could be {name}: {first!r} and {second!r}",
                mend=f"say which one: --column {name}={first!r}, or columns={{{name!r}: {first!r}}}",
            )
        if len(matches) > 1:
            notes.append(f"{name} is not read: {' or '.join(map(repr, matches))}?")
        elif matches:
            column_of[name] = matches[0]
            if matches[0] != name and header(matches[0]).factor == 1:
                notes.append(f"{name} is the column {matches[0]!r}")
    if "params" in column_of and (others := other_counts(table.select(numeric()).columns, column_of)):
        notes.append(
            f"params is {column_of['params']!r}; {', '.join(map(repr, others))} count parameters too"
        )
    return column_of, notes


def could_be(column: pl.Series, name: str) -> bool:
    """False for words alone where counts are looked for: a label such as 'attention' for how N is counted.

    And for numbers where words are: 'data' may be a count of tokens, 'mixture' a share.
    """
    if name == "dataset":
        return not column.dtype.is_numeric() or plain(column.name) in ("dataset", "corpus")
    if name not in AMOUNTS or column.dtype != pl.String or not column.drop_nulls().len():
        return True
    return bool(column.str.contains(r"\d").any())


def _missing(name: str, names: Sequence[str], in_force: Sequence[Any]) -> InputError:
    ways = [" and ".join(rule.needs) for rule in in_force if rule.name == name]
    derivable = f", or columns for {' or for '.join(ways)}" if ways else ""
    if is_panel(names):
        return InputError(
            "is an export of a W&B panel: one column a run and no sizes",
            mend="isoloss import wandb PANEL.csv --table SIZES.csv, or export the table of runs in its place",
        )
    if name == "loss" and (others := [column for column in names if loss_unit(column) == "perplexity"]):
        return InputError(
            "there is no column for loss",
            mend=f"add a column loss, the logarithm of {others[0]!r}; {_has(names)}",
        )
    return InputError(
        f"there is no column for {name}",
        mend=f"map one: --column {name}=COLUMN, or columns={{{name!r}: ...}}{derivable}; {_has(names)}",
    )


def _column_values(
    series: pl.Series, name: str, column: str, rows: pl.Series, needed: bool, notes: list[str]
) -> pl.Series:
    kind = series.dtype
    if kind in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if name in NUMBERS or (needed and name not in LABELS):
        numbers, note = numbers_in(series, column, rows, amounts=name in AMOUNTS)
        notes += [f"{name}: {note}"] if note else []
        return numbers.alias(name)
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        raise InputError(f"holds {kind}, not labels", where=f"column {column!r}", mend="map another column")
    return series.alias(name)


def _in_units(series: pl.Series, name: str, column: str, notes: list[str]) -> pl.Series:
    """A count times the unit in its header. Raises InputError where the numbers speak against it."""
    if name not in COUNTED:
        return series
    if device_time(column):
        raise InputError(
            f"holds hours of devices, not {name}",
            where=f"column {column!r}",
            mend="multiply hours by 3600, the devices' FLOP/s and the share they reach, for FLOPs",
        )
    named = header(column)
    positive = series.filter(series > 0).to_numpy()
    if named.factor == 1 or not len(positive):
        return series
    if (least := float(positive.min())) * named.factor > _LARGEST.get(name, 1e12):
        raise InputError(
            f"says {named.unit} in its header and starts at {least:.3g}: raw counts under a wrong header?",
            where=f"column {column!r}",
            mend="rename the column, or divide it by its unit",
        )
    notes.append(f"{name} is the column {column!r} times {named.factor:g}, the unit in its header")
    return series * named.factor


def _labels(table: pl.DataFrame, rows: pl.Series, column_of: Mapping[str, str]) -> pl.DataFrame:
    """``row`` and every column of text that is nobody's: what might tell rows apart."""
    used = set(column_of.values())
    text = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    # Each row has an origin of its own in an imported table, and is no other setting by that.
    free = [c for c in table.columns if c not in (*used, "row", "origin") and table[c].dtype in text]
    return table.select(rows.alias("row"), *(pl.col(f"^{re.escape(c)}$").cast(pl.String) for c in free))


def _unread(table: pl.DataFrame, rows: pl.Series, column_of: Mapping[str, str]) -> pl.DataFrame:
    """``row`` and every column of numbers that is nobody's and may be a setting."""
    used = {"row", *column_of.values()}
    free = [column for column in table.select(numeric()).iter_columns() if column.name not in used]
    kept = [column.cast(pl.Float64) for column in free if may_be_setting(column.name)]
    return pl.DataFrame([rows.alias("row"), *kept])


def _equal_rows(table: pl.DataFrame, rows: pl.Series) -> tuple[tuple[int, ...], ...]:
    """Groups of rows equal in every column; none where a column holds what cannot be compared."""
    if any(kind == pl.Object for kind in table.dtypes):
        return ()
    columns = [
        column for column in table if not _INDEX.fullmatch(plain(column.name))
    ]  # an index tells nothing
    try:
        numbered = pl.DataFrame([column.alias(f"c{index}") for index, column in enumerate(columns)])
        if not numbered.is_duplicated().any():
            return ()
        groups = numbered.with_columns(rows.alias("row")).group_by(numbered.columns).agg("row")
        groups = groups.filter(pl.col("row").list.len() > 1)["row"].to_list()
    except FAILURES:
        return ()
    return tuple(sorted(tuple(sorted(group)) for group in groups))
