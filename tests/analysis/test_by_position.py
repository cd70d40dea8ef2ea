from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import spec
import story

from isoloss.analysis import by_params, by_position
from isoloss.analysis.by_position import Use, use_of
from isoloss.analysis.points import means
from isoloss.analysis.sliding import SlidingProfile, octaves
from isoloss.figures import loss_by_position


def positions_of(told, one):
    """Transformers against LSTMs."""
    (family_positions,) = by_position.measure(told(one)).pairs.values()
    return family_positions


@pytest.fixture(scope="module")
def positions(told):
    return positions_of(told, story.FEW)


def test_pairs_are_matched_sizes_of_the_best_depth_from_smallest_to_largest(told):
    family_positions = positions_of(told, story.LSTM_AHEAD)
    params = [pair.reference.params for pair in family_positions.pairs]
    assert params == sorted(params)
    assert all(1 / 1.1 <= pair.ratio <= 1.1 for pair in family_positions.pairs)
    lstms = means(by_params.measure(told(story.LSTM_AHEAD)).points.filter(family="lstm"))
    compared = 0
    for pair in family_positions.pairs:
        near = pl.col("params").is_between(pair.reference.params / 1.1, pair.reference.params * 1.1)
        alike = lstms.filter(near)
        compared += alike.height > 1
        assert alike.sort("loss")["curve"][0] == pair.rival.curve
    assert compared


def test_a_curve_of_another_context_is_no_rival(told):
    """The rival's other curve, trained at a shorter context, neither joins nor forbids the comparison."""
    study = told(story.LSTM_AHEAD)
    by_size = by_params.measure(study)
    (versus,) = by_size.pairs
    short = by_size.points.filter(family="lstm").with_columns(
        context=pl.lit(8), curve=pl.lit("1-layer LSTM, context 8"), loss=pl.col("loss") - 1
    )
    with_short = replace(by_size, points=pl.concat([by_size.points, short], how="vertical_relaxed"))
    family_positions = by_position.of_families(study, with_short, versus)
    alone = by_position.of_families(study, by_size, versus)
    assert family_positions.context == alone.context > 8
    assert [pair.rival.name for pair in family_positions.pairs] == [pair.rival.name for pair in alone.pairs]


def test_without_matched_sizes_the_nearest_counts_not_the_largest():
    theirs = pl.DataFrame({"curve": ["near", "far"], "params": [130, 190], "loss": [3.0, 2.0]})
    assert by_position.like(100, theirs, 2.0) == ("near", 130)
    assert by_position.like(100, theirs, 1.1) is None
    assert by_position.like(180, theirs, 1.1) == ("far", 190)


def test_the_lstm_is_flat_where_its_truth_is_and_the_transformer_is_not(positions):
    for pair in positions.pairs:
        # The truth is flat after token 24: the octave 33-64 is the last that gains on the one before.
        assert by_position.flat_by(pair.rival) == 64
        assert pair.reference.context_use.use is Use.GAINS


def test_an_lstm_without_a_plateau_is_not_said_to_be_flat(told):
    law = replace(story.FEW.lstm, p=0.5, plateau=story.CONTEXT)
    for pair in positions_of(told, replace(story.FEW, lstm=law)).pairs:
        assert pair.rival.context_use.use is Use.GAINS


def true_change(one):
    """Of the Transformer's loss minus the LSTM's, from tokens 9-16 to the last octave."""
    apart_T = one.transformer.profile() - one.lstm.profile()
    return apart_T[64:].mean() - apart_T[8:16].mean()


def test_the_change_of_the_difference_holds_the_truth(positions):
    change = positions.pairs[-1].change
    # Every position is learned to its own degree: the truth is known to a few percent.
    assert change.value == pytest.approx(true_change(story.FEW), rel=0.1)
    assert "the Transformer gains" in by_position.verdict(positions)
    assert positions.over == "seeds"


def test_the_verdict_turns_with_the_story(told):
    """The families' context profiles exchanged: now the LSTM gains more."""
    ours, theirs = story.FEW.transformer, story.FEW.lstm
    turned = replace(
        story.FEW,
        transformer=replace(ours, b=theirs.b, p=theirs.p, plateau=theirs.plateau),
        lstm=replace(theirs, b=ours.b, p=ours.p, plateau=ours.plateau),
    )
    family_positions = positions_of(told, turned)
    assert "the LSTM gains" in by_position.verdict(family_positions)
    assert family_positions.pairs[-1].change.sign == 1


def test_families_that_use_context_alike_are_not_told_apart(told):
    law = replace(story.FEW.transformer, at_10k=story.FEW.lstm.at_10k, a=story.FEW.lstm.a)
    assert "this cannot tell" in by_position.verdict(positions_of(told, replace(story.FEW, lstm=law)))


def test_one_seed_has_intervals_over_text(told):
    family_positions = positions_of(told, replace(story.FEW, seeds=1))
    assert family_positions.over.startswith("blocks of text")
    assert family_positions.pairs[-1].change.df == 15
    assert "the Transformer gains" in by_position.verdict(family_positions)


def test_plain_windows_are_refused_with_the_way_to_a_verdict(told):
    (refused,) = by_position.measure(told(replace(story.FEW, slides=False))).pairs.values()
    assert "same tokens at every position" in refused.what
    assert "targets" in refused.mend


def test_sizes_too_far_apart_are_no_pair(told):
    far = replace(
        story.LSTM_AHEAD, lstm_widths=((1, (600, 700)),), transformer_widths=(20, 30), hostile=False
    )
    (refused,) = by_position.measure(told(far)).pairs.values()
    assert "within a factor 2" in refused.what


def test_every_change_is_drawn_and_in_the_table(positions):
    table = by_position.gaps_table(positions)
    assert table.height == sum(len(pair.changes) for pair in positions.pairs)
    assert table.null_count().sum_horizontal().item() == 0
    drawn = loss_by_position.figure(positions)
    later = [
        row["change"] for row in spec.rows(drawn, spec.of_mark(drawn, "point")[-1]) if row["low"] is not None
    ]
    wanted = table.filter(table["from_token"] > by_position.START)["change"]
    assert sorted(later) == pytest.approx(sorted(wanted))


OCTAVES = octaves(128)


def run_of(draw, gains_O, blocks=16, noise=0.004):
    """One run whose octaves fall by these gains, with noise a block of text."""
    first_G, last_G = (np.array(ends) for ends in zip(*OCTAVES, strict=True))
    loss_OB = 4 - np.cumsum(gains_O)[:, None] + draw.normal(0, noise, (len(OCTAVES), blocks))
    return SlidingProfile("some", 1000, 128, 0, "id", 1, first_G, last_G, loss_OB)


@pytest.mark.parametrize(("late", "expected"), [(0.0, Use.FLAT), (0.02, Use.GAINS)])
def test_flat_and_gaining_are_called_so_as_often_as_stated(late, expected):
    draw = np.random.default_rng(1)
    gains_O = [0, 0.5, 0.2, 0.1, 0.05, late, late, late]
    called = [use_of([run_of(draw, gains_O)], OCTAVES).use for _ in range(400)]
    assert called.count(expected) >= 380
    wrong = Use.GAINS if expected is Use.FLAT else Use.FLAT
    assert called.count(wrong) <= 20


def test_noise_hides_whether_a_model_is_flat():
    draw = np.random.default_rng(2)
    gains_O = [0, 0.5, 0.2, 0.1, 0.05, 0, 0, 0]
    called = [use_of([run_of(draw, gains_O, noise=0.1)], OCTAVES).use for _ in range(50)]
    assert called.count(Use.UNSURE) >= 40


def test_equal_families_are_told_apart_as_rarely_as_stated():
    """Two seeds at three sizes whose runs differ in what they gain: pooled over sizes."""
    draw = np.random.default_rng(5)
    sizes = [(("ours", n), ("theirs", n)) for n in (1, 2, 3)]
    wrong = 0
    for _ in range(500):
        values = {two: draw.normal(0, 0.01, (2, 1)) + draw.normal(0, 0.002, (2, 16)) for two in sizes}
        wrong += by_position.interval_of(values, sizes[-1]).decided
    # 25 are expected; more than 40 has a chance of one in 500.
    assert wrong <= 40
