"""The user's sentence: what is taken, and how it becomes tokens."""

import unicodedata
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

from isoloss.stats import Row

FEWEST, MOST, LONGEST = 2, 12, 20
"""Words of a sentence, and characters of a word: every matrix is to be shown whole."""


def ids_of(words: list[str]) -> list[int]:
    """Tokens by order of first appearance, so that they do not depend on how Python hashes strings."""
    order = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return [order[word] for word in words]


def labels_of(rows: Sequence[Row]) -> list[str]:
    """ "3 the": the word of each row with its place, since words may repeat."""
    return [f"{place} {row['word']}" for place, row in enumerate(rows, 1)]


def validate(sentence: str) -> str:
    """The sentence with single spaces. Raises ValueError for one that would not fit or could act."""
    if any(unicodedata.category(letter).startswith("C") for letter in sentence):
        raise ValueError("a sentence has no control or invisible characters")
    words = sentence.split()
    if not FEWEST <= len(words) <= MOST:
        raise ValueError(f"a sentence has {FEWEST} to {MOST} words, separated by spaces; got {len(words)}")
    if any(len(word) > LONGEST for word in words):
        raise ValueError(f"a word has at most {LONGEST} characters")
    return " ".join(words)


SentenceText = Annotated[str, AfterValidator(validate)]
