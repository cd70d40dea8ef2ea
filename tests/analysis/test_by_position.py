from dataclasses import replace

import numpy as np
import pytest
import story

from isoloss.analysis import by_position
from isoloss.analysis import contexts as context_laws
from isoloss.analysis.positions import bin_means, edges
from isoloss.errors import Refusal
from isoloss.laws import Fit, Plateau


@pytest.fixture(scope="module")
def contexts(ahead):
    return context_laws.measure(ahead)


@pytest.fixture(scope="module")
def positions(ahead):
    return by_position.measure(ahead)


def test_pairs_are_the_nearest_sizes_from_smallest_to_largest(positions):
    params = [pair.transformer.profile.params for pair in positions.pairs]
    assert params == [9600, 98304, 960000]
    assert all(0.5 <= pair.ratio <= 2 for pair in positions.pairs)
    assert positions.pairs[-1].lstm.profile.params == 930240


def test_the_lstm_stops_where_its_truth_does_and_the_transformer_does_not(positions):
    for pair in positions.pairs:
        # The truth is flat after token 24, which lies in the octave from 16 to 31.
        assert pair.lstm.stop.outcome is Plateau.STOPS
        assert pair.lstm.stop.index == 16
        assert pair.transformer.stop.outcome is Plateau.IMPROVING


def test_an_lstm_without_a_plateau_is_not_said_to_stop(told):
    law = replace(story.LSTM_AHEAD.lstm, p=0.5, plateau=story.CONTEXT)
    data = by_position.measure(told(replace(story.FEW, lstm=law)))
    assert all(pair.lstm.stop.outcome is Plateau.IMPROVING for pair in data.pairs)


def test_differences_early_and_late_hold_the_truth(positions):
    told, pair = story.LSTM_AHEAD, positions.pairs[-1]
    apart_T = told.transformer.profile() - told.lstm.profile()
    early, late = apart_T[: by_position.EARLY].mean(), apart_T[story.CONTEXT // 2 :].mean()
    low, high = pair.widening.interval
    assert low < late - early < high
    assert pair.widening.sign == -1
    assert "the Transformer gains more from context" in by_position.verdict(positions)


def test_the_verdict_turns_with_the_story(told):
    """The families' context profiles exchanged: now the LSTM gains more."""
    ours, theirs = story.LSTM_AHEAD.transformer, story.LSTM_AHEAD.lstm
    swapped = replace(
        story.FEW,
        transformer=replace(ours, b=theirs.b, p=theirs.p, plateau=theirs.plateau),
        lstm=replace(theirs, b=ours.b, p=ours.p, plateau=ours.plateau),
    )
    data = by_position.measure(told(swapped))
    assert "the LSTM gains more from context" in by_position.verdict(data)


def test_one_seed_gives_no_verdict_by_position(told):
    data = by_position.measure(told(replace(story.FEW, seeds=1)))
    assert by_position.verdict(data).startswith("no verdict")
    assert data.pairs[0].gaps[1].interval is None


def test_sizes_too_far_apart_are_no_pair(told):
    far = replace(
        story.LSTM_AHEAD, lstm_widths=((1, (600, 700)),), transformer_widths=(20, 30), hostile=False
    )
    with pytest.raises(Refusal, match="within a factor 2"):
        by_position.measure(told(far))


def test_bins_cover_every_position_once():
    for context in (5, 16, 17, 128, 1024):
        covered = [t for first, last in edges(context) for t in range(first, last + 1)]
        assert covered == list(range(1, context + 1))


def test_bins_are_means_of_tokens(positions):
    profile = positions.pairs[0].lstm.profile
    bins = bin_means(profile)
    weights = (bins["last"] - bins["first"] + 1).to_numpy()
    whole = (profile.sum_ST.sum(axis=1) / profile.count_ST.sum(axis=1)).mean()
    assert np.average(bins["loss"], weights=weights) == pytest.approx(whole, abs=1e-12)


def test_the_gap_table_has_each_fixed_position(positions):
    table = by_position.gaps_table(positions)
    assert table["position"].unique().sort().to_list() == [1, 2, 4, 8, 16, 64, 128]
    assert table.null_count().sum_horizontal().item() == 0


def test_context_laws_recover_the_exponent_and_the_mean(contexts):
    assert len(contexts.sizes) == 5
    for size in contexts.sizes:
        # Text noise, the same in every run of the story, moves all exponents together.
        assert size.law.params["p"] == pytest.approx(story.LSTM_AHEAD.transformer.p, abs=0.08)
        assert size.implied_mean == pytest.approx(size.measured_mean, abs=0.01)


def test_exponents_are_called_apart_only_if_their_intervals_are(contexts):
    first = next(s.law for s in contexts.sizes if isinstance(s.law, Fit))
    moved = replace(first, intervals=first.intervals | {"p": (5.0, 6.0)})
    assert context_laws.exponents_apart(first, moved) is True
    assert context_laws.exponents_apart(first, first) is False
    assert (
        context_laws.exponents_apart(first, replace(first, intervals=first.intervals | {"p": None})) is None
    )
