"""Token ids on disk, memory-mapped, with a header that says what they are and whether they are whole.

    magic and version      8 bytes
    length of the header   4 bytes, little-endian; the ids begin at a multiple of 64 bytes
    sha256 of the header  32 bytes
    header                 JSON, padded with spaces
    ids                    uint16 where the vocabulary allows it, else uint32, little-endian

The header holds the sha256 of the ids, so that no byte of the file can change unseen.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from isoloss import files
from isoloss.errors import InputError
from isoloss.strict import first_complaint

MAGIC = b"ISOTOK\x00\x01"
_FIXED = len(MAGIC) + 4 + 32


@dataclass(frozen=True)
class Header:
    """What a token file says of itself; ``bytes_per_token`` = text_bytes / tokens, separators included."""

    split: str
    vocabulary: int
    dtype: str
    tokens: int
    documents: int
    text_bytes: int
    bytes_per_token: float
    tokenizer_hash: str
    corpus_hash: str
    sha256: str


@dataclass(frozen=True)
class TokenFile(Header):
    """An open token file: the header's fields and ``ids`` [tokens], a read-only memory map."""

    path: Path
    ids: np.memmap = field(repr=False, compare=False)


_HEADER = TypeAdapter(Header)


def write_tokens(
    path: Path,
    ids: np.ndarray,
    *,
    split: str,
    vocabulary: int,
    documents: int,
    text_bytes: int,
    tokenizer_hash: str,
    corpus_hash: str,
) -> None:
    """Write ids_N to ``path`` in one step. Raises InputError for no ids, or an id outside the vocabulary."""
    if ids.size == 0:
        raise InputError("there are no tokens to write", where=str(path), mend="give text")
    if int(ids.min()) < 0 or int(ids.max()) >= vocabulary:
        raise InputError(
            f"ids from {ids.min()} to {ids.max()} do not fit a vocabulary of {vocabulary}",
            where=str(path),
            mend="use the tokenizer that made the ids",
        )
    dtype = "<u2" if vocabulary <= 2**16 else "<u4"
    payload = ids.astype(dtype).tobytes()
    header = Header(
        split=split,
        vocabulary=vocabulary,
        dtype=dtype,
        tokens=ids.size,
        documents=documents,
        text_bytes=text_bytes,
        bytes_per_token=text_bytes / ids.size,
        tokenizer_hash=tokenizer_hash,
        corpus_hash=corpus_hash,
        sha256=hashlib.sha256(payload).hexdigest(),
    )
    files.write_bytes(path, _head(header) + payload)


def _head(header: Header) -> bytes:
    text = json.dumps(_HEADER.dump_python(header), allow_nan=False).encode("utf-8")
    text += b" " * (-(_FIXED + len(text)) % 64)
    return MAGIC + len(text).to_bytes(4, "little") + hashlib.sha256(text).digest() + text


def open_tokens(path: Path) -> TokenFile:
    """Open a token file and check it whole.

    Raises InputError naming the file if it is missing, of another kind, cut off or changed.
    """
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            fixed = file.read(_FIXED)
            text = file.read(int.from_bytes(fixed[8:12], "little")) if fixed[:8] == MAGIC else b""
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", where=str(path), mend="tokenize again"
        ) from None
    if fixed[:6] != MAGIC[:6]:
        raise InputError("is not a token file", where=str(path), mend="name a file that isoloss tokenized")
    if fixed[:8] != MAGIC:
        raise InputError("is a token file of another version", where=str(path), mend="tokenize again")
    if len(fixed) < _FIXED or hashlib.sha256(text).digest() != fixed[12:]:
        raise _damaged(path, "its header was changed or cut off")
    header = _header(path, text)
    offset, item = _FIXED + len(text), np.dtype(header.dtype).itemsize
    if size != offset + header.tokens * item:
        raise _damaged(path, f"it should have {offset + header.tokens * item:,} bytes and has {size:,}")
    ids = np.memmap(path, dtype=header.dtype, mode="r", offset=offset, shape=(header.tokens,))
    if hashlib.sha256(ids.data).hexdigest() != header.sha256:
        raise _damaged(path, "its ids do not have the sha256 that its header names")
    return TokenFile(**vars(header), path=path, ids=ids)


def _header(path: Path, text: bytes) -> Header:
    try:
        header = _HEADER.validate_json(text, strict=True)
    except ValidationError as error:
        raise _damaged(path, f"its header does not fit ({first_complaint(error)})") from None
    if header.dtype not in ("<u2", "<u4") or header.tokens < 1:
        raise _damaged(path, f"its header names {header.tokens} ids of type {header.dtype!r}")
    return header


def _damaged(path: Path, how: str) -> InputError:
    return InputError(f"is damaged: {how}", where=str(path), mend="delete its folder and tokenize again")
