"""Documents are split into train and validation by what they say, never by the order they came in.

Every choice follows the sha256 of a document's text: the same set of documents gives the same split, the same
order inside each split and the same identity, whatever files or folders it arrived in.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from isoloss import files
from isoloss.corpus.documents import Document
from isoloss.errors import InputError

SALT = "isoloss split 1"  # a new salt would be another split of every corpus
VALIDATION_FRACTION = 0.08
PARAGRAPH_CHARACTERS = 60  # shorter repeats ("Enter HAMLET.") are the language, not a leak


@dataclass(frozen=True)
class Split:
    """Two disjoint sets of documents, and what was removed to make them so.

    ``corpus_hash`` identifies both sets; ``duplicates_removed`` counts documents, ``paragraphs_removed`` the
    paragraphs taken out of train because validation holds them too.
    """

    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    corpus_hash: str
    duplicates_removed: int
    paragraphs_removed: int


def split(documents: Sequence[Document], validation_fraction: float = VALIDATION_FRACTION) -> Split:
    """Hold out about ``validation_fraction`` of the bytes, document by document, without leaks.

    1. Documents that occur more than once are kept once, so that no copy can land on the other side.
    2. Validation is filled in the order of salted hashes (``hold_out``).
    3. Paragraphs of at least 60 characters that validation holds too leave train: validation keeps its
       documents whole, since losses by position need unbroken context. Train documents left empty go.

    Raises InputError for a fraction outside (0, 0.5], fewer than two distinct documents, or a train split
    that only repeats validation.
    """
    if not 0 < validation_fraction <= 0.5:
        raise InputError(
            f"validation fraction {validation_fraction} is not in (0, 0.5]",
            mend="use a fraction such as 0.08",
        )
    distinct = unique(documents)
    if len(distinct) < 2:
        raise InputError(
            "one distinct document cannot be split into train and validation",
            where=distinct[0].source if distinct else "",
            mend="give at least two documents, or a separator that divides the file into documents",
        )
    train, validation = hold_out(distinct, validation_fraction)
    train, paragraphs_removed = without_shared_paragraphs(train, validation)
    if not train:
        raise InputError(
            "nothing is left to train on: every paragraph is in the validation documents too",
            mend="give documents that differ",
        )
    return Split(
        train=tuple(train),
        validation=tuple(validation),
        corpus_hash=_identity(train, validation),
        duplicates_removed=len(documents) - len(distinct),
        paragraphs_removed=paragraphs_removed,
    )


def unique(documents: Sequence[Document]) -> list[Document]:
    """Each text once, in the order of salted hashes, under the first of its sources by name."""
    by_text: dict[str, Document] = {}
    for document in sorted(documents, key=lambda document: document.source):
        by_text.setdefault(document.text, document)
    return sorted(by_text.values(), key=lambda document: _hash(SALT + document.text))


def hold_out(documents: Sequence[Document], fraction: float) -> tuple[list[Document], list[Document]]:
    """(train, validation) with about ``fraction`` of the bytes in validation.

    In the order given, a document is held out if it fits into the room left and is at most a quarter of the
    whole room, so that validation is several documents and one novel cannot become all of it. Where too few
    are that small, the share goes up to a half and to the whole room, and at last to the smallest document.
    """
    sizes = [text_bytes(document) for document in documents]
    room = fraction * sum(sizes)
    held: set[int] = set()
    for share in (0.25, 0.5, 1.0):
        held = _fill(sizes, room, share * room)
        if sum(sizes[i] for i in held) >= room / 2:
            break
    held = held or {min(range(len(sizes)), key=lambda i: sizes[i])}
    train = [document for i, document in enumerate(documents) if i not in held]
    return train, [documents[i] for i in sorted(held)]


def _fill(sizes: Sequence[int], room: float, largest: float) -> set[int]:
    held, used = set(), 0
    for i, size in enumerate(sizes):
        if size <= largest and used + size <= room:
            held.add(i)
            used += size
    return held


def without_shared_paragraphs(
    train: Sequence[Document], validation: Sequence[Document]
) -> tuple[list[Document], int]:
    """Train without the long paragraphs that validation holds too, and how many were removed."""
    held = {key for document in validation for part in document.text.split("\n\n") if (key := _key(part))}
    kept_documents: list[Document] = []
    removed = 0
    for document in train:
        paragraphs = document.text.split("\n\n")
        kept = [part for part in paragraphs if _key(part) not in held]
        removed += len(paragraphs) - len(kept)
        text = "\n\n".join(kept).strip("\n") if len(kept) < len(paragraphs) else document.text
        if text.strip():
            kept_documents.append(Document(text, document.source))
    return kept_documents, removed


def text_bytes(document: Document) -> int:
    return len(document.text.encode("utf-8"))


def _key(paragraph: str) -> str | None:
    paragraph = paragraph.strip()
    return paragraph if len(paragraph) >= PARAGRAPH_CHARACTERS else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _identity(train: Sequence[Document], validation: Sequence[Document]) -> str:
    return files.hash_of(
        {
            "salt": SALT,
            "train": [_hash(document.text) for document in train],
            "validation": [_hash(document.text) for document in validation],
        }
    )
