"""The user's sentence: what is taken, and how it becomes tokens."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

FEWEST, MOST, LONGEST = 2, 12, 20
"""Words of a sentence, and characters of a word: every matrix is to be shown whole."""

CHARACTERS = MOST * (LONGEST + 1)


def words_of(sentence: str) -> list[str]:
    """The words as typed, in order."""
    return sentence.split()


def ids_of(words: list[str]) -> list[int]:
    """Tokens by order of first appearance, so that they do not depend on how Python hashes strings."""
    order = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return [order[word] for word in words]


def labels_of(words: list[str]) -> list[str]:
    """ "3 the": a word with its place, since words may repeat."""
    return [f"{place} {word}" for place, word in enumerate(words, 1)]


def validated(sentence: str) -> str:
    """The sentence with single spaces. Raises ValueError for one that would not fit or could act."""
    if len(sentence) > CHARACTERS:
        raise ValueError(f"a sentence has at most {CHARACTERS} characters")
    if any(unicodedata.category(letter).startswith("C") for letter in sentence):
        raise ValueError("a sentence has no control or invisible characters")
    words = words_of(sentence)
    if not FEWEST <= len(words) <= MOST:
        raise ValueError(f"a sentence has {FEWEST} to {MOST} words, separated by spaces; got {len(words)}")
    if any(len(word) > LONGEST for word in words):
        raise ValueError(f"a word has at most {LONGEST} characters")
    return " ".join(words)


SentenceText = Annotated[str, AfterValidator(validated)]
