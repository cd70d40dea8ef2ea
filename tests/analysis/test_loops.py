from dataclasses import replace

import polars as pl
import pytest
import story

from isoloss.analysis import loops
from isoloss.errors import Refusal

LOOPS = story.LSTM_AHEAD.looped
LOOPED = replace(story.FEW, transformer_widths=(), lstm_widths=(), loops=(1, 2, 4))


@pytest.fixture(scope="module")
def data(ahead):
    return loops.measure(ahead)


@pytest.fixture(scope="module")
def wide(told):
    """Five sizes and five T_m: enough to leave a whole row or column out."""
    many = replace(LOOPED, looped_widths=(16, 32, 64, 128, 256), loops=(1, 2, 3, 4, 8), seeds=1)
    return loops.measure(told(many))


def test_one_law_recovers_the_truth(wide):
    law = wide.fits["total"]
    assert law.params["alpha"] == pytest.approx(LOOPS.alpha, rel=0.1)
    assert law.params["gamma"] == pytest.approx(LOOPS.gamma, rel=0.15)
    assert law.params["C"] == pytest.approx(LOOPS.C, rel=0.1)


def test_points_left_out_are_predicted_better_than_by_their_neighbour(wide):
    assert [found.refusal for found in wide.held_out] == [None] * 4
    for found in wide.held_out:
        assert found.error < 0.01, found.what
        assert found.error < found.baseline, found.what


def test_a_law_that_does_not_hold_is_found_out_by_the_points_left_out(wide):
    """Negative control: the deepest loops made worse, which no additive falling law can say."""
    points = loops.late(wide.curves)
    bent = points.with_columns(
        pl.when(pl.col("recurrence") == 8).then(pl.col("total") + 0.5).otherwise("total").alias("total")
    )
    found = {one.what: one for one in loops.validate(bent)}["largest T_m, all N"]
    assert found.error > found.baseline * 0.8
    assert found.error > 0.05


def test_two_values_left_refuse_and_say_so(data):
    by_name = {found.what: found for found in data.held_out}
    assert "only 2 value" in by_name["largest T_m, all N"].refusal.what
    assert "only 2 value" in loops.held_out_table(data)["refused"][1]
    assert by_name["largest N at largest T_m only"].error < 0.02


def test_the_early_drop_is_left_out_of_the_fit(data):
    late = loops.late(data.curves)
    assert late["tokens"].min() > loops.LATE * story.D_POINTS[-1] * 0.95
    assert late.height < data.curves.height


def test_gains_hold_the_truth(data):
    gap = LOOPS.C * (4**-LOOPS.gamma - 1)
    for gain in data.gains:
        # The two seeds' own noise moves a difference; its interval is made for that.
        assert gain.total.interval[0] - 0.01 < gap < gain.total.interval[1] + 0.01
        assert gain.bonus == pytest.approx(LOOPS.entropy_weight * 0.9 * 1.3863, rel=1e-3)
        assert gain.cap == pytest.approx(LOOPS.entropy_weight * 1.3863, rel=1e-3)
        assert gain.last_exit.sign == -1


def test_the_weight_of_the_entropy_is_recovered_from_records(data):
    assert data.beta == pytest.approx(LOOPS.entropy_weight, rel=1e-9)


def test_total_expected_and_last_exit_stand_apart(data):
    last = data.curves.filter(pl.col("recurrence") == 4)
    assert (last["expected"] - last["total"]).mean() == pytest.approx(0.1 * 0.9 * 1.3863, abs=1e-6)
    assert (last["expected"] - last["last_exit"]).mean() == pytest.approx(0.12, abs=1e-6)
    one = data.curves.filter(pl.col("recurrence") == 1)
    assert one["total"].equals(one["expected"])


def test_one_seed_says_nothing_about_what_loops_buy(wide):
    verdict = loops.loops_verdict(wide)
    assert verdict.startswith("no verdict")
    assert "lowers" not in verdict


def test_loops_that_buy_nothing_are_not_said_to(told):
    """The story's last exits are better than the mean by a constant; noise of its size hides that."""
    flat = replace(
        story.LSTM_AHEAD, looped=replace(LOOPS, C=1e-6, entropy_weight=0.0), hostile=False, noise=0.2
    )
    data = loops.measure(told(flat))
    assert "does not clearly change" in loops.loops_verdict(data)


def test_a_study_without_loops_is_refused(told):
    with pytest.raises(Refusal, match="no finished looped run"):
        loops.measure(told(story.FEW))
