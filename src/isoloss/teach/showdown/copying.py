"""Runs of words that a text shares with the training text, and how varied its words are.

A word is a run of letters, digits and apostrophes, small and capital letters alike; n-grams are of words, so
that the counts mean the same for every tokenizer.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count

import numpy as np

from isoloss.corpus import library

GRAMS = (4, 8)

Words = tuple[bytes, ...]

_WORD = rb"[a-z0-9'\x80-\xff]+"
_TORN = re.compile(rb"\A%s|%s\Z" % (_WORD, _WORD))
_BETWEEN = b""
"""Stands between documents: no word, so that no run crosses."""


def words_of(text: str, *, whole: bool = False) -> Words:
    """The words as UTF-8; ``whole``: without those at the text's ends, which may be torn."""
    data = text.encode("utf-8", "replace").lower()
    return tuple(re.findall(_WORD, _TORN.sub(b"", data) if whole else data))


@dataclass(frozen=True)
class Overlap:
    """Of one text: its words, and for each length in ``GRAMS`` how many n-grams training text holds, of all.

    ``longest``: words in the longest run that training text holds.
    """

    words: int
    held: dict[int, int]
    grams: dict[int, int]
    longest: int

    def share(self, length: int) -> float | None:
        return self.held[length] / self.grams[length] if self.grams[length] else None


def overlaps(texts: Sequence[Words], training: Words) -> list[Overlap]:
    """What each text shares with the training text, in one pass for all texts.

    Only places where a run of n - 1 words of some text begins can begin a run of n: the pass over the whole
    training text is made for single words alone.
    """
    held = [dict.fromkeys(GRAMS, 0) for _ in texts]
    longest = [0] * len(texts)
    places: Iterable[int] = range(len(training))
    for length in count(1):
        runs = [grams(text, length) for text in texts]
        wanted = set().union(*runs)
        places = [place for place in places if training[place : place + length] in wanted]
        if not places:
            break
        present = {training[place : place + length] for place in places}
        for number, text_runs in enumerate(runs):
            if hits := sum(run in present for run in text_runs):
                longest[number] = length
                if length in GRAMS:
                    held[number][length] = hits
    return [
        Overlap(len(text), held[i], {n: len(grams(text, n)) for n in GRAMS}, longest[i])
        for i, text in enumerate(texts)
    ]


def grams(words: Words, length: int) -> list[Words]:
    """Each run of ``length`` words."""
    return [words[first : first + length] for first in range(len(words) - length + 1)]


def distinct(words: Words, length: int) -> float | None:
    """Different n-grams over all n-grams of a text (Li et al. 2016, arXiv 1510.03055)."""
    runs = grams(words, length)
    return len(set(runs)) / len(runs) if runs else None


@cache
def training_words() -> Words:
    """The starter corpus' training words, with ``_BETWEEN`` after each document."""
    documents = library.load(library.STARTER).train
    return tuple(word for document in documents for word in (*words_of(document.text), _BETWEEN))


def held_out_passages(passages: int, words: int) -> list[Words]:
    """Passages of the held-out documents, evenly spread: what people's own text shares with training text."""
    documents = library.load(library.STARTER).validation
    everything = tuple(word for document in documents for word in words_of(document.text))
    firsts = np.linspace(0, len(everything) - words, passages).astype(int).tolist()
    return [everything[first : first + words] for first in firsts]
