"""Three tests of memory: train every side of a cell with every rate and seed, and note each look as a row.

first letter    say the first of T random letters: four starts of the LSTM against attention
random place    say the letter after a mark that stands anywhere; then score it by distance
binding         after k1 v1 .. kD vD answer keys with their values; each string is scored on one query
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from isoloss.teach.amnesia.contest.sides import attention, lstm, params_of
from isoloss.teach.amnesia.names import BIAS_1, LSTMS
from isoloss.teach.amnesia.settings import (
    BindingSettings,
    ContestSettings,
    FirstLetterSettings,
    RandomPlaceSettings,
)
from isoloss.teach.amnesia.value_set import value_set_share
from isoloss.teach.learner import Check, Cohort, Replica, Side, learn
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.shares import Share
from isoloss.teach.tasks import Binding, FirstLetter, MarkedLetter, Task

SECONDS_BETWEEN_REPORTS = 0.3
STRINGS_A_DISTANCE = 500
MOST_VALUES = 32


@dataclass(frozen=True)
class Cell:
    """One task at one size: ``labels`` name it in the rows; ``test`` scores it, if not ``task`` itself."""

    labels: Row
    task: Task
    sides: Sequence[Side]
    test: Task | None = None


@dataclass(frozen=True)
class Contestant:
    """A side in a cell with one rate: members differ by seed alone, so that they end when all are done."""

    cell: Cell
    side: Side
    rate: float

    @property
    def labels(self) -> Row:
        return {**self.cell.labels, "side": self.side.name, "params": params_of(self.side, self.cell.task)}


def first_letter(settings: FirstLetterSettings, report: Report) -> Tables:
    cells = [first_letter_cell(*size) for size in product(settings.lengths, settings.widths)]
    return {"curves": contest(cells, settings, report)}


def first_letter_cell(length: int, width: int) -> Cell:
    task = FirstLetter(length)
    sides = [attention(width), *(lstm(name, task, width) for name in LSTMS)]
    return Cell({"length": length, "width": width, "chance": 1 / task.letters}, task, sides)


def random_place(settings: RandomPlaceSettings, report: Report) -> Tables:
    far: list[Row] = []
    cells = [random_place_cell(*size) for size in product(settings.lengths, settings.widths)]

    def score(contestant: Contestant, cohort: Cohort) -> None:
        far.extend(distances(contestant, cohort))

    return {"curves": contest(cells, settings, report, score), "distances": far}


def random_place_cell(length: int, width: int) -> Cell:
    task = MarkedLetter(length)
    sides = [attention(width), lstm(BIAS_1, task, width)]
    return Cell({"length": length, "width": width, "chance": 1 / task.letters}, task, sides)


def distances(contestant: Contestant, cohort: Cohort) -> list[Row]:
    """Right answers of each trained member where the answer stands 1, 2, 4 .. length - 2 steps back."""
    length, rows = contestant.cell.task.context, list[Row]()
    farthest = length - 2
    doubling = [2**power for power in range(farthest.bit_length()) if 2**power < farthest]
    for distance in (*doubling, farthest):
        right_KB = cohort.right(MarkedLetter(length, distance=distance), strings=STRINGS_A_DISTANCE)
        for member, right_B in zip(cohort.members, right_KB, strict=True):
            labels = {"seed": member.seed, "rate": member.rate, "update": cohort.done, "distance": distance}
            share = Share(int(right_B.sum()), len(right_B))
            rows.append({**contestant.labels, **labels, **share.row()})
    return rows


def binding(settings: BindingSettings, report: Report) -> Tables:
    """A cell for each number of pairs and keys that go together: a string's keys differ, so D <= keys."""
    cells = [
        binding_cell(pairs, keys, width)
        for keys in settings.keys
        for pairs in dict.fromkeys(min(pairs, keys) for pairs in settings.pairs)
        for width in settings.widths
    ]
    return {"curves": contest(cells, settings, report)}


def binding_cell(pairs: int, keys: int, width: int) -> Cell:
    values = min(keys, MOST_VALUES)
    task = Binding(pairs, keys, values)
    labels: Row = {
        "pairs": pairs,
        "keys": keys,
        "values": values,
        "width": width,
        "chance": 1 / values,
        "value_set": value_set_share(pairs, values),
    }
    sides = [attention(width), lstm(BIAS_1, task, width)]
    return Cell(labels, task, sides, test=Binding(pairs, keys, values, one_query=True))


def contest(
    cells: Iterable[Cell],
    settings: ContestSettings,
    report: Report,
    ended: Callable[[Contestant, Cohort], None] = lambda contestant, cohort: None,
) -> list[Row]:
    """A row a side, seed, rate and look. ``ended`` is given each cohort when its training is over."""
    rows: list[Row] = []
    contestants = [Contestant(c, side, rate) for c in cells for side in c.sides for rate in settings.rates]
    for number, contestant in enumerate(contestants):
        progress = ContestProgress(report, rows, contestant, settings, (number, len(contestants)))
        learn(
            contestant.side,
            contestant.cell.task,
            [Replica(seed, contestant.rate) for seed in settings.seed_numbers],
            cap=settings.cap,
            every=settings.every,
            batch=settings.batch,
            test=contestant.cell.test,
            seen=progress.seen,
            stepped=progress.stepped,
            ended=partial(ended, contestant),
        )
    return rows


class ContestProgress:
    """Notes a contestant's looks and reports now and then, in member-updates done of those allowed.

    ``turn``: its number and that of all contestants.
    """

    def __init__(
        self,
        report: Report,
        rows: list[Row],
        contestant: Contestant,
        settings: ContestSettings,
        turn: tuple[int, int],
    ):
        self.report, self.rows, self.contestant, self.turn = report, rows, contestant, turn
        self.allowed, self.labels = settings.cap * settings.seeds, contestant.labels
        self.done, self.last = 0, time.monotonic()

    def seen(self, check: Check) -> None:
        self.rows.append({**self.labels, **check.row()})
        self._report(check.update, {"curves": list(self.rows)})

    def stepped(self, cohort: Cohort) -> None:
        self.done += len(cohort.members)
        if time.monotonic() - self.last >= SECONDS_BETWEEN_REPORTS:
            self._report(cohort.done)

    def _report(self, update: int, tables: Tables | None = None) -> None:
        self.last = time.monotonic()
        number, count = self.turn
        share = (number + min(1.0, self.done / self.allowed)) / count
        side, rate = self.contestant.side.name, self.contestant.rate
        self.report(share, f"{side}, rate {rate:g}: update {update:,}", tables)
