"""Sentences of the amnesia demo: they follow the numbers, whichever side they favour."""

import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isoloss import stats
from isoloss.figures.render import render
from isoloss.teach import panels, words
from isoloss.teach.amnesia.contest.outcomes import Outcome, best, order_of_arrival, outcomes, spoken
from isoloss.teach.amnesia.contest.outcomes import verdict as compare
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, BLOCK, CHRONO, DEFAULT, LSTMS, TANH
from isoloss.teach.amnesia.reach.tell import DRAWN, arrays, orders
from isoloss.teach.amnesia.value_set import value_set_share
from isoloss.teach.deck import page

CAP, EVERY = 200, 50


def verdict(a, b):
    return compare(a, b).text


TESTS = ("first-letter", "random-place", "binding")
LABELS = {
    "first-letter": {"length": 20, "width": 32, "chance": 1 / 26},
    "random-place": {"length": 24, "width": 32, "chance": 1 / 26},
    "binding": {
        "pairs": 4,
        "keys": 64,
        "values": 32,
        "width": 32,
        "chance": 1 / 32,
        "value_set": value_set_share(4, 32),
    },
}


def looks(side, ends, *, panel="first-letter", rate=3e-3, arrive=CAP):
    """Looks of a side whose seeds end at ``ends``: at chance before ``arrive``, at the end from then on."""
    rows = []
    for seed, end in enumerate(ends):
        for update in range(0, CAP + 1, EVERY):
            value = end if update >= arrive else 0.04
            rows.append(
                {
                    **LABELS[panel],
                    "side": side,
                    "params": 27_000,
                    "seed": seed,
                    "rate": rate,
                    "update": update,
                }
                | {"value": value, "low": max(0.0, value - 0.02), "high": min(1.0, value + 0.02), "n": 2_000}
                | {"loss": None, "cpu_seconds": 1.0}
            )
            if value >= 0.99:
                break
    return rows


def sides(panel):
    return (ATTENTION, DEFAULT, BIAS_1, BIAS_3, CHRONO) if panel == "first-letter" else (ATTENTION, BIAS_1)


def tables(panel, ends, **named):
    return {"curves": [row for side in ends for row in looks(side, ends[side], panel=panel, **named)]}


def said(name, measured):
    one = panels.panel(name)
    return {sentence.key: sentence.text for sentence in one.tell.sentences(one.settings(), measured)}


def one(side, ends, **named):
    return best(outcomes(pl.DataFrame(looks(side, ends, **named)))[side])


def test_the_verdict_names_whoever_is_ahead_and_turns_round():
    high, low = (0.995, 0.993, 0.996), (0.30, 0.31, 0.29)
    ahead = verdict(one(ATTENTION, high), one(BIAS_1, low))
    behind = verdict(one(ATTENTION, low), one(BIAS_1, high))
    assert ahead.startswith(f"{ATTENTION} is ahead of {spoken(BIAS_1)}: 69.5 points")
    assert behind.startswith(f"{spoken(BIAS_1)} is ahead of {ATTENTION}: 69.5 points")


def test_the_order_of_the_sides_does_not_decide():
    high, low = one(ATTENTION, (0.995, 0.993, 0.996)), one(BIAS_1, (0.30, 0.31, 0.29))
    assert verdict(high, low) == verdict(low, high)


def test_overlap_is_no_clear_difference():
    a, b = one(ATTENTION, (0.6, 0.2, 0.4, 0.4)), one(BIAS_1, (0.5, 0.4, 0.3, 0.4))
    assert verdict(a, b).startswith("No clear difference")
    few = verdict(one(ATTENTION, (0.6, 0.2, 0.4)), one(BIAS_1, (0.5, 0.4, 0.3)))
    assert few.startswith(
        f"Three seeds are too few to tell {ATTENTION} from {spoken(BIAS_1)} within {CAP} updates: "
    )
    assert "ended at 20.0% to 60.0%" in few
    assert "interval" not in few
    # Control: the same means without the spread are told apart.
    assert not verdict(one(ATTENTION, (0.4,) * 3), one(BIAS_1, (0.3,) * 3)).startswith("No clear")


def test_sides_that_both_arrive_are_compared_by_updates():
    early, late = one(ATTENTION, (0.995,) * 3, arrive=50), one(BIAS_1, (0.999,) * 3, arrive=200)
    assert "ahead of nudged LSTM" in verdict(early, late)
    assert "150 updates sooner" in verdict(early, late)
    assert compare(early, late).short == "The Transformer learns it 150 updates sooner than the nudged LSTM."
    assert verdict(late, early) == verdict(early, late)
    # Control: one look apart is what looking every 50 updates leaves open.
    close = one(BIAS_1, (0.999,) * 3, arrive=100)
    assert verdict(early, close).startswith("Three seeds are too few to tell")
    assert "in 3 of 3 seeds (median 100 updates)" in verdict(early, close)


def test_where_the_shares_leave_it_open_the_order_of_arrival_decides():
    early, late = one(ATTENTION, (0.995,) * 5, arrive=50), one(BIAS_1, (0.995,) * 4 + (0.7,), arrive=200)
    text = verdict(early, late)
    assert text.startswith(
        f"{ATTENTION} is ahead of {spoken(BIAS_1)}: within {CAP} updates 99% was reached by 5 of 5"
    )
    assert "4 of 5 seeds (median 200 updates)" in text
    assert "p = 0.008" in text
    assert verdict(late, early) == text
    # Controls: three seeds a side are too few for it, and arrivals that mix decide nothing.
    few = verdict(one(ATTENTION, (0.995,) * 3, arrive=50), one(BIAS_1, (0.995, 0.995, 0.7), arrive=200))
    assert few.startswith("Three seeds are too few to tell")
    mixed = one(BIAS_1, (0.995, 0.7, 0.995, 0.7, 0.995), arrive=50)
    assert verdict(one(ATTENTION, (0.995,) * 4 + (0.7,), arrive=50), mixed).startswith("No clear difference")


def test_the_order_of_arrival_errs_as_rarely_as_it_says():
    rng = np.random.default_rng(0)

    def arrived(side):
        reached = [int(t) if t <= CAP else None for t in times()]
        return Outcome(side, 1, 1e-3, [], reached, EVERY, CAP, list(range(5)))

    def times():
        return EVERY * rng.integers(1, CAP // EVERY + 3, 5)

    def p():
        a, b = arrived("a"), arrived("b")
        shares = [stats.share(1, 2)] * 5
        return order_of_arrival(replace(a, shares=shares), replace(b, shares=shares))[1]

    p_values = np.array([p() for _ in range(300)])
    assert np.mean(p_values < 0.05) < 0.08
    # Control: taken as if a p of 0.15 were 0.05, it would err too often.
    assert np.mean(p_values < 0.15) > 0.08


def test_sides_with_the_same_seeds_are_compared_in_pairs():
    """Seeds that are hard for both sides alike do not hide who is sooner, nor who is right more often."""
    slow = replace(one(ATTENTION, (0.995,) * 5), reached=[200, 400, 600, 800, 1000], last=1000)
    fast = replace(slow, side=BIAS_1, reached=[50, 250, 450, 650, 850])
    assert f"{spoken(BIAS_1)} is ahead of {ATTENTION}" in verdict(slow, fast)
    assert "5 seeds, paired, n = 2,000" in verdict(slow, fast)
    high, low = one(ATTENTION, (0.9, 0.7, 0.5, 0.3)), one(BIAS_1, (0.8, 0.6, 0.4, 0.2))
    assert "10.0 points more right" in verdict(high, low)
    # Controls: with other seeds the spread between them counts; pairs that agree have the error of a look.
    for a, b in ((slow, fast), (high, low)):
        other = replace(b, seed_numbers=[10 + number for number in b.seed_numbers])
        assert verdict(a, other).startswith("No clear difference")
    near = replace(slow, side=BIAS_1, reached=[200, 400, 600, 800, 1000], every=400)
    assert verdict(slow, near).startswith("No clear difference")


def test_one_seed_gives_no_verdict():
    assert "no verdict" in verdict(one(ATTENTION, (0.99,)), one(BIAS_1, (0.3,)))


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.98, 1.0])
def test_a_capped_run_is_said_to_be_capped(name, share):
    text = " ".join(said(name, tables(name, dict.fromkeys(sides(name), (share,) * 3))).values())
    assert ("not within" in text or f"within {CAP} updates" in text) == (share < 0.99)
    assert not words.faults(text)
    # Control: what the checker is there for.
    assert words.faults("The LSTM cannot bind.")


def test_the_best_rate_of_each_side_is_told_with_the_spread():
    rows = looks(BIAS_1, (0.2,) * 3, rate=1e-3) + looks(BIAS_1, (0.8,) * 3, rate=1e-2)
    text = " ".join(said("binding", {"curves": [row | LABELS["binding"] for row in rows]}).values())
    assert "rate 0.01) did not reach" in text
    assert "20.0% at 0.001, 80.0% at 0.01" in text
    assert best(outcomes(pl.DataFrame(rows))[BIAS_1]).rate == 1e-2


def test_among_rates_that_arrive_the_sooner_is_best():
    rows = looks(BIAS_1, (1.0,) * 3, rate=1e-3) + looks(BIAS_1, (0.992,) * 3, rate=1e-2, arrive=100)
    assert best(outcomes(pl.DataFrame(rows))[BIAS_1]).rate == 1e-2


@pytest.mark.parametrize(
    ("share", "where"), [(0.295, "on it in 3"), (0.6, "above the value-set line of 0.295 in 3")]
)
def test_a_side_is_placed_against_the_value_set_line(share, where):
    text = said("binding", tables("binding", {ATTENTION: (1.0,) * 3, BIAS_1: (share,) * 3}))["line-1"]
    assert where in text
    assert ("knowing the values but not the pairing" in text) == (share < 0.3)


def test_chance_is_told_apart_from_what_is_not_chance():
    for share, near in ((0.038, 3), (0.2, 0)):
        text = said("first-letter", tables("first-letter", {DEFAULT: (share,) * 3}))["chance"]
        assert f"in {near} of 3 seeds" in text


def reach_rows(levels):
    named = {"seeds": 5, "n": 32}
    return {
        "reach": [
            {"side": side, "k": k, "value": 10 ** (level * k), "low": 10 ** (level * k - 0.1)}
            | {"high": 10 ** (level * k + 0.1), "log10": level * k, "log10_se": 0.03, **named}
            for side, level in levels.items()
            for k in range(128)
        ]
    }


def test_reach_says_who_reaches_farther():
    far, near = (
        said("reach", reach_rows({BIAS_3: -0.01, DEFAULT: -0.2})),
        said("reach", reach_rows({BIAS_3: -0.2, DEFAULT: -0.01})),
    )
    assert far["verdict"].startswith("LSTM told to remember reaches farther than default LSTM: 3.6 orders")
    assert near["verdict"].startswith("default LSTM reaches farther than LSTM told to remember: 3.6 orders")
    assert said("reach", reach_rows({BIAS_3: -0.1, DEFAULT: -0.1}))["verdict"].startswith("No clear")


def test_the_guess_of_what_survives_is_answered_first_and_then_attention_which_is_flat_and_low():
    panel = panels.panel("reach")
    for level, left in ((-4.3 / 19, "one part in 20,000"), (-0.001, "96%")):
        measured = reach_rows({TANH: -0.3, DEFAULT: level, BIAS_3: -0.01, BLOCK: -0.001})
        aloud = [one for one in panel.sentences(panel.settings(), measured) if one.short]
        assert [one.key for one in aloud[:3]] == ["side-1", "flat", "verdict"]
        assert aloud[1].short == "Attention hears every distance alike, and none of them loudly."
        assert aloud[0].short == f"Of the default LSTM's signal {left} survives."


def test_the_chart_of_blame_has_the_sides_of_its_drawing_by_their_names():
    panel, measured = (
        panels.panel("reach"),
        reach_rows({TANH: -0.3, DEFAULT: -0.2, BIAS_3: -0.01, BLOCK: -0.1}),
    )
    (figure,) = panel.tell.figures(panel.settings(), measured)
    names = [drawn["name"] for drawn in arrays(measured)]
    assert names == ["default LSTM", "LSTM told to remember", "attention"]
    assert set(figure.table["side"]) == set(names)
    written = set(re.findall(r">([^<>]+)</text>", render(figure).svg))
    assert {*names, "Share of the signal that is left (log scale)"} <= written
    assert not {BIAS_3, DEFAULT, TANH} & written


@pytest.mark.parametrize("name", ["reach", *TESTS])
def test_a_side_has_one_name_everywhere_and_the_key_says_what_an_lstm_starts_with(name):
    panel, held = panels.panel(name), page.recordings(panels.PANELS, None)[name]
    settings = panel.settings_from(held.settings)
    text = " ".join([*(one.text + one.short for one in held.sentences), *panel.lines(settings, held.tables)])
    sides = {row["side"] for row in held.tables["reach" if name == "reach" else "curves"]}
    recorded = {side for side in (DEFAULT, BIAS_1, BIAS_3, CHRONO) if side in sides}
    assert recorded, "control: the tables have them by other names"
    assert not [side for side in recorded if side in text]
    starts = {DEFAULT: "default", BIAS_1: "nudged", BIAS_3: "told to remember", CHRONO: "many clocks"}
    drawn = recorded & set(DRAWN) if name == "reach" else recorded
    assert all(starts[side] in spoken(side) and starts[side] in panel.key for side in drawn)
    assert panel.key in panel.lines(settings, held.tables), "in the terminal too"
    assert len(panel.key.split()) <= 16, "two lines under a picture"
    aloud = " ".join(one.short for one in held.sentences)
    assert "LSTM" in aloud
    assert "LSTM" not in re.sub("|".join(map(spoken, LSTMS)), "", aloud), "which one is never left open"


def test_the_keys_numbers_are_those_of_the_gates():
    gates = [1 / (1 + math.exp(-bias)) for bias in (0, 1, 3)]
    half, nudged, told_to = (f"{100 * gate:.0f}%" for gate in gates)
    assert half == "50%"
    assert all(nudged in panels.panel(name).key for name in TESTS)
    assert f"told to remember {told_to}" in panels.panel("first-letter").key
    assert f"told to remember {told_to}" in panels.panel("reach").key


def test_flat_is_said_of_what_is_flat():
    assert " is flat from" in said("reach", reach_rows({BLOCK: -0.001}))["flat"]
    assert " is not flat from" in said("reach", reach_rows({BLOCK: -0.1}))["flat"]


@pytest.mark.parametrize("name", TESTS)
def test_figures_are_drawn_from_partial_tables_too(name):
    panel = panels.panel(name)
    draw = panel.tell.figures
    whole = tables(name, dict.fromkeys(sides(name), (0.995, 0.6, 0.3)))
    start = {"curves": [row for row in whole["curves"] if row["update"] == 0]}
    some = {"curves": [row for row in whole["curves"] if row["side"] == ATTENTION and row["seed"] == 0]}
    assert draw(panel.settings(), {}) == draw(panel.settings(), start) == []
    for measured in (some, whole):
        (figure,) = draw(panel.settings(), measured)
        written = re.findall(r">([^<>]+)</text>", render(figure).svg)
        assert {spoken(side) for side in figure.table["side"]} <= set(written), "as the sentences call them"
        assert {"low", "high", "n", "seed"} <= set(figure.table.columns)
    assert panel.lines(panel.settings(), whole)


def test_more_than_one_cell_is_swept():
    rows = tables("first-letter", dict.fromkeys(sides("first-letter"), (0.995, 0.6)))["curves"]
    both = {"curves": rows + [row | {"length": 48} for row in rows]}
    panel = panels.panel("first-letter")
    names = [figure.name for figure in panel.tell.figures(panel.settings(), both)]
    assert names == ["first-letter", "first-letter-sweep"]
    keys = [sentence.key for sentence in panel.tell.sentences(panel.settings(), both)]
    assert len(keys) == len(set(keys))


def test_reach_is_drawn():
    panel = panels.panel("reach")
    (figure,) = panel.tell.figures(panel.settings(), reach_rows({BIAS_3: -0.01, DEFAULT: -0.2}))
    assert "</svg>" in render(figure).svg
    assert panel.tell.figures(panel.settings(), {}) == []


def test_what_is_said_of_reach_turns_round_with_the_numbers():
    row = {"k": 19, "log10_se": 0.05, "n": 64, "seeds": 4}
    far, near = row | {"log10": -0.5}, row | {"log10": -4.2}
    for one, other, name in ((far, near, "LSTM told to remember"), (near, far, "default LSTM")):
        sentence = orders(one | {"side": BIAS_3}, other | {"side": DEFAULT})
        assert sentence.short == f"The {name} passes 5,000 times more of the signal on."
