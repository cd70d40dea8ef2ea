"""Cells of a column as numbers; amounts too where people write them so, 7B and 1.4T."""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from isoloss.amounts import number
from isoloss.errors import InputError
from isoloss.sources.naming import COUNTED, LABELS, NUMBERS, device_time, header

AMOUNTS = (*COUNTED, "batch_tokens", "context", "vocab")
"""Counts, of which 7B can mean one thing only."""

_LARGEST = {"tokens": 1e14, "unique_tokens": 1e14, "flops": 1e30}
"""Smallest value of a whole column that its header's unit may make; of parameters 1e12."""
_AMOUNT = re.compile(r"(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*[a-z][a-z/\s-]*", re.IGNORECASE)


def column_values(
    series: pl.Series,
    name: str,
    column: str,
    rows: pl.Series,
    *,
    needed: Sequence[str],
    optional: Sequence[str],
    notes: list[str],
) -> tuple[pl.Series, dict[int, str]]:
    """Its values under our name, and the words among its numbers where nothing reads them."""
    kind = series.dtype
    if kind in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if name in NUMBERS or (name in needed and name not in LABELS):
        unread = name not in needed and name not in optional
        numbers, note, words = numbers_in(series, column, rows, amounts=name in AMOUNTS, words=unread)
        notes += [f"{name}: {note}"] if note else []
        return numbers.alias(name), words
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        raise InputError(f"holds {kind}, not labels", where=f"column {column!r}", mend="map another column")
    return series.alias(name), {}


def in_units(series: pl.Series, name: str, column: str, notes: list[str]) -> pl.Series:
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


def numbers_in(
    series: pl.Series, column: str, rows: pl.Series, *, amounts: bool, words: bool
) -> tuple[pl.Series, str, dict[int, str]]:
    """The numbers, a note on amounts that were read, and row -> what stands there in place of a number.

    Raises InputError naming the first such row, unless ``words`` may stand in up to half of the filled cells.
    """
    if series.dtype.is_numeric() or series.dtype == pl.Null:
        return series.cast(pl.Float64), "", {}
    if series.dtype != pl.String:
        raise InputError(
            f"holds {series.dtype}, not numbers", where=f"column {column!r}", mend="map another column"
        )
    bare = series.str.strip_chars()
    numbers = bare.replace("", None).cast(pl.Float64, strict=False)
    bad = numbers.is_null() & bare.is_not_null() & (bare != "")
    if not bad.any():
        return numbers, "", {}
    values, note, found = numbers.to_list(), "", dict[int, str]()
    most = int((bare != "").sum()) // 2 if words else 0
    for index in bad.arg_true():
        value = _amount(bare[index]) if amounts and header(column).factor == 1 else None
        if value is None:
            found[rows[index]] = bare[index]
            if len(found) > most:
                raise no_number(found, column)
            continue
        values[index] = value
        note = note or f"{bare[index]} is read as {value:g}"
    return pl.Series(values, dtype=pl.Float64), note, found


def no_number(found: Mapping[int, str], column: str) -> InputError:
    """That the first of these rows holds a word where a number is read."""
    row, word = next(iter(found.items()))
    what = f"is {word[:60]!r}, not a number"
    return InputError(what, where=f"row {row}, column {column!r}", mend=_in_figures(word))


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
