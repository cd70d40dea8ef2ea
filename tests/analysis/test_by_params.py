from dataclasses import replace

import pytest
import story

from isoloss.analysis import by_params, params_words
from isoloss.analysis.size_ratio import size_ratios
from isoloss.errors import Refusal


def measured(study):
    """The comparison of Transformers and LSTMs."""
    (pair,) = by_params.measure(study).pairs.values()
    return pair


def true_gap(planted, params):
    tokens = story.D_POINTS[-1]
    return planted.transformer.loss(params, tokens) - planted.lstm.loss(params, tokens)


@pytest.mark.parametrize("told_story", [story.LSTM_AHEAD, story.CROSSES_INSIDE])
def test_gaps_hold_the_truth_and_verdicts_its_sign(told, told_story):
    data = measured(told(told_story))
    held = [
        g.difference.interval[0] <= true_gap(told_story, g.params) <= g.difference.interval[1]
        for g in data.gaps
    ]
    # 95% intervals that share their noise: one or two of thirteen may miss, all may not.
    assert len(held) == 13
    assert sum(held) >= 11
    assert all(g.difference.sign == (1 if true_gap(told_story, g.params) > 0 else -1) for g in data.gaps)


def test_a_rigged_story_is_caught(ahead, inside):
    """The same check with the other story's truth must fail."""
    data = measured(ahead)
    assert not all(
        g.difference.sign == (1 if true_gap(story.CROSSES_INSIDE, g.params) > 0 else -1) for g in data.gaps
    )


def test_a_crossover_inside_the_data_is_found_with_its_interval(inside):
    data = measured(inside)
    for curve, crossing in data.crossings.items():
        low, high = crossing.interval
        assert low < story.CROSSES_INSIDE.crossing < high, curve
        assert "cross inside the data" in params_words.crossover(crossing, data, curve)
        for ends in ((0.9 * crossing.overlap[0], high), (low, 1.1 * crossing.overlap[1]), (None, high)):
            edge = replace(crossing, interval=ends)
            assert "cross at the edge of the data" in params_words.crossover(edge, data, curve)


def test_a_crossover_outside_the_data_is_called_an_extrapolation(ahead):
    data = measured(ahead)
    for curve, crossing in data.crossings.items():
        assert "outside the data" in params_words.crossover(crossing, data, curve)


def test_one_seed_refuses_the_verdict(told):
    data = measured(told(replace(story.FEW, seeds=1)))
    verdict = params_words.verdict(data)
    assert verdict.startswith("no verdict")
    assert "ahead" not in verdict


def test_two_sizes_refuse_the_crossover(told):
    few = replace(story.FEW, transformer_widths=(64, 112))
    data = measured(told(few))
    assert all(isinstance(crossing, Refusal) for crossing in data.crossings.values())
    assert "refused" in params_words.crossover(data.crossings[data.rival], data, data.rival)


def test_size_ratios_hold_the_truth(inside):
    data = measured(inside)
    planted = story.CROSSES_INSIDE
    for ratio in size_ratios(data, "1-layer LSTM"):
        factor = 1 + 30 * data.tokens**-0.45
        theirs, ours = (
            1e4 * (ratio.loss / factor / law.at_10k) ** (-1 / law.a)
            for law in (planted.lstm, planted.transformer)
        )
        assert ratio.interval[0] < theirs / ours < ratio.interval[1]


def test_size_ratios_are_refused_where_no_loss_is_shared(told):
    law = replace(story.LSTM_AHEAD.transformer, at_10k=6.0)
    far = replace(story.FEW, transformer=law)
    with pytest.raises(Refusal, match="no loss is reached by both"):
        size_ratios(measured(told(far)), "1-layer LSTM")
