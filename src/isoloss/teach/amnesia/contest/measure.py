"""Three tests of memory: train every side of a cell with every rate and seed, and note each look as a row.

first letter    say the first of T random letters: four starts of the LSTM against attention
random place    say the letter after a mark that stands anywhere; then score it by distance
binding         after k1 v1 .. kD vD answer keys with their values; each string is scored on one query
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
from isoloss.teach.learner import Cohort, Replica, Side, cohorts
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.tasks import Binding, FirstLetter, LearningTask, MarkedLetter

SECONDS_BETWEEN_REPORTS = 0.3
STRINGS_A_DISTANCE = 500
MOST_VALUES = 32


@dataclass(frozen=True)
class Cell:
    """One task at one size: ``labels`` name it in the rows; ``test`` scores it, if not ``task`` itself."""

    labels: Row
    task: LearningTask
    sides: Sequence[Side]
    test: LearningTask | None = None


def first_letter(settings: FirstLetterSettings, report: Report) -> Tables:
    cells = [first_letter_cell(*size) for size in product(settings.lengths, settings.widths)]
    return {"curves": contest(cells, settings, report)}


def first_letter_cell(length: int, width: int) -> Cell:
    return letter_cell(FirstLetter(length), width, LSTMS)


def random_place(settings: RandomPlaceSettings, report: Report) -> Tables:
    far: list[Row] = []
    cells = [random_place_cell(*size) for size in product(settings.lengths, settings.widths)]

    def score(labels: Row, cohort: Cohort) -> None:
        far.extend(distances(labels, cohort))

    return {"curves": contest(cells, settings, report, score), "distances": far}


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
    ended: Callable[[Row, Cohort], None] = lambda labels, cohort: None,
) -> list[Row]:
    """A row a side, seed, rate and look.

    Members of a cohort differ by seed alone, so that they end when all are done. ``ended`` is given each
    cohort when its training is over, with the labels of its rows. Reports come now and then, with the share
    of member-updates done of those allowed.
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
