"""Whatever the room hears of who is ahead turns round where the two sides' numbers are exchanged."""

from importlib import resources
from pathlib import Path

import pytest

from isoloss.teach import panels, result
from isoloss.teach.amnesia.contest.outcomes import spoken
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, CHRONO, DEFAULT
from isoloss.teach.race.counts import BLOCK, LSTM

RECORDED = Path(str(resources.files("isoloss.teach").joinpath("recorded")))
FAMILIES = ("Transformer", "LSTM")
BINDING = ("verdict", "verdict-64-2-32", "verdict-8-4-32", "verdict-8-2-32")

CASES = [
    ("reach", (BIAS_3, DEFAULT), ("verdict",)),
    ("first-letter", (BIAS_3, DEFAULT), ("start", "start-40-32")),
    ("first-letter", (ATTENTION, CHRONO), ("attention",)),
    ("first-letter", (ATTENTION, BIAS_3), ("attention-40-32",)),
    ("random-place", (ATTENTION, BIAS_1), ("verdict",)),
    ("binding", (ATTENTION, BIAS_1), BINDING),
    ("training", FAMILIES, ("best",)),
    ("race", (BLOCK.name, LSTM.name), ("whole-training", "parallel")),
    ("bill", (BLOCK.name, LSTM.name), ("crossing",)),
    ("showdown", ("transformer", "lstm"), ("reveal-loss", "reveal-positions")),
]
"""A panel, the names of two sides in its tables, and the sentences that compare them."""
LAYERS = {"whole-training": ("whole Transformer block", "LSTM layer")}
"""What is compared where it is less than a family."""


def other(text, one, another):
    """The text with two names exchanged."""
    return another.join(part.replace(another, one) for part in text.split(one))


def exchanged(name, row, one, another):
    """A row as it would be had the two sides' measurements been each other's."""
    if name == "ratios":  # of times: the one's over the other's
        if (row.get("a", one), row.get("b", another)) != (one, another):
            return row
        return row | {"value": 1 / row["value"], "low": 1 / row["high"], "high": 1 / row["low"]}
    return {key: {one: another, another: one}.get(value, value) for key, value in row.items()}


@pytest.mark.parametrize(("name", "sides", "keys"), CASES)
def test_what_is_said_of_two_sides_turns_round_with_their_numbers(name, sides, keys):
    held, panel = result.read(RECORDED / f"{name}.json"), panels.panel(name)
    settings, tables = panel.settings_from(held.settings), held.tables
    turned = {table: [exchanged(table, row, *sides) for row in rows] for table, rows in tables.items()}
    before, after = ({one.key: one for one in panel.sentences(settings, found)} for found in (tables, turned))
    called = [spoken(side) for side in sides] if name not in ("race", "bill", "showdown") else FAMILIES
    for key in keys:
        assert after[key].short == other(before[key].short, *LAYERS.get(key, called)) != before[key].short
        assert after[key].ahead == other(before[key].ahead, *FAMILIES)


def test_no_sentence_that_finds_somebody_ahead_is_left_out():
    covered = {(name, key) for name, _, keys in CASES for key in keys}
    found = {
        (panel.name, one.key)
        for panel in panels.PANELS
        for one in result.read(RECORDED / f"{panel.name}.json").sentences
        if one.ahead
    }
    assert found
    assert found <= covered
