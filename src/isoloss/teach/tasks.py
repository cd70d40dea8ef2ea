"""Tasks with a known right answer, drawn afresh at every step: a batch is a pure function of its generator.

x_BT   tokens, int64
y_BT   the token to answer at each position, or NOT_ASKED where nothing is asked
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

NOT_ASKED = -1

Batch = tuple[np.ndarray, np.ndarray]


class LearningTask(Protocol):
    @property
    def vocab(self) -> int: ...
    @property
    def context(self) -> int: ...
    def batch(self, rng: np.random.Generator, size: int) -> Batch: ...


@dataclass(frozen=True)
class FirstLetter:
    """Say the first of ``length`` random letters once "?" is read, which stands in the last place.

    The answer is always at the same address, ``length - 1`` steps back. Chance: 1 / letters.
    """

    length: int = 20
    letters: int = 26

    @property
    def vocab(self) -> int:
        return self.letters + 1

    @property
    def context(self) -> int:
        return self.length

    def batch(self, rng: np.random.Generator, size: int) -> Batch:
        x_BT = rng.integers(0, self.letters, (size, self.length))
        x_BT[:, -1] = self.letters
        y_BT = np.full_like(x_BT, NOT_ASKED)
        y_BT[:, -1] = x_BT[:, 0]
        return x_BT, y_BT


@dataclass(frozen=True)
class MarkedLetter:
    """Say the letter that follows a mark, which stands anywhere; "?" asks in the last place.

    The distance from the letter to the question is uniform over 1 .. length - 2, or ``distance`` if given.
    """

    length: int = 32
    letters: int = 26
    distance: int | None = None

    @property
    def vocab(self) -> int:
        return self.letters + 2

    @property
    def context(self) -> int:
        return self.length

    def batch(self, rng: np.random.Generator, size: int) -> Batch:
        x_BT = rng.integers(0, self.letters, (size, self.length))
        x_BT[:, -1] = self.letters
        back_B = rng.integers(1, self.length - 1, size)
        if self.distance is not None:
            back_B[:] = self.distance
        rows, letter_B = np.arange(size), self.length - 1 - back_B
        x_BT[rows, letter_B - 1] = self.letters + 1
        y_BT = np.full_like(x_BT, NOT_ASKED)
        y_BT[:, -1] = x_BT[rows, letter_B]
        return x_BT, y_BT


@dataclass(frozen=True)
class Binding:
    """k1 v1 .. kD vD, then the D keys again in random order: answer each with its value.

    Keys of one string differ, values may repeat: multi-query associative recall (arXiv 2312.04927). With
    ``one_query`` a single query of each string is scored, so that scored answers are independent.
    """

    pairs: int = 4
    keys: int = 8
    values: int = 8
    one_query: bool = False

    @property
    def vocab(self) -> int:
        return self.keys + self.values

    @property
    def context(self) -> int:
        return 3 * self.pairs

    def batch(self, rng: np.random.Generator, size: int) -> Batch:
        D, rows = self.pairs, np.arange(size)[:, None]
        key_BD = np.argsort(rng.random((size, self.keys)), axis=1)[:, :D]
        value_BD = self.keys + rng.integers(0, self.values, (size, D))
        order_BD = np.argsort(rng.random((size, D)), axis=1)
        x_BT = np.empty((size, 3 * D), dtype=np.int64)
        x_BT[:, 0 : 2 * D : 2], x_BT[:, 1 : 2 * D : 2] = key_BD, value_BD
        x_BT[:, 2 * D :] = key_BD[rows, order_BD]
        y_BT = np.full_like(x_BT, NOT_ASKED)
        y_BT[:, 2 * D :] = value_BD[rows, order_BD]
        if self.one_query:
            asked = rng.integers(0, D, size)[:, None]
            y_BT[:, 2 * D :] = np.where(np.arange(D) == asked, y_BT[:, 2 * D :], NOT_ASKED)
        return x_BT, y_BT
