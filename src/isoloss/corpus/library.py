"""Where corpora live: add them by name, load them, tokenize them once.

    HOME/corpora/NAME/    corpus.json, train.jsonl.zst, validation.jsonl.zst
    HOME/tokens/KEY/      tokenizer.json, train.tokens, validation.tokens

HOME is the variable ISOLOSS_HOME, else ``isoloss`` in the user's data folder.
The corpus ``starter`` comes with the package.
"""

import importlib.resources
import json
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import zstandard
from pydantic import TypeAdapter, ValidationError
from tokenizers import Tokenizer

from isoloss import files
from isoloss.corpus.cuts import check_places
from isoloss.corpus.documents import MAX_BYTES, Document, read_documents
from isoloss.corpus.split import VALIDATION_FRACTION, Split, split, text_bytes
from isoloss.corpus.tokenfile import TokenFile, open_tokens, write_tokens
from isoloss.corpus.tokenizer import (
    encode,
    load_tokenizer,
    token_bytes,
    tokenizer_hash,
    train_tokenizer,
    vocabulary_size,
)
from isoloss.errors import InputError, RunError
from isoloss.strict import first_complaint

STARTER = "starter"
VOCABULARY = 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_WAIT_SECONDS = 900.0


@dataclass(frozen=True)
class CorpusInfo:
    """What is known of a corpus without reading its text. Bytes are UTF-8; ``sources`` are file names.

    ``train_documents``, ``validation_documents``: pieces of text; a long document gives some to either side.
    ``gap_bytes``: text near held-out parts, on neither side.

    ``already_there`` says that ``add`` found the same corpus under this name and wrote nothing.
    """

    name: str
    corpus_hash: str
    train_documents: int
    train_bytes: int
    validation_documents: int
    validation_bytes: int
    duplicates_removed: int
    paragraphs_removed: int
    sources: tuple[str, ...]
    gap_bytes: int = 0
    already_there: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Corpus:
    info: CorpusInfo
    train: tuple[Document, ...]
    validation: tuple[Document, ...]


@dataclass(frozen=True)
class TokenizedCorpus:
    """Both splits as token files, and the tokenizer. ``token_bytes`` [vocab]: bytes of text by token id."""

    train: TokenFile
    validation: TokenFile
    tokenizer_path: Path
    vocab: int
    token_bytes: np.ndarray
    corpus_hash: str
    tokenizer_hash: str


@dataclass(frozen=True)
class _Stored:
    """corpus.json: the facts, and the sha256 of the two files beside it."""

    info: CorpusInfo
    train_sha256: str
    validation_sha256: str


_STORED = TypeAdapter(_Stored)


def add(
    name: str,
    paths: Sequence[Path | str],
    *,
    text_column: str = "text",
    separator: str | None = None,
    validation_fraction: float = VALIDATION_FRACTION,
    max_bytes: int = MAX_BYTES,
) -> CorpusInfo:
    """Read, split and keep the documents under ``paths`` (``read_documents``) as the corpus ``name``.

    Adding the same content again writes nothing and says so (``already_there``).
    Raises InputError, with nothing written, for a bad name, bad text, or other content under that name;
    RunError if another process writes there for 15 minutes.
    """
    folder = _folder(name)
    if separator == "":
        raise InputError("the separator is empty", mend=r"give the text between documents, such as '\n\n\n'")
    documents = read_documents(paths, text_column=text_column, separator=separator, max_bytes=max_bytes)
    for document in documents:
        check_places(document.text, document.source)
    parts = split(documents, validation_fraction)
    info = _info(name, parts, tuple(sorted(_plain_name(path) for path in paths)))
    with _alone_in(folder.parent):
        if folder.exists():
            return _same_or_refuse(name, info)
        with files.new_folder(folder) as part:
            _write(part, info, parts)
    return info


def _same_or_refuse(name: str, info: CorpusInfo) -> CorpusInfo:
    stored = _stored(name).info
    if stored.corpus_hash != info.corpus_hash:
        raise InputError(
            f"a corpus {name!r} with other content exists already",
            where=str(_folder(name)),
            mend="choose another name, or remove that folder first",
        )
    return replace(stored, already_there=True)


def _write(folder: Path, info: CorpusInfo, parts: Split) -> None:
    train, validation = folder / "train.jsonl.zst", folder / "validation.jsonl.zst"
    files.write_bytes(train, _pack(parts.train))
    files.write_bytes(validation, _pack(parts.validation))
    stored = asdict(_Stored(info, files.sha256(train), files.sha256(validation)))
    del stored["info"]["already_there"]  # says what one call of add did, not what the corpus is
    files.write_json(folder / "corpus.json", stored)


def _pack(documents: Sequence[Document]) -> bytes:
    lines = (json.dumps(asdict(document), ensure_ascii=False) + "\n" for document in documents)
    return zstandard.ZstdCompressor(level=6).compress("".join(lines).encode("utf-8"))


def _plain_name(path: Path | str) -> str:
    return str(path) if str(path).startswith("hf:") else Path(path).resolve().name


def _info(name: str, parts: Split, sources: tuple[str, ...]) -> CorpusInfo:
    return CorpusInfo(
        name=name,
        corpus_hash=parts.corpus_hash,
        train_documents=len(parts.train),
        train_bytes=sum(map(text_bytes, parts.train)),
        validation_documents=len(parts.validation),
        validation_bytes=sum(map(text_bytes, parts.validation)),
        duplicates_removed=parts.duplicates_removed,
        paragraphs_removed=parts.paragraphs_removed,
        sources=sources,
        gap_bytes=parts.gap_bytes,
    )


def names() -> list[str]:
    """The corpora that ``load`` knows, ``starter`` first."""
    folders = (files.home() / "corpora").glob("*/corpus.json")
    return [STARTER, *sorted(path.parent.name for path in folders if _NAME.fullmatch(path.parent.name))]


def load(name: str) -> Corpus:
    """The corpus with its documents. Raises InputError if it is unknown, or its files were changed."""
    if name == STARTER:
        parts = _starter()
        return Corpus(_info(STARTER, parts, ("books.txt.xz",)), parts.train, parts.validation)
    folder, stored = _folder(name), _stored(name)
    return Corpus(
        stored.info,
        _unpack(folder / "train.jsonl.zst", stored.train_sha256),
        _unpack(folder / "validation.jsonl.zst", stored.validation_sha256),
    )


def info(name: str) -> CorpusInfo:
    """What is known of the corpus, without reading the text of an added one."""
    return load(name).info if name == STARTER else _stored(name).info


def _unpack(path: Path, sha256: str) -> tuple[Document, ...]:
    if not path.is_file() or files.sha256(path) != sha256:
        raise InputError(
            "is damaged: it does not have the sha256 in corpus.json",
            where=str(path),
            mend="delete its folder and add the corpus again",
        )
    text = files.decode(files.unpack(path, max_bytes=2**63, mend=""), path)
    return tuple(Document(**row) for _, row in files.json_objects(text, path))


def _stored(name: str) -> _Stored:
    path = _folder(name) / "corpus.json"
    if not path.is_file():
        raise InputError(
            f"there is no corpus {name!r}; there are: {', '.join(names())}",
            where=str(files.home()),
            mend=f"isoloss corpus add {name} PATH",
        )
    try:
        return _STORED.validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        raise InputError(
            f"is damaged ({first_complaint(error)})",
            where=str(path),
            mend="delete its folder and add the corpus again",
        ) from None


@cache
def _starter() -> Split:
    shipped = importlib.resources.files("isoloss.corpus") / "starter" / "books.txt.xz"
    with importlib.resources.as_file(shipped) as path:
        return split(read_documents([path], separator="\n\n\n"))


@contextmanager
def _alone_in(folder: Path) -> Generator[None, None, None]:
    """One writer at a time in ``folder``, and what a killed one left there is gone."""
    with files.claim(folder / ".lock", wait_seconds=_WAIT_SECONDS) as mine:
        if not mine:
            raise RunError(
                "another process has been writing here for 15 minutes",
                where=str(folder),
                mend="wait until it is done, or end it, and try again",
            )
        files.remove_leftovers(folder)
        yield


def _folder(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a usable corpus name",
            mend="use 1 to 64 of a-z, 0-9, '-', not starting with '-'",
        )
    if name == STARTER:
        raise InputError(f"{STARTER!r} is the corpus that comes with isoloss", mend="choose another name")
    return files.safe_child(files.home() / "corpora", name)


def tokenize(
    name: str,
    vocabulary: int = VOCABULARY,
    tokenizer_file: Path | None = None,
) -> TokenizedCorpus:
    """Both splits of a corpus as token files, made once and then reused.

    A byte-level BPE of ``vocabulary`` entries is trained on the train split only; with ``tokenizer_file``
    that tokenizer is used instead and ``vocabulary`` says nothing. The files stand in HOME/tokens, in a
    folder named by the corpus hash and the vocabulary or the tokenizer hash. Their sha256 is checked on
    every call. Two processes may call this at once: one makes the files, the other waits.

    Raises InputError for an unknown corpus, a vocabulary too large for the text, a tokenizer that is not
    byte-level, or damaged files; RunError if another process writes there for 15 minutes.
    """
    given = load_tokenizer(tokenizer_file) if tokenizer_file else None
    corpus_hash = info(name).corpus_hash
    kind = f"tokenizer-{tokenizer_hash(given)[:16]}" if given else f"bpe-{vocabulary}"
    folder = files.home() / "tokens" / f"{corpus_hash[:16]}-{kind}"
    if not folder.exists():
        with _alone_in(folder.parent):
            if not folder.exists():
                _make_tokenized(folder, load(name), given, vocabulary)
    return open_tokenized(folder, corpus_hash)


def _make_tokenized(folder: Path, corpus: Corpus, given: Tokenizer | None, vocabulary: int) -> None:
    try:
        tokenizer = given or train_tokenizer([document.text for document in corpus.train], vocabulary)
        with files.new_folder(folder) as part:
            _write_tokenized(part, corpus, tokenizer)
    except InputError as error:  # these stages know the text, not its name
        where = error.where or f"corpus {corpus.info.name!r}"
        raise InputError(error.what, where=where, mend=error.mend) from None


def _write_tokenized(folder: Path, corpus: Corpus, tokenizer: Tokenizer) -> None:
    files.write_text(folder / "tokenizer.json", tokenizer.to_str())
    for part, documents in (("train", corpus.train), ("validation", corpus.validation)):
        write_tokens(
            folder / f"{part}.tokens",
            encode(tokenizer, [document.text for document in documents]),
            split=part,
            vocabulary=vocabulary_size(tokenizer),
            documents=len(documents),
            text_bytes=sum(map(text_bytes, documents)),
            tokenizer_hash=tokenizer_hash(tokenizer),
            corpus_hash=corpus.info.corpus_hash,
        )


def open_tokenized(folder: Path, corpus_hash: str) -> TokenizedCorpus:
    """The token files in ``folder``, of the corpus with this hash. Workers get the path: maps don't travel.

    Raises InputError if they are missing, damaged, or of another corpus.
    """
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    made_by = tokenizer_hash(tokenizer)
    train, validation = open_tokens(folder / "train.tokens"), open_tokens(folder / "validation.tokens")
    for tokens in (train, validation):
        if (tokens.corpus_hash, tokens.tokenizer_hash) != (corpus_hash, made_by):
            raise InputError(
                "belongs to another corpus or tokenizer",
                where=str(tokens.path),
                mend="delete its folder and tokenize again",
            )
    return TokenizedCorpus(
        train=train,
        validation=validation,
        tokenizer_path=folder / "tokenizer.json",
        vocab=vocabulary_size(tokenizer),
        token_bytes=token_bytes(tokenizer),
        corpus_hash=corpus_hash,
        tokenizer_hash=made_by,
    )
