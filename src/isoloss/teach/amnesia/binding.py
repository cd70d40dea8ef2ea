"""Measure: after k1 v1 .. kD vD answer keys with their values. Every string is scored on one query."""

from isoloss.teach.amnesia.contest import Cell, contest
from isoloss.teach.amnesia.names import BIAS_1
from isoloss.teach.amnesia.settings import BindingSettings
from isoloss.teach.amnesia.sides import attention, lstm
from isoloss.teach.amnesia.value_set import value_set_share
from isoloss.teach.panel import Report
from isoloss.teach.result import Tables
from isoloss.teach.tasks import Binding

MOST_VALUES = 32


def measure(settings: BindingSettings, report: Report) -> Tables:
    return {"curves": contest(cells(settings), settings, report)}


def cells(settings: BindingSettings) -> list[Cell]:
    """A cell for each number of pairs and keys that go together: a string's keys differ, so D <= keys."""
    return [
        cell(pairs, keys, width)
        for keys in settings.keys
        for pairs in dict.fromkeys(min(pairs, keys) for pairs in settings.pairs)
        for width in settings.widths
    ]


def cell(pairs: int, keys: int, width: int) -> Cell:
    values = min(keys, MOST_VALUES)
    task = Binding(pairs, keys, values)
    labels = {
        "pairs": pairs,
        "keys": keys,
        "values": values,
        "width": width,
        "chance": 1 / values,
        "value_set": value_set_share(pairs, values),
    }
    sides = [attention(width), lstm(BIAS_1, task, width)]
    return Cell(labels, task, sides, test=Binding(pairs, keys, values, one_query=True))
