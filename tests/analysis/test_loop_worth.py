"""phi from runs of equal depth: planted below 0, at 0, between and at 1, with its stated error rate."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
import story

from isoloss.analysis import loop_worth, loops
from isoloss.analysis.answers import loops as finding
from isoloss.errors import Refusal

DEEP = replace(
    story.FEW,
    transformer_widths=(),
    lstm_widths=(),
    looped_widths=(24, 40, 64),
    loops=(1, 2, 4),
    depth_widths=(24, 36, 52, 80),
)


def points(phi, rng, widths=(24, 36, 52, 80), loops=(1, 2, 4), **law):
    """Cooled points at three D; the noise of a run is shared by its D, as in training."""
    law, rows = story.DepthLaw(phi=phi, **law), []
    for width, r in product(widths, loops):
        once, recurrent = story.halves({"n_layer": 4 // r, "d_model": width, "recurrence": r})
        run = rng.normal(0, 0.006)
        for tokens in story.D_POINTS:
            loss = law.loss(once, recurrent, r, tokens) + run + rng.normal(0, 0.002)
            rows.append((width, r, once + recurrent, once + r * recurrent, tokens, loss))
    names = ["d_model", "recurrence", "params", "params_executed", "tokens", "loss"]
    return pl.DataFrame(rows, schema=names, orient="row")


FEWER, NOTHING, MORE = r"worth \d+% fewer param", "not shown to be worth any", r"worth \d+% more param"
WORTH = {-0.5: FEWER, 0.0: NOTHING, 0.5: MORE, 1.0: MORE}
"""What is to be said of a planted phi."""


@pytest.fixture(scope="module")
def drawn():
    """100 studies of each planted phi, 0.04 s each."""
    rng = np.random.default_rng(3)
    return {phi: [loop_worth.worth_of(points(phi, rng)) for _ in range(100)] for phi in WORTH}


def held(drawn, width=1.0):
    """How many intervals, so many times as wide, hold the planted phi."""
    intervals = [(phi - data.phi.value, data.phi) for phi, worths in drawn.items() for data in worths]
    return sum(width * (i.low - i.value) < error < width * (i.high - i.value) for error, i in intervals)


def test_a_planted_phi_lies_in_its_interval_as_often_as_it_says(drawn):
    """380 of 400, with a standard deviation of 4.4; a coverage of 90% would have 371 once in 25 times."""
    assert held(drawn) >= 371
    assert held(drawn, 0.7) < 371, "control: intervals that are too narrow"


@pytest.mark.parametrize(("phi", "words"), WORTH.items())
def test_verdict_and_sentence_are_wrong_no_more_often_than_they_say(drawn, phi, words):
    worths = drawn[phi]
    right = sum(bool(re.search(words, loop_worth.worth_words(data))) for data in worths)
    decided = [np.sign(data.phi.value) for data in worths if data.phi.decided]
    if phi:
        assert decided == [np.sign(phi)] * 100
        assert right == 100
    else:
        assert len(decided) <= 9  # 5 of 100, with a standard deviation of 2.2
        assert right == 100 - len(decided)


@pytest.mark.parametrize("phi", [-0.5, 0.5])
def test_without_a_floor_that_is_told_apart_from_0_phi_is_still_known(phi):
    rng = np.random.default_rng(7)
    worths = [loop_worth.worth_of(points(phi, rng, E=1e-9, A=9.0, alpha=0.08)) for _ in range(20)]
    floorless = [data for data in worths if not data.floor]
    assert len(floorless) > 5
    held = sum(data.phi.low < phi < data.phi.high for data in floorless)
    assert held >= 0.8 * len(floorless)
    assert all(data.phi.sign == np.sign(phi) for data in floorless)
    words = loop_worth.doubts_words(floorless[0])
    assert words.startswith("A floor E is not told apart from 0, so that the law has none. ")
    with_floor = loop_worth.worth_of(points(phi, rng))
    assert with_floor.floor
    assert loop_worth.doubts_words(with_floor).startswith("That law misses its own runs by 0.0")


def test_a_law_that_misses_its_runs_by_more_than_seeds_can_is_refused():
    rng = np.random.default_rng(5)
    two = pl.concat([points(0.5, rng), points(0.5, rng)])
    assert loop_worth.worth_of(two).phi.sign == 1
    # The first D of every run lies off by ten times the seeds' noise, as early tokens do.
    off = 0.1 * (pl.col("tokens") == story.D_POINTS[0]) * (1 + pl.col("d_model") % 3)
    with pytest.raises(Refusal, match=r"misses its runs by 0\.\d+ nats, .* times what seeds differ by"):
        loop_worth.worth_of(two.with_columns(pl.col("loss") + off))


def test_worth_and_cost_are_shares_of_the_model():
    """Twice four layers of six cost two thirds more; at phi 1 they are worth it all, at 0 nothing."""
    data = loop_worth.worth_of(points(1.0, np.random.default_rng(1)))
    once, recurrent = story.halves({"n_layer": 2, "d_model": 24, "recurrence": 2})
    assert data.loops == 2
    assert data.cost == pytest.approx(recurrent / (once + recurrent))
    assert data.worth.value == pytest.approx(data.cost * (2**data.phi.value - 1), rel=1e-9)
    assert data.worth.low < data.cost < data.worth.high
    assert loop_worth.worth_of(points(0.0, np.random.default_rng(1))).worth.value == pytest.approx(
        0, abs=0.06
    )


def test_one_number_of_loops_does_not_tell():
    with pytest.raises(Refusal, match="the number of loops takes"):
        loop_worth.worth_of(points(0.5, np.random.default_rng(2), loops=(1,)))


@pytest.mark.parametrize(
    ("phi", "words"),
    [(0.6, MORE), (0.0, NOTHING), (-0.6, FEWER)],
)
def test_records_give_the_sentence(told, phi, words):
    data = loops.measure(told(replace(DEEP, depth=story.DepthLaw(phi=phi))))
    sentence = loop_worth.worth_words(data.worth)
    assert re.search(words, sentence), sentence
    assert sentence.endswith("costs 52% more compute")
    answer, _, caveats = finding(data)
    assert sentence[1:] in answer
    assert any(loop_worth.phi_words(data.worth) in caveat for caveat in caveats)


def test_runs_of_equal_depth_stay_out_of_the_grid(told):
    data = loops.measure(told(DEEP))
    assert set(data.points["d_model"]) == {24, 40, 64}
    assert set(data.worth.points["d_model"]) == {24, 36, 52, 80}
    assert data.worth.points["recurrence"].n_unique() == 3


def test_without_runs_of_equal_depth_it_is_said(ahead):
    data = loops.measure(ahead)
    assert isinstance(data.worth, Refusal)
    answer, _, caveats = finding(data)
    assert "worth" not in answer
    assert any("Loops at equal depth: " in caveat for caveat in caveats)
    assert any("no loops were trained beside layers of their own" in caveat for caveat in caveats)


def test_a_study_of_equal_depth_alone_has_its_worth(told):
    data = loops.measure(told(replace(DEEP, loops=())))
    assert data.worth.phi.decided
    assert "no size was trained both" in loops.loops_verdict(data)
