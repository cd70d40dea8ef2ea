"""The records of this package: an issue of a table, an excluded row, a table of runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

_NAMED_ROWS = 12
COUNTS = ("params", "params_total", "params_executed")
"""Rules by which N is counted."""
ONE_EPOCH = 1.001
"""Rounding tokens to whole batches can make one pass over the data look like a little more."""


@dataclass(frozen=True)
class TableIssue:
    """Something about a table that would mislead a fit.

    ``severity`` "refuse": the table must not be fitted as it is; "warn": it may be, and the reader is told.
    ``rows`` count from 1 in the table as given, without its header; empty where the whole column is meant.
    """

    kind: str
    severity: Literal["refuse", "warn"]
    rows: tuple[int, ...]
    message: str
    mend: str


@dataclass(frozen=True)
class Excluded:
    """A row that was left out, and why. ``by_outcome``: the loss or the way the run ended decided it."""

    row: int
    reason: str
    by_outcome: bool


@dataclass(frozen=True)
class Runs:
    """A table under this project's names, checked.

    ``frame``: ``row`` (counting from 1 in the table as given) and one column a name: params, tokens, flops as
    raw counts, loss in nats per token. ``columns``: our name -> the column it came from. ``needed``: the
    names that every row must have. ``source``: path, sha256, rows_read, rows_kept, where, columns,
    derived (name -> rule), notes, loss_unit. ``copies``: groups of rows that agree in every column of the
    table as given. ``labels``: ``row`` and the columns of text that have no name of ours; ``unread``: ``row``
    and those of numbers. ``cut_short``: row
    -> why its run did not end well, by the table's own words; ``unknown_states``: words that nobody knows.
    ``excluded``: rows that ``usable`` left out. ``accepted``: kinds of findings that only warn where they
    would refuse.
    """

    frame: pl.DataFrame
    columns: Mapping[str, str]
    needed: tuple[str, ...]
    source: Mapping[str, Any]
    findings: tuple[TableIssue, ...] = ()
    copies: tuple[tuple[int, ...], ...] = ()
    labels: pl.DataFrame = field(default_factory=pl.DataFrame)
    unread: pl.DataFrame = field(default_factory=pl.DataFrame)
    cut_short: Mapping[int, str] = field(default_factory=dict)
    unknown_states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    excluded: tuple[Excluded, ...] = ()
    allow_negative: bool = False
    accepted: tuple[str, ...] = ()

    @property
    def loss_unit(self) -> str:
        """In which the losses are: nats per token unless the column's name says otherwise."""
        return self.source["loss_unit"]

    @property
    def count(self) -> str:
        """The rule by which N is counted, of ``COUNTS``."""
        return next((name for name in COUNTS if name in self.needed), COUNTS[0])

    def has(self, *names: str) -> bool:
        """Whether all ``names`` are columns that came from the table, not from a rule."""
        return all(name in self.columns for name in names)


def row_words(rows: Iterable[int]) -> str:
    """(3, 5, 9) -> 'rows 3, 5, 9'; a long list is cut, and says how much."""
    rows = list(rows)
    text = ", ".join(map(str, rows[:_NAMED_ROWS]))
    more = f" and {len(rows) - _NAMED_ROWS} more" if len(rows) > _NAMED_ROWS else ""
    return f"row{'' if len(rows) == 1 else 's'} {text}{more}"


def share(mask: pl.Series) -> float:
    """Of the rows in which ``mask`` holds."""
    return float(np.mean(mask.fill_null(False).to_numpy()))


def rows_where(frame: pl.DataFrame, mask: pl.Series) -> tuple[int, ...]:
    """The rows in which ``mask`` holds."""
    return tuple(frame["row"].filter(mask.fill_null(False)).to_list()) if mask.any() else ()
