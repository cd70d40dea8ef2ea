"""Files, folders of files and Hugging Face data sets become documents. Loading runs no code.

A document's text is kept as it stands, except that Windows line ends become newlines and blank lines around
it are dropped, so that the same text from two kinds of file counts as the same document.
"""

import importlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from isoloss import files
from isoloss.errors import InputError

MAX_BYTES = 2 * 2**30
_SPLIT_IT = "give less of it, or raise --max-bytes (max_bytes in Python): all of it is held in memory"
COMPRESSED = (".gz", ".xz", ".zst")
_HUB_NAME = re.compile(r"hf:(?P<name>[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?)(:(?P<config>[\w.-]+))?")


@dataclass(frozen=True)
class Document:
    """One text and where it came from: a file name relative to what was given, never an absolute path."""

    text: str
    source: str


@dataclass(frozen=True)
class Reading:
    """How to read: the column of JSONL and Parquet, a string between documents of one file, a size limit."""

    text_column: str = "text"
    separator: str | None = None
    max_bytes: int = MAX_BYTES


def read_documents(
    paths: Sequence[Path | str],
    *,
    text_column: str = "text",
    separator: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> list[Document]:
    """All documents under ``paths``, in the order given, folders walked in sorted order.

    A path is a text file (one document, or several with ``separator`` between them), ``.jsonl``/``.ndjson``
    and ``.parquet`` with a ``text_column``, ``.gz``/``.xz``/``.zst`` of text and JSONL, a folder of these
    (hidden files and symbolic links are left out), or ``hf:OWNER/NAME[:CONFIG]``, the ``train`` split of a
    Hugging Face data set. ``max_bytes`` bounds the unpacked text of all files together, and of a data set.

    Raises InputError naming file and line, row or byte for a path that is missing, unreadable, empty, not
    UTF-8, too large, or whose rows lack a text.
    """
    reading = Reading(text_column, separator, max_bytes)
    documents: list[Document] = []
    for path in paths:
        if str(path).startswith("hf:"):
            documents.extend(_from_hub(str(path), reading))
            continue
        for file, label in _files_of(Path(path)):
            found = _from_file(file, label, reading)
            documents.extend(found)
            size = sum(len(document.text.encode("utf-8")) for document in found)
            reading = replace(reading, max_bytes=max(0, reading.max_bytes - size))
    if not documents:
        raise InputError("no text was given", mend="name at least one file or folder that holds text")
    return documents


def _files_of(path: Path) -> list[tuple[Path, str]]:
    """The files behind one path, each with the label under which it is recorded."""
    if not path.exists():
        raise InputError("does not exist", where=str(path), mend="check the path")
    if path.is_file():
        return [(path, _printable(path.name))]
    if not path.is_dir():
        raise InputError(
            "is neither a file nor a folder", where=str(path), mend="name a text file or a folder"
        )
    paths: list[Path] = []
    for folder, subfolders, names in os.walk(path, followlinks=False, onerror=_unreadable_folder):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        paths += [Path(folder, name) for name in names if not name.startswith(".")]
    files = sorted(file for file in paths if file.is_file() and not file.is_symlink())
    if not files:
        raise InputError(
            "holds no files", where=str(path), mend="put text files into it, or name another folder"
        )
    root = path.resolve()
    return [(file, _printable(f"{root.name}/{file.relative_to(path).as_posix()}")) for file in files]


def _printable(name: str) -> str:
    """A file's name as UTF-8 can hold it; bytes that are none are spelt."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _unreadable_folder(error: OSError) -> None:
    raise InputError(
        f"cannot be read ({error.strerror})", where=str(error.filename), mend="check its permissions"
    )


def _from_file(path: Path, label: str, reading: Reading) -> list[Document]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSED
    kind = suffixes[-2 if packed else -1] if len(suffixes) > packed else ""
    if kind == ".parquet" and packed:
        raise InputError(
            "is Parquet inside another compression",
            where=str(path),
            mend="unpack it: Parquet packs its own columns",
        )
    if kind == ".parquet":
        documents = _from_parquet(path, label, reading)
    elif kind in (".jsonl", ".ndjson"):
        documents = _from_json_lines(path, label, reading)
    else:
        documents = _from_plain(path, label, reading)
    if not documents:
        raise InputError("is empty: it holds no text", where=str(path), mend="remove it, or put text into it")
    return documents


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n")


def _document(value: Any, source: str, where: str) -> Document | None:
    """A checked document, or None for a text of white space only."""
    if not isinstance(value, str):
        raise InputError(
            f"its text is {type(value).__name__}, not a string",
            where=where,
            mend="remove the row, or mend its text",
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"its text holds half a surrogate pair at character {error.start}",
            where=where,
            mend="write the character itself as UTF-8",
        ) from None
    return Document(_tidy(value), source) if value.strip() else None


def _from_plain(path: Path, label: str, reading: Reading) -> list[Document]:
    data = files.unpack(path, reading.max_bytes, mend=_SPLIT_IT)
    if b"\0" in data:
        raise InputError(
            f"is not text: a zero byte at offset {data.index(0)}",
            where=str(path),
            mend="unpack or convert it to text",
        )
    text = files.decode(data, path).replace("\r\n", "\n")
    if reading.separator is None:
        return [Document(_tidy(text), label)] if text.strip() else []
    pieces = enumerate(text.split(reading.separator), start=1)
    return [Document(_tidy(piece), f"{label} part {number}") for number, piece in pieces if piece.strip()]


def _no_column(column: str, there: Sequence[str], where: str) -> InputError:
    return InputError(
        f"has no column {column!r}; there are: {', '.join(there) or 'none'}",
        where=where,
        mend="name the column that holds the text",
    )


def _from_json_lines(path: Path, label: str, reading: Reading) -> list[Document]:
    documents = []
    text = files.decode(files.unpack(path, reading.max_bytes, mend=_SPLIT_IT), path)
    for number, row in files.json_objects(text, path):
        where = f"{path}, line {number}"
        if reading.text_column not in row:
            raise _no_column(reading.text_column, list(row), where)
        documents.append(_document(row[reading.text_column], f"{label} line {number}", where))
    return [document for document in documents if document]


def _from_parquet(path: Path, label: str, reading: Reading) -> list[Document]:
    column = reading.text_column
    try:
        schema = pl.read_parquet_schema(path)
        if column not in schema:
            raise _no_column(column, list(schema), str(path))
        if schema[column] != pl.String:
            raise InputError(
                f"column {column!r} holds {schema[column]}, not strings",
                where=str(path),
                mend="name a column of text",
            )
        texts = pl.read_parquet(path, columns=[column], glob=False, hive_partitioning=False)[column]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(
            f"is not readable Parquet ({error})", where=str(path), mend="write it again, or fetch it again"
        ) from None
    if (texts.str.len_bytes().sum() or 0) > reading.max_bytes:
        raise InputError(
            f"holds more than {reading.max_bytes:,} bytes of text",
            where=str(path),
            mend=_SPLIT_IT,
        )
    rows = enumerate(texts, start=1)
    documents = [_document(value, f"{label} row {row}", f"{path}, row {row}") for row, value in rows]
    return [document for document in documents if document]


def _from_hub(address: str, reading: Reading) -> list[Document]:
    """The train split of a Hugging Face data set, streamed. Data sets that bring a script are refused."""
    match = _HUB_NAME.fullmatch(address)
    if not match:
        raise InputError(
            f"{address!r} is not the name of a data set", mend="write hf:OWNER/NAME or hf:OWNER/NAME:CONFIG"
        )
    try:
        datasets = importlib.import_module("datasets")
    except ImportError:
        raise InputError(
            "needs the library `datasets`", where=address, mend="pip install 'isoloss[datasets]'"
        ) from None
    if "/" not in match["name"]:
        # A bare name can also mean a loader inside the library, one of which reads pickles.
        raise InputError("has no owner", where=address, mend="write hf:OWNER/NAME, as the Hub shows it")
    documents: list[Document] = []
    size = 0
    try:
        rows = datasets.load_dataset(
            match["name"], match["config"], split="train", streaming=True, trust_remote_code=False
        )
        for number, row in enumerate(rows, start=1):
            if reading.text_column not in row:
                raise _no_column(reading.text_column, list(row), address)
            document = _document(
                row[reading.text_column], f"{address} row {number}", f"{address}, row {number}"
            )
            if document:
                documents.append(document)
                size += len(document.text.encode("utf-8"))
            if size > reading.max_bytes:
                raise InputError(
                    f"holds more than {reading.max_bytes:,} bytes of text",
                    where=address,
                    mend=_SPLIT_IT,
                )
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds; each means that the data set did not come
        raise InputError(
            f"could not be loaded ({error})", where=address, mend="check the name, its CONFIG and the network"
        ) from None
    if not documents:
        raise InputError("is empty: it holds no text", where=address, mend="choose another data set")
    return documents
