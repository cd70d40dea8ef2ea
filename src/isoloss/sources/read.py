"""Anybody's table as a polars data frame: files, studies, and the tables of other libraries.

Reading runs no code: CSV, NDJSON and Parquet are data, and nothing else is opened.
"""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from isoloss import files
from isoloss.errors import InputError

MAX_BYTES = 1 << 28
FORMATS = "CSV (.csv, .csv.gz), NDJSON (.ndjson, .jsonl, each also .gz) and Parquet (.parquet, .pq)"
_NULLS = ("", "NA", "N/A", "null")

# polars panics on some inputs; its PanicException is no Exception.
FAILURES = (Exception, pl.exceptions.PanicException)


def read(source: Any) -> pl.DataFrame:
    """The table in ``source``: a path, or a polars, pandas or pyarrow table.

    A path is a CSV, NDJSON or Parquet file, told by its name, or the folder of an isoloss study. Empty CSV
    fields and NA, N/A and null are nulls; a NaN stays one.

    Raises InputError for a missing, empty or damaged file (naming the line), for headers that are blank or
    there twice, and for a table without rows.
    """
    in_file = isinstance(source, str | Path)
    table = _from_path(Path(source)) if in_file else _from_memory(source)
    where = str(source) if in_file else "table"
    if not table.width:
        raise InputError("has no columns", where=where, mend="give a table with a header")
    if not table.height:
        raise InputError("has no rows", where=where, mend="give a table with at least one run")
    return table


def _from_memory(source: Any) -> pl.DataFrame:
    try:
        if isinstance(source, pl.DataFrame):
            return source
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        import narwhals as nw  # slow to import, and a file needs none

        table = nw.from_native(source)
        if isinstance(table, nw.DataFrame) and table.implementation.is_pandas():
            return _from_pandas(source)
        return table.lazy().collect("polars").to_native()
    except FAILURES as error:
        raise InputError(
            f"is not a table that can be read ({first_line(error)})",
            where=f"a {type(source).__name__}",
            mend="give a path, or a polars, pandas or pyarrow table with one name a column",
        ) from None


def _from_pandas(table: Any) -> pl.DataFrame:
    """Column by column, as values of Python: pandas' own way to polars needs pyarrow for text."""
    for name in _repeated(map(str, table.columns)):
        raise ValueError(f"it names {name!r} twice")
    columns = []
    for name in table.columns:
        series = table[name]
        if series.dtype.kind in "iuf" and type(series.dtype).__module__.startswith("numpy"):
            columns.append(pl.Series(str(name), series.to_numpy(), nan_to_null=True))
            continue
        missing = series.isna()
        values = [None if gone else value for value, gone in zip(series.tolist(), missing, strict=True)]
        if any(isinstance(value, Decimal) for value in values):
            values = [None if value is None else float(value) for value in values]
        kinds = {type(value) for value in values} - {type(None)}
        if float in kinds and kinds <= {int, float}:
            values = [None if value is None else float(value) for value in values]
        column = pl.Series(str(name), values)
        if column.dtype == pl.Object:
            raise ValueError(f"{name} holds objects")
        columns.append(column)
    return pl.DataFrame(columns)


def _from_path(path: Path) -> pl.DataFrame:
    if os.path.isdir(path):
        return _study(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError("is not a regular file", where=str(path), mend="give a file")
    readers = {
        ".csv": _csv, ".csv.gz": _csv, ".ndjson": _ndjson, ".ndjson.gz": _ndjson, ".jsonl": _ndjson,
        ".jsonl.gz": _ndjson, ".parquet": _parquet, ".pq": _parquet,
    }  # fmt: skip
    ending = next((ending for ending in readers if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise InputError(
            "is of no kind that can be read", where=str(path), mend=f"save it as one of {FORMATS}"
        )
    data = files.unpack(path, MAX_BYTES, mend="keep one row a run, or a part of it")
    if not data:
        raise InputError("is empty", where=str(path), mend=f"give a table: {FORMATS}")
    return readers[ending](data, path)


def _study(folder: Path) -> pl.DataFrame:
    if not (folder / "study.json").is_file():
        raise InputError(
            "is a folder without a study",
            where=str(folder),
            mend="give a file, or the folder of a study",
        )
    from isoloss.records import load  # slow to import, and a file needs none

    return load(folder).table()


def _csv(data: bytes, path: Path) -> pl.DataFrame:
    """Row by row: polars' own reader renames double headers and pads short lines without a word.

    Lines that begin with # before or between rows are comments, unless the last of them is the header;
    ``sep=;``, as spreadsheets write it, names the separator.
    """
    text, separator, skipped = _preamble(files.decode(data, path))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    header: list[str] = []
    rows = []
    try:
        for row in filter(None, reader):  # a blank line is no row
            where = f"{path}, line {reader.line_num + skipped}"
            if not header:
                header = row
                _check_separator(header, where)
                continue
            if row[0].startswith("#"):
                continue
            while len(row) > len(header) and not row[-1].strip():
                row.pop()
            if len(row) != len(header):
                raise InputError(
                    f"has {len(row)} fields where the header has {len(header)}",
                    where=where,
                    mend="complete the line, or put quotes around a field that holds a comma",
                )
            rows.append(row)
    except csv.Error as error:
        raise InputError(
            f"is not CSV ({error})", where=f"{path}, line {reader.line_num + skipped}", mend="mend the line"
        ) from None
    fields = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    kept = _named(header, fields, f"{path}, line {skipped + 1}")
    return pl.DataFrame([_infer(name, texts) for name, texts in kept])


def _preamble(text: str) -> tuple[str, str, int]:
    """The text from its header on, its separator, and how many lines went."""
    lines = text.split("\n")
    separator, first = ",", 0
    if match := re.fullmatch(r"\"?sep=(.)\"?\r?", lines[0], re.IGNORECASE):
        separator, first = match[1], 1
    comment = first
    while comment < len(lines) and (lines[comment].startswith("#") or not lines[comment].strip()):
        comment += 1
    if comment == first:
        return "\n".join(lines[first:]), separator, first
    last = lines[comment - 1]
    names, values = last.lstrip("# ").split(separator), "".join(lines[comment : comment + 1]).split(separator)
    if len(names) == len(values) > 1 and all(_is_number(value) for value in values):
        lines[comment - 1], comment = last.lstrip("# "), comment - 1
    return "\n".join(lines[comment:]), separator, comment


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_separator(header: list[str], where: str) -> None:
    for sign, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and sign in header[0]:
            raise InputError(
                f"has its columns separated by {name}",
                where=where,
                mend="save it with commas between columns and points before decimals",
            )


def _named(header: list[str], fields: Sequence[Sequence[str]], where: str) -> list[tuple[str, Sequence[str]]]:
    """Columns by name. Without a name go an index (0, 1, 2, ... or 1, 2, 3, ...) and what is empty."""
    kept = []
    for name, texts in zip(header, fields, strict=True):
        if name.strip():
            kept.append((name, texts))
            continue
        count = range(len(texts))
        index = [[str(place + start) for place in count] for start in (0, 1)]
        if any(text.strip() for text in texts) and [text.strip() for text in texts] not in index:
            raise InputError(
                "has a column without a name", where=where, mend="name every column in the first line"
            )
    if header and not kept:
        raise InputError("has a column without a name", where=where, mend="name every column")
    for name in _repeated(name for name, _ in kept):
        raise InputError(f"names the column {name!r} twice", where=where, mend="rename one of them")
    return kept


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _infer(name: str, texts: Sequence[str]) -> pl.Series:
    """Fields as whole numbers, numbers or true/false where every one is; else as they are."""
    fields = [None if text.strip() in _NULLS else text for text in texts]
    series = pl.Series(name, fields, dtype=pl.String)
    bare = series.str.strip_chars()
    for kind in (pl.Int64, pl.Float64):
        numbers = bare.cast(kind, strict=False)
        if numbers.null_count() == series.null_count() < len(series):
            return numbers
    if series.null_count() < len(series) and set(bare.str.to_lowercase().drop_nulls()) <= {"true", "false"}:
        return bare.str.to_lowercase() == "true"
    return series


def _ndjson(data: bytes, path: Path) -> pl.DataFrame:
    objects = files.json_objects(files.decode(data, path), path, _named_once)
    return of_rows([dict(flat(nested)) for _, nested in objects], str(path))


def of_rows(rows: Sequence[Mapping[str, Any]], where: str) -> pl.DataFrame:
    """Rows as a table: numbers where all are, else text. Raises InputError where polars has no type."""
    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names])
    except FAILURES as error:
        raise InputError(f"cannot be made a table ({first_line(error)})", where=where) from None


def flat(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """{"config": {"n_params": 1}} -> config.n_params: trackers write settings and results so."""
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for a name that is there twice, of which json would keep the last."""
    for name in _repeated(name for name, _ in pairs):
        raise ValueError(f"it names {name!r} twice")
    return dict(pairs)


def _column(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float} and kinds:
        try:
            return pl.Series(name, values, dtype=pl.Int64 if kinds == {int} else pl.Float64)
        except FAILURES:  # a number that is larger: through its digits it becomes infinite, not an error
            floats = [None if value is None else float(str(value)) for value in values]
            return pl.Series(name, floats, dtype=pl.Float64)
    if kinds in ({str}, {bool}):
        return pl.Series(name, values)
    written = [value if isinstance(value, str | None) else json.dumps(value) for value in values]
    return pl.Series(name, written, dtype=pl.String)


def _parquet(data: bytes, path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(data))
    except FAILURES as error:
        raise InputError(
            f"is not Parquet, or damaged ({first_line(error)})",
            where=str(path),
            mend="fetch or save it again",
        ) from None


def first_line(error: BaseException) -> str:
    """What a library says, short enough for a message of ours."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
