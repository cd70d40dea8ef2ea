"""Text is split into train and validation by what it says, never by the order it came in.

Long documents give parts of themselves (of a novel, about a chapter), short ones go whole to one side, so
that validation is the same mixture of texts as train.

Every choice follows the sha256 of a document's text: the same set of documents gives the same split, the same
order inside each split and the same identity, whatever files or folders it arrived in.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from isoloss import files
from isoloss.corpus.documents import Document
from isoloss.errors import InputError

SALT = "isoloss split 2"  # a new salt would be another split of every corpus
VALIDATION_FRACTION = 0.08
LONG_CHARACTERS = 65_536  # from here on a document gives parts: 8% of it are a few contexts
PART_CHARACTERS = 32_768  # about a chapter
GAP_CHARACTERS = 2_048  # near a part, on either side: the sentence before gives away the sentence after
PARAGRAPH_CHARACTERS = 60  # shorter repeats ("Enter HAMLET.") are the language, not a leak


@dataclass(frozen=True)
class Split:
    """Two disjoint sets of documents, and what was removed to make them so.

    ``corpus_hash`` identifies both sets; ``duplicates_removed`` counts documents, ``paragraphs_removed`` the
    paragraphs taken out of train because validation holds them too, ``gap_bytes`` the text on neither side.
    """

    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    corpus_hash: str
    duplicates_removed: int
    paragraphs_removed: int
    gap_bytes: int


def split(documents: Sequence[Document], validation_fraction: float = VALIDATION_FRACTION) -> Split:
    """Hold out about ``validation_fraction`` of the bytes, without leaks.

    1. Documents that occur more than once are kept once, so that no copy can land on the other side.
    2. Every long document gives contiguous parts of itself to validation (``hold_out_parts``).
    3. Short documents go to validation whole, in the order of salted hashes (``hold_out``).
    4. Paragraphs of at least 60 characters that validation holds too leave train: validation keeps its
       text whole, since losses by position need unbroken context. Train documents left empty go.

    Raises InputError for a fraction outside (0, 0.5], a single short document, or a train split that only
    repeats validation.
    """
    if not 0 < validation_fraction <= 0.5:
        raise InputError(
            f"validation fraction {validation_fraction} is not in (0, 0.5]",
            mend="use a fraction such as 0.08",
        )
    distinct = unique(documents)
    long = [document for document in distinct if len(document.text) >= LONG_CHARACTERS]
    short = [document for document in distinct if len(document.text) < LONG_CHARACTERS]
    if not long and len(short) < 2:
        raise InputError(
            f"one distinct document of less than {LONG_CHARACTERS:,} characters cannot be split into train "
            "and validation",
            where=distinct[0].source if distinct else "",
            mend="give more text, two documents, or a separator that divides the file into documents",
        )
    train, validation = hold_out(short, validation_fraction) if len(short) > 1 else (short, [])
    for document in long:
        rest, parts = hold_out_parts(document, validation_fraction)
        train, validation = train + rest, validation + parts
    gap_bytes = sum(map(text_bytes, distinct)) - sum(map(text_bytes, train + validation))
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
        gap_bytes=gap_bytes,
    )


def hold_out_parts(document: Document, fraction: float) -> tuple[list[Document], list[Document]]:
    """(train, validation) of one long document: ``fraction`` of it in contiguous parts, a gap around each.

    The document is divided into equal sections, one for every ``PART_CHARACTERS`` to hold out; where in its
    section a part begins is drawn from the text's hash. Cuts fall between paragraphs where there are any.
    """
    text = document.text
    sections = max(1, round(fraction * len(text) / PART_CHARACTERS))
    train: list[str] = []
    validation: list[str] = []
    done = 0
    for number in range(sections):
        first, last = (len(text) * n // sections for n in (number, number + 1))
        length = round(fraction * (last - first))
        draw = int(_hash(f"{SALT} {number} {text}")[:12], 16) / 16**12
        start = _paragraph_from(text, first + int(draw * (last - first - length)))
        stop = _paragraph_from(text, start + length)
        train.append(text[done : max(done, start - GAP_CHARACTERS)])
        validation.append(text[start:stop])
        done = _paragraph_from(text, min(len(text), stop + GAP_CHARACTERS))
    train.append(text[done:])
    sides = ([part.strip("\n") for part in side if part.strip()] for side in (train, validation))
    rest, held = ([Document(part, document.source) for part in side] for side in sides)
    return rest, held


_BREAK = re.compile(r"\n\n+")


def _paragraph_from(text: str, position: int) -> int:
    """Where the next paragraph begins, or ``position`` itself where none does within a gap's length."""
    found = _BREAK.search(text, position, position + GAP_CHARACTERS)
    return found.end() if found else position


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
