"""Measure: say the first of T random letters. Four starts of the LSTM against attention."""

from isoloss.teach.amnesia.contest import Cell, contest
from isoloss.teach.amnesia.names import LSTMS
from isoloss.teach.amnesia.settings import FirstLetterSettings
from isoloss.teach.amnesia.sides import attention, lstm
from isoloss.teach.panel import Report
from isoloss.teach.result import Tables
from isoloss.teach.tasks import FirstLetter


def measure(settings: FirstLetterSettings, report: Report) -> Tables:
    return {"curves": contest(cells(settings), settings, report)}


def cells(settings: FirstLetterSettings) -> list[Cell]:
    return [cell(length, width) for length in settings.lengths for width in settings.widths]


def cell(length: int, width: int) -> Cell:
    task = FirstLetter(length)
    sides = [attention(width), *(lstm(name, task, width) for name in LSTMS)]
    return Cell({"length": length, "width": width, "chance": 1 / task.letters}, task, sides)
