"""Cells of a column as numbers; amounts too where people write them so, 7B and 1.4T."""

import re

import polars as pl

from isoloss.amounts import number
from isoloss.errors import InputError
from isoloss.sources.naming import COUNTED, header

AMOUNTS = (*COUNTED, "batch_tokens", "context", "vocab")
"""Counts, of which 7B can mean one thing only."""

_AMOUNT = re.compile(r"(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*[a-z][a-z/\s-]*", re.IGNORECASE)


def numbers_in(series: pl.Series, column: str, rows: pl.Series, *, amounts: bool) -> tuple[pl.Series, str]:
    """The numbers, and a note on amounts that were read. Raises InputError naming the row that holds none."""
    if series.dtype.is_numeric() or series.dtype == pl.Null:
        return series.cast(pl.Float64), ""
    if series.dtype != pl.String:
        raise InputError(
            f"holds {series.dtype}, not numbers", where=f"column {column!r}", mend="map another column"
        )
    bare = series.str.strip_chars()
    numbers = bare.replace("", None).cast(pl.Float64, strict=False)
    bad = numbers.is_null() & bare.is_not_null() & (bare != "")
    if not bad.any():
        return numbers, ""
    values, note = numbers.to_list(), ""
    for index in bad.arg_true():
        value = _amount(bare[index]) if amounts and header(column).factor == 1 else None
        if value is None:
            raise InputError(
                f"is {bare[index][:60]!r}, not a number",
                where=f"row {rows[index]}, column {column!r}",
                mend=_in_figures(bare[index]),
            )
        values[index] = value
        note = note or f"{bare[index]} is read as {value:g}"
    return pl.Series(values, dtype=pl.Float64), note


def _amount(text: str) -> float | None:
    """'7B' -> 7e9; None for what is no number with a unit, or might be another."""
    try:
        return number(text) if _AMOUNT.fullmatch(text) else None
    except InputError:
        return None


def _in_figures(text: str) -> str:
    if re.fullmatch(r"[-+]?[\d.,' _\u00a0\u202f]+(e[-+]?\d+)?", text, re.IGNORECASE):
        return "write 1.5 for one and a half and 1500000 for a million and a half: no commas, no separators"
    if re.fullmatch(r"[\d.]+\s*([kmbgt]|[kmg]?flops?|tokens)", text, re.IGNORECASE):
        return "write the number out, 7e9 for 7B"
    return "correct the row, keep it out with where, or map another column"
