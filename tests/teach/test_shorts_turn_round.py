"""Whatever the room hears of who is ahead turns round where the two sides' numbers are exchanged."""

import re
from importlib import resources
from pathlib import Path

import pytest

from isoloss.teach import panels, result
from isoloss.teach.amnesia.contest.outcomes import spoken
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, CHRONO, DEFAULT
from isoloss.teach.race.counts import BLOCK, LSTM
from isoloss.teach.result import sentence

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
    before, after = (
        {one.key: one for one in panel.sentences(settings, measured)} for measured in (tables, turned)
    )
    called = [spoken(side) for side in sides] if name not in ("race", "bill", "showdown") else FAMILIES
    for key in keys:
        assert after[key].short == other(before[key].short, *LAYERS.get(key, called)) != before[key].short
        assert after[key].ahead == other(before[key].ahead, *FAMILIES)
        assert after[key].lead == before[key].lead, "by as much"
        assert bool(before[key].lead) == bool(before[key].ahead)


BY = {
    ("random-place", "verdict"): "300 updates sooner",
    ("training", "best"): "0.14 nats lower",
    ("race", "whole-training"): "1.6 to 7.6 times",
    ("race", "parallel"): "1.75, not 1.27 times",
    ("showdown", "reveal-loss"): "0.09 nats lower",
}
"""By how much somebody leads in what ships, where the numbers stand in the full sentence as well."""


@pytest.mark.parametrize(("name", "key"), BY)
def test_a_lead_has_the_numbers_of_the_sentence_behind_it(name, key):
    held = result.read(RECORDED / f"{name}.json")
    one = next(sentence for sentence in held.sentences if sentence.key == key)
    assert one.lead == BY[name, key]
    if name == "random-place":  # medians of 450 and 150 updates
        assert "median 150 updates" in one.text
        assert "median 450 updates" in one.text
        return
    values = [float(value) for value in re.findall(r"\d+\.\d+", one.text)]
    assert all(
        any(float(number) == round(value, len(number.split(".")[1])) for value in values)
        for number in re.findall(r"\d+\.\d+", one.lead)
    )


def test_nobody_leads_by_anything_where_nobody_is_ahead():
    assert sentence("x", "No clear difference.", "", "", "3 updates sooner").lead == ""
    assert sentence("x", "A is ahead.", "", "LSTM", "3 updates sooner").lead == "3 updates sooner"


def test_no_sentence_that_finds_somebody_ahead_is_left_out():
    covered = {(name, key) for name, _, keys in CASES for key in keys}
    with_leader = {
        (panel.name, one.key)
        for panel in panels.PANELS
        for one in result.read(RECORDED / f"{panel.name}.json").sentences
        if one.ahead
    }
    assert with_leader
    assert with_leader <= covered
