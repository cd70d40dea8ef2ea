"""Sentences as words: what is trained on, what is held out, and the least loss that is possible. No torch.

Two tokens besides the words: END closes a sentence and, read first, opens it; UNKNOWN stands for a held-out
word that no training sentence has. A model reads  END w_1 .. w_n  and answers  w_1 .. w_n END.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import combinations

import numpy as np

from isoloss.errors import InputError
from isoloss.teach.tasks import NOT_ASKED, Batch

END, UNKNOWN = 0, 1
NAMES = ("<end>", "<unknown>")
FEWEST_SENTENCES, MOST_SENTENCES, MOST_WORDS = 10, 300, 30
PUNCTUATION = ".,;:!?"

Sentence = tuple[int, ...]


@dataclass(frozen=True)
class SameSentences:
    """A task that gives the same sentences at every step, all of them.

    UNKNOWN is read but never asked: no training sentence has it, so a loss on it would measure nothing.
    """

    sentences: tuple[Sentence, ...]
    vocab: int
    context: int

    def batch(self, rng: np.random.Generator, size: int) -> Batch:
        x_BT = np.full((len(self.sentences), self.context), END, dtype=np.int64)
        y_BT = np.full_like(x_BT, NOT_ASKED)
        for row, sentence in enumerate(self.sentences):
            x_BT[row, 1 : 1 + len(sentence)] = sentence
            y_BT[row, : 1 + len(sentence)] = (*sentence, END)
        y_BT[y_BT == UNKNOWN] = NOT_ASKED
        return x_BT, y_BT

    @property
    def answers(self) -> int:
        return sum(1 + len(s) - s.count(UNKNOWN) for s in self.sentences)


@dataclass(frozen=True)
class WordCorpus:
    """``dropped``: sentences that were there before; each is kept once, so that none is on both sides."""

    words: tuple[str, ...]
    training: tuple[Sentence, ...]
    held_out: tuple[Sentence, ...]
    dropped: int = 0

    @property
    def vocab(self) -> int:
        return len(NAMES) + len(self.words)

    @property
    def context(self) -> int:
        """Positions a model needs: the longest sentence and the token that opens it."""
        return 1 + max(map(len, (*self.training, *self.held_out)))

    @cached_property
    def floor(self) -> float:
        return entropy_floor(self.training)

    @property
    def uniform(self) -> float:
        """ln V: the loss of giving every token the same probability, in nats."""
        return math.log(self.vocab)

    def task(self, sentences: tuple[Sentence, ...]) -> SameSentences:
        return SameSentences(sentences, self.vocab, self.context)

    def text(self, sentence: Iterable[int]) -> str:
        return " ".join((*NAMES, *self.words)[token] for token in sentence)

    def beginning(self, prompt: str) -> Sentence:
        """A prompt as tokens. Raises InputError if it is empty, too long or has a word not in training."""
        words = split(prompt, "prompt")
        if not words:
            raise InputError("there is no word in it", where="prompt", mend='write some, as "we propose a"')
        if len(words) >= self.context:
            most = self.context - 1
            raise InputError(
                f"it has {len(words)} words",
                where="prompt",
                mend=f"write at most {most}, a sentence's length",
            )
        number = {word: number for number, word in enumerate(self.words, start=len(NAMES))}
        if new := [word for word in words if word not in number]:
            raise InputError(
                f"no training sentence has {new[0][:40]!r}", where="prompt", mend="use words of the sentences"
            )
        return tuple(number[word] for word in words)


def shipped_text() -> str:
    return resources.files("isoloss.teach.progression").joinpath("sentences.txt").read_text("utf-8")


def corpus_of(text: str, held_out: float, seed: int) -> WordCorpus:
    """Sentences of ``text``, one a line (the shipped ones if it is empty), split by ``seed``.

    Words are numbered in the order in which the training sentences bring them.
    """
    lines = [split(line, "corpus") for line in (text if text.strip() else shipped_text()).splitlines()]
    sentences = [words for words in lines if words]
    distinct = list(dict.fromkeys(sentences))
    _check(distinct)
    count = min(len(distinct) - 2, max(2, round(held_out * len(distinct))))
    aside = set(np.random.default_rng(seed).permutation(len(distinct))[:count].tolist())
    training = [words for number, words in enumerate(distinct) if number not in aside]
    number: dict[str, int] = {}
    for word in (word for words in training for word in words):
        number.setdefault(word, len(NAMES) + len(number))
    return WordCorpus(
        words=tuple(number),
        training=tuple(tuple(number[word] for word in words) for words in training),
        held_out=tuple(tuple(number.get(w, UNKNOWN) for w in distinct[n]) for n in sorted(aside)),
        dropped=len(sentences) - len(distinct),
    )


def split(text: str, where: str) -> tuple[str, ...]:
    """Words in small letters, without punctuation around them. Raises InputError for control characters."""
    if odd := next((c for c in text if unicodedata.category(c)[0] == "C" and not c.isspace()), None):
        raise InputError(f"it has the character U+{ord(odd):04X}", where=where, mend="write plain text")
    return tuple(bare for word in text.lower().split() if (bare := word.strip(PUNCTUATION)))


def _check(sentences: Sequence[tuple[str, ...]]) -> None:
    if not FEWEST_SENTENCES <= len(sentences) <= MOST_SENTENCES:
        raise InputError(
            f"it has {len(sentences)} different sentences",
            where="corpus",
            mend=f"write {FEWEST_SENTENCES} to {MOST_SENTENCES}, one a line",
        )
    longest = max(map(len, sentences))
    if longest > MOST_WORDS:
        raise InputError(
            f"a sentence has {longest:,} words",
            where="corpus",
            mend=f"write at most {MOST_WORDS} words a line",
        )


def entropy_floor(sentences: Sequence[Sentence]) -> float:
    """Entropy of the next token given all tokens before it, in nats a token, END included.

    floor = - sum over prefixes p and next tokens w of  c(p w) ln(c(p w) / c(p))  /  sum over p of c(p)

    c counts how often the sentences go that way. It is exact, and no model's mean loss on the same sentences
    is lower: cross-entropy is entropy plus a divergence that is not negative (Gibbs).
    """
    nexts: dict[Sentence, Counter[int]] = {}
    for sentence in sentences:
        for length, token in enumerate((*sentence, END)):
            nexts.setdefault(sentence[:length], Counter())[token] += 1
    nats = tokens = 0.0
    for counts in nexts.values():
        here = counts.total()
        nats -= math.fsum(count * math.log(count / here) for count in counts.values())
        tokens += here
    return nats / tokens


def longest_copied(written: Sentence, training: Iterable[Sentence]) -> int:
    """Length of the longest run of tokens in ``written`` that stands in a training sentence."""
    known = {run for sentence in training for run in _runs(sentence)}
    return max((len(run) for run in _runs(written) if run in known), default=0)


def _runs(sentence: Sentence) -> Iterator[Sentence]:
    return (sentence[first:end] for first, end in combinations(range(len(sentence) + 1), 2))
