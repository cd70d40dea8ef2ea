"""Wrong cells of columns that nothing reads but checks: they stop nothing, are told, and are left out."""

from collections.abc import Iterator, Mapping

import polars as pl

from isoloss.sources.cells import no_number
from isoloss.sources.naming import NUMBERS
from isoloss.sources.row_checks import MOST, POSITIVE
from isoloss.sources.table import BadCells, Runs, TableIssue, row_words

_UNKNOWN_AT_0 = ("vocab", "context")
"""0 and -1 are written there for what is not known."""


def without_bad_cells(
    frame: pl.DataFrame,
    read_names: frozenset[str],
    column_of: Mapping[str, str],
    words: Mapping[str, Mapping[int, str]],
) -> tuple[pl.DataFrame, dict[str, BadCells]]:
    """Numbers that nothing reads without those that cannot be, and what stood there.

    Raises InputError for a word in a column that others are derived from.
    """
    bad: dict[str, BadCells] = {}
    for name, column in column_of.items():
        found = dict(words[name])
        if name in read_names and found:
            raise no_number(found, column)
        if name not in NUMBERS or name in read_names:
            continue
        found = {row: repr(word[:40]) for row, word in found.items()}
        wrong = _impossible(name, frame[name])
        found |= {row: f"{value:g}" for row, value in frame.filter(wrong).select("row", name).iter_rows()}
        if found:
            bad[name] = BadCells(column, found)
        frame = frame.with_columns(pl.when(~wrong).then(pl.col(name)).fill_nan(None).alias(name))
    return frame, bad


def unread(runs: Runs) -> Iterator[TableIssue]:
    """Cells of columns that nothing reads but checks: a wrong one stops nothing and may tell of a slip."""
    present = set(runs.frame["row"])
    for bad in runs.bad.values():
        if not (cells := {row: written for row, written in bad.cells.items() if row in present}):
            continue
        rows = tuple(sorted(cells))
        where = f"is {cells[rows[0]]} in {row_words(rows)}"
        if len(rows) > 1:
            where = f"is wrong in {row_words(rows)} ({cells[rows[0]]} in row {rows[0]})"
        taken = "counts as empty" if set(cells.values()) == {"nan"} else "left out of the checks"
        text = f"{bad.column} {where}: not read here, and {taken}"
        yield TableIssue("unread-cells", "warn", rows, text, "correct these cells")


def _impossible(name: str, column: pl.Series) -> pl.Series:
    """Where a number is none that a column of this name can hold; an empty cell is one that it can."""
    wrong = column.is_infinite()
    if name in POSITIVE:
        # 0 tokens are an evaluation before the first step.
        negative = column < 0 if name == "tokens" else column <= 0
        wrong |= column.is_nan() | negative | (column > MOST.get(name, float("inf")))
    return (wrong | (column <= 0) if name in _UNKNOWN_AT_0 else wrong).fill_null(False)
