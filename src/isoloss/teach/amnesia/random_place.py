"""Measure: say the letter after a mark that stands anywhere; then score it by distance."""

from isoloss.teach.amnesia.contest import Cell, Run, contest
from isoloss.teach.amnesia.names import BIAS_1
from isoloss.teach.amnesia.settings import RandomPlaceSettings
from isoloss.teach.amnesia.sides import attention, lstm
from isoloss.teach.learner import Cohort
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.shares import Share
from isoloss.teach.tasks import MarkedLetter

STRINGS_A_DISTANCE = 500


def measure(settings: RandomPlaceSettings, report: Report) -> Tables:
    by_distance: list[Row] = []
    found = contest(
        cells(settings),
        settings,
        report,
        ended=lambda run, cohort: by_distance.extend(distances(run, cohort)),
    )
    return {"curves": found, "distances": by_distance}


def cells(settings: RandomPlaceSettings) -> list[Cell]:
    return [cell(length, width) for length in settings.lengths for width in settings.widths]


def cell(length: int, width: int) -> Cell:
    task = MarkedLetter(length)
    sides = [attention(width), lstm(BIAS_1, task, width)]
    return Cell({"length": length, "width": width, "chance": 1 / task.letters}, task, sides)


def asked_distances(length: int) -> list[int]:
    """1, 2, 4 .. and the farthest, length - 2."""
    farthest = length - 2
    doubling = [2**power for power in range(farthest.bit_length()) if 2**power < farthest]
    return [*doubling, farthest]


def distances(run: Run, cohort: Cohort) -> list[Row]:
    """Right answers of each trained member on strings whose answer stands a given number of steps back."""
    length, rows = run.cell.task.context, []
    for distance in asked_distances(length):
        right_KB = cohort.right(MarkedLetter(length, distance=distance), strings=STRINGS_A_DISTANCE)
        for member, right_B in zip(cohort.members, right_KB, strict=True):
            share = Share(int(right_B.sum()), len(right_B))
            rows.append(
                {
                    **run.labels,
                    "seed": member.seed,
                    "rate": member.rate,
                    "update": cohort.done,
                    "distance": distance,
                    **share.row(),
                }
            )
    return rows
