"""Runs of words that a text shares with the training text, and how varied its words are.

A word is a run of letters, digits and apostrophes, small and capital letters alike; n-grams are of words, so
that the counts mean the same for every tokenizer. Words and n-grams are compared by 64-bit hashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count

import numpy as np

from isoloss.corpus import library

GRAMS = (4, 8)

_WORD_BASE, _GRAM_BASE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_BYTES = np.arange(256)
_IN_WORD = np.array([chr(b).isalnum() or chr(b) == "'" or b > 127 for b in _BYTES])
_SMALL = np.array([ord(chr(b).lower()) if b < 128 else b for b in _BYTES], dtype=np.uint64)


def word_hashes(text: str) -> np.ndarray:
    """hash_N (uint64) of the words: sum of byte_j * base^(j + 1) over the word's bytes, modulo 2^64."""
    byte_L = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    inside_L = _IN_WORD[byte_L]
    turns = np.diff(inside_L.astype(np.int8), prepend=0, append=0)
    first_N, after_N = np.flatnonzero(turns == 1), np.flatnonzero(turns == -1)
    if not len(first_N):
        return np.zeros(0, dtype=np.uint64)
    length_N = after_N - first_N
    begin_N = np.cumsum(length_N) - length_N
    place_M = np.arange(length_N.sum()) - np.repeat(begin_N, length_N)
    power_P = np.cumprod(np.full(length_N.max(), _WORD_BASE))
    return np.add.reduceat(_SMALL[byte_L[inside_L]] * power_P[place_M], begin_N)


@dataclass(frozen=True)
class Copied:
    """Of one text: its words, and for each length in ``GRAMS`` how many n-grams training text holds, of all.

    ``longest``: words in the longest run that training text holds.
    """

    words: int
    held: dict[int, int]
    grams: dict[int, int]
    longest: int

    def share(self, length: int) -> float | None:
        return self.held[length] / self.grams[length] if self.grams[length] else None


def copied(texts: Sequence[np.ndarray], training_N: np.ndarray) -> list[Copied]:
    """What each text (hashes of its words) shares with the training text, in one pass for all texts.

    Only places where a run of n - 1 words of some text begins can begin a run of n: the pass over the whole
    training text is made for single words alone.
    """
    held = [dict.fromkeys(GRAMS, 0) for _ in texts]
    longest = [0] * len(texts)
    place_M = np.arange(len(training_N))
    gram_M = np.zeros(len(training_N), dtype=np.uint64)
    for length in count(1):
        keep_M = place_M <= len(training_N) - length
        place_M, gram_M = place_M[keep_M], gram_M[keep_M]
        gram_M = gram_M * _GRAM_BASE + training_N[place_M + length - 1]
        asked = [grams(text, length) for text in texts]
        found_M = among(gram_M, np.unique(np.concatenate(asked)))
        place_M, gram_M = place_M[found_M], gram_M[found_M]
        present = np.unique(gram_M)
        for number, asked_G in enumerate(asked):
            if hits := int(among(asked_G, present).sum()):
                longest[number] = length
                if length in GRAMS:
                    held[number][length] = hits
        if not len(present):
            break
    return [
        Copied(len(text), held[i], {n: max(0, len(text) - n + 1) for n in GRAMS}, longest[i])
        for i, text in enumerate(texts)
    ]


def grams(word_N: np.ndarray, length: int) -> np.ndarray:
    """Hash of each run of ``length`` words: h <- h * base + word, modulo 2^64."""
    many = max(0, len(word_N) - length + 1)
    hash_G = np.zeros(many, dtype=np.uint64)
    for place in range(length):
        hash_G = hash_G * _GRAM_BASE + word_N[place : place + many]
    return hash_G


def among(value_M: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Is each value one of the ``ordered``?"""
    if not len(ordered):
        return np.zeros(len(value_M), dtype=bool)
    place_M = np.searchsorted(ordered, value_M)
    return ordered[np.minimum(place_M, len(ordered) - 1)] == value_M


def distinct(word_N: np.ndarray, length: int) -> float | None:
    """Different n-grams over all n-grams of a text (Li et al. 2016, arXiv 1510.03055)."""
    found = grams(word_N, length)
    return len(np.unique(found)) / len(found) if len(found) else None


@cache
def training_words() -> np.ndarray:
    """Hashes of the starter corpus' training words; 0 stands between documents, so that no run crosses."""
    between = np.zeros(1, dtype=np.uint64)
    documents = library.load(library.STARTER).train
    return np.concatenate([part for document in documents for part in (word_hashes(document.text), between)])


def held_out_passages(passages: int, words: int) -> list[np.ndarray]:
    """Passages of the held-out documents, evenly spread: what people's own text shares with training text."""
    documents = [word_hashes(document.text) for document in library.load(library.STARTER).validation]
    everything = np.concatenate(documents)
    firsts = np.linspace(0, len(everything) - words, passages).astype(int)
    return [everything[first : first + words] for first in firsts]
