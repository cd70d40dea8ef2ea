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


def points(phi, rng, widths=(24, 36, 52, 80), loops=(1, 2, 4)):
    """Cooled points at three D; the noise of a run is shared by its D, as in training."""
    law, rows = story.DepthLaw(phi=phi), []
    for width, r in product(widths, loops):
        once, recurrent = story.halves({"n_layer": 4 // r, "d_model": width, "recurrence": r})
        run = rng.normal(0, 0.006)
        for tokens in story.D_POINTS:
            loss = law.loss(once, recurrent, r, tokens) + run + rng.normal(0, 0.002)
            rows.append((width, r, once + recurrent, once + r * recurrent, tokens, loss))
    names = ["d_model", "recurrence", "params", "params_executed", "tokens", "loss"]
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 1.0])
def test_a_planted_phi_lies_in_its_interval(phi):
    rng = np.random.default_rng(3)
    found = [loop_worth.worth_of(points(phi, rng)) for _ in range(30)]
    assert sum(data.phi.low < phi < data.phi.high for data in found) >= 26
    decided = [np.sign(data.phi.value) for data in found if data.phi.decided]
    if phi == 0:
        assert len(decided) <= 4  # 5% of 30 is 1.5
    else:
        assert decided == [np.sign(phi)] * 30


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
    [(0.6, r"worth \d+% more param"), (0.0, "not shown to be worth any"), (-0.6, r"worth \d+% fewer param")],
)
def test_records_give_the_sentence(told, phi, words):
    data = loops.measure(told(replace(DEEP, depth=story.DepthLaw(phi=phi))))
    sentence = loop_worth.worth_words(data.worth)
    assert re.search(words, sentence), sentence
    assert sentence.endswith("costs 52% more compute")
    said, _, caveats = finding(data)
    assert sentence[1:] in said
    assert any(loop_worth.phi_words(data.worth) in caveat for caveat in caveats)


def test_runs_of_equal_depth_stay_out_of_the_grid(told):
    data = loops.measure(told(DEEP))
    assert set(data.points["d_model"]) == {24, 40, 64}
    assert set(data.worth.points["d_model"]) == {24, 36, 52, 80}
    assert data.worth.points["recurrence"].n_unique() == 3


def test_without_runs_of_equal_depth_it_is_said(ahead):
    data = loops.measure(ahead)
    assert isinstance(data.worth, Refusal)
    said, _, caveats = finding(data)
    assert "worth" not in said
    assert any("Loops at equal depth: " in caveat for caveat in caveats)
    assert any("no loops were trained beside layers of their own" in caveat for caveat in caveats)


def test_a_study_of_equal_depth_alone_has_its_worth(told):
    data = loops.measure(told(replace(DEEP, loops=())))
    assert data.worth.phi.decided
    assert "no size was trained both" in loops.loops_verdict(data)
