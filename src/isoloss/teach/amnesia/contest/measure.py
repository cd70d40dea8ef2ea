"""Three tests of memory: train every side of a cell with every rate and seed, and note each look as a row.

first letter    say the first of T random letters: four starts of the LSTM against attention
random place    say the letter after a mark that stands anywhere; then score it by distance
binding         after k1 v1 .. kD vD answer keys with their values; each string is scored on one query

Tables: ``curves``, a row a look; ``example``, one unseen string, and ``answers``, what was said to it; and
``distances`` of the second test.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
from isoloss.teach.learner import Cohort, Replica, Side, answers, cohorts, example
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.tasks import NOT_ASKED, Binding, FirstLetter, LearningTask, MarkedLetter

SECONDS_BETWEEN_REPORTS = 0.3
STRINGS_A_DISTANCE = 500
MOST_VALUES = 32

Ended = Callable[[Row, Cohort], None]


@dataclass(frozen=True)
class Cell:
    """One task at one size: ``labels`` name it in the rows; ``test`` scores it, if not ``task`` itself."""

    labels: Row
    task: LearningTask
    sides: Sequence[Side]
    test: LearningTask | None = None


class Example:
    """One unseen string of the first cell, and what the first seed of every side answers while it learns."""

    def __init__(self, cell: Cell, seed: int):
        self.cell, self.seed, self.answers = cell, seed, list[Row]()
        self.x_BT, self.y_BT = example(cell.task)

    def look(self, cell: Cell, cohort: Cohort) -> None:
        if cell is not self.cell or cohort.members[0].seed != self.seed:
            return
        said_T = answers(cohort.model, self.x_BT, len(cohort.members))[0, 0]
        label = cohort.label(cohort.members[0])
        self.answers += [
            label | {"place": place, "answer": int(said_T[place]), "right": bool(said_T[place] == right)}
            for place, right in enumerate(self.y_BT[0].tolist())
            if right != NOT_ASKED
        ]

    def tables(self) -> Tables:
        asked = enumerate(zip(self.x_BT[0].tolist(), self.y_BT[0].tolist(), strict=True))
        string: list[Row] = [
            {"place": place, "token": token, "right": None if right == NOT_ASKED else right}
            for place, (token, right) in asked
        ]
        return {"example": string, "answers": self.answers}


def first_letter(settings: FirstLetterSettings, report: Report) -> Tables:
    cells = [first_letter_cell(*size) for size in product(settings.lengths, settings.widths)]
    return with_example(cells, settings, report)


def with_example(
    cells: Sequence[Cell], settings: ContestSettings, report: Report, ended: Ended | None = None
) -> Tables:
    shown = Example(cells[0], settings.first_seed)
    rows = contest(cells, settings, report, ended or (lambda labels, cohort: None), shown.look)
    return {"curves": rows, **shown.tables()}


def first_letter_cell(length: int, width: int) -> Cell:
    return letter_cell(FirstLetter(length), width, LSTMS)


def random_place(settings: RandomPlaceSettings, report: Report) -> Tables:
    far: list[Row] = []
    cells = [random_place_cell(*size) for size in product(settings.lengths, settings.widths)]

    def score(labels: Row, cohort: Cohort) -> None:
        far.extend(distances(labels, cohort))

    return with_example(cells, settings, report, score) | {"distances": far}


def random_place_cell(length: int, width: int) -> Cell:
    return letter_cell(MarkedLetter(length), width, (BIAS_1,))


def letter_cell(task: FirstLetter | MarkedLetter, width: int, lstms: Sequence[str]) -> Cell:
    sides = [attention(width), *(lstm(name, task, width) for name in lstms)]
    return Cell({"length": task.length, "width": width, "chance": 1 / task.letters}, task, sides)


def distances(labels: Row, cohort: Cohort) -> list[Row]:
    """Right answers of each trained member where the answer stands 1, 2, 4 .. length - 2 steps back."""
    length, rows = cohort.task.context, list[Row]()
    farthest = length - 2
    doubling = [2**power for power in range(farthest.bit_length()) if 2**power < farthest]
    for distance in (*doubling, farthest):
        shares = cohort.shares(MarkedLetter(length, distance=distance), strings=STRINGS_A_DISTANCE)
        for member, share in zip(cohort.members, shares, strict=True):
            rows.append(labels | cohort.label(member) | {"distance": distance} | share.row())
    return rows


def binding(settings: BindingSettings, report: Report) -> Tables:
    """A cell for each number of pairs and keys that go together: a string's keys differ, so D <= keys."""
    cells = [
        binding_cell(pairs, keys, width)
        for keys in settings.keys
        for pairs in dict.fromkeys(min(pairs, keys) for pairs in settings.pairs)
        for width in settings.widths
    ]
    return with_example(cells, settings, report)


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
    ended: Ended,
    looked: Callable[[Cell, Cohort], None],
) -> list[Row]:
    """A row a side, seed, rate and look.

    Members of a cohort differ by seed alone, so that they end when all are done. ``looked`` is given each
    cohort at each look, ``ended`` when its training is over, with the labels of its rows. Reports
    come now and then, with the share of member-updates done of those allowed.
    """
    rows: list[Row] = []
    runs = [(cell, side, rate) for cell in cells for side in cell.sides for rate in settings.rates]
    reported = time.monotonic()
    for number, (cell, side, rate) in enumerate(runs):
        labels = {**cell.labels, "side": side.name, "params": params_of(side, cell.task)}
        members, done = [Replica(seed, rate) for seed in settings.seed_numbers], 0
        for cohort in cohorts(side, cell.task, members, batch=settings.batch):
            for looks in cohort.learn(cap=settings.cap, every=settings.every, test=cell.test):
                rows += [labels | look for look in looks]
                if looks:
                    looked(cell, cohort)
                if looks or time.monotonic() - reported >= SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    updates = done + cohort.done * len(cohort.members)
                    report(
                        (number + updates / (settings.cap * settings.seeds)) / len(runs),
                        f"{side.name}, rate {rate:g}: update {cohort.done:,}",
                        {"curves": list(rows)} if looks else None,
                    )
            done += cohort.done * len(cohort.members)
            ended(labels, cohort)
    return rows
