"""Differences against D: slopes and crossings planted, absent and of the other sign."""

from dataclasses import replace

import numpy as np
import pytest
import story

from isoloss.analysis import gap_by_tokens
from isoloss.analysis.by_params import moved, seed_gaps
from isoloss.analysis.straight_lines import fitted_lines, line_through, one_slope
from isoloss.errors import Refusal

EQUAL = replace(
    story.FEW,
    transformer=replace(story.FEW.lstm, b=3.2, p=0.6, plateau=story.CONTEXT),
    lstm_widths=((1, (34, 69, 110, 193, 346)),),
    wander=0.004,
)
"""Both families obey one law, at matched sizes."""


def true_slope(one):
    """Nats per doubling from the first D to the last, on average over sizes."""
    sizes, (first, *_, last) = [12 * 2 * width**2 for width in one.transformer_widths], story.D_POINTS
    gaps = [
        np.mean([one.transformer.loss(size, tokens) - one.lstm.loss(size, tokens) for size in sizes])
        for tokens in (first, last)
    ]
    return (gaps[1] - gaps[0]) / np.log2(last / first)


def pair(told, one):
    (found,) = gap_by_tokens.measure(told(one)).pairs.values()
    return found


def lagging(lag, at_10k):
    return replace(EQUAL, transformer=replace(EQUAL.transformer, lag=lag, at_10k=at_10k))


def test_a_lead_that_shrinks_and_its_end_inside_the_data_are_found(told):
    """The gap is about 0.05 nats at the first D, 0 at the second and -0.05 at the third."""
    ours = replace(EQUAL.transformer, lag=0.05)
    one = replace(EQUAL, transformer=ours, lstm=replace(EQUAL.lstm, at_10k=4.0 * 1.0125))
    found = pair(told, one)
    assert found.slope.low < true_slope(one) < found.slope.high
    assert "the LSTM's lead shrinks by" in gap_by_tokens.verdict(found)
    zeros = [size.zero for size in found.sizes if size.zero]
    assert zeros
    assert "it is gone at D = " in gap_by_tokens.crossing_words(found)


def test_a_lead_that_grows_has_no_end(told):
    found = pair(told, lagging(-0.05, 4.4))
    assert found.slope.low < true_slope(lagging(-0.05, 4.4)) < found.slope.high
    assert "the LSTM's lead grows by" in gap_by_tokens.verdict(found)
    assert gap_by_tokens.crossing_words(found) == ""


def test_the_reference_can_lead(told):
    found = pair(told, lagging(-0.05, 3.6))
    assert "the Transformer's lead shrinks by" in gap_by_tokens.verdict(found)
    assert "At no size is it gone" in gap_by_tokens.crossing_words(found)


def test_families_that_are_equal_show_no_change(told):
    assert gap_by_tokens.verdict(pair(told, EQUAL)).startswith("no change of Transformer minus LSTM")


def test_one_seed_has_lines_and_no_verdict(told):
    found = pair(told, replace(EQUAL, seeds=1))
    assert len(found.sizes) == 5
    assert found.slope.interval is None
    assert gap_by_tokens.verdict(found).startswith("no verdict")
    assert gap_by_tokens.crossing_words(found) == ""


def test_the_size_at_which_families_are_level_is_that_of_the_truth(told):
    crossing = replace(EQUAL, transformer=story.CROSSES_INSIDE.transformer)
    level = pair(told, crossing).level_at[story.D_POINTS[-1]]
    assert level.low < crossing.crossing < level.high


def simulated(draw, slope, seeds=3, sizes=4, places=(19.0, 20.0, 21.0, 22.0)):
    """Gaps 0.1 + slope (x - 19) with a random line and random points a run."""
    x_K = np.array(places)
    tilt_K = 0.01 * (x_K - 20.5)
    lines_S = [
        0.1 + slope * (x_K - 19) + draw.normal(0, 0.02, (seeds, 1)) + draw.normal(0, 1, (seeds, 1)) * tilt_K
        for _ in range(sizes)
    ]
    return [(x_K, y_SK + draw.normal(0, 0.003, y_SK.shape)) for y_SK in lines_S]


@pytest.mark.parametrize("slope", [0.0, -0.06, 0.06])
def test_slopes_and_zeros_are_held_by_their_intervals_as_often_as_stated(slope):
    draw = np.random.default_rng(3)
    missed_slope = missed_zero = called = told_apart = 0
    for _ in range(400):
        lines = fitted_lines(simulated(draw, slope))
        common = one_slope(lines)
        told_apart += common is None
        line = (common or lines)[0]
        change, zero = line.change(), line.zero()
        missed_slope += not change.low <= slope <= change.high
        called += change.decided
        if slope:
            missed_zero += zero is not None and not zero.low <= 19 - 0.1 / slope <= zero.high
    # 20 of 400 are expected; more than 33 has a chance of one in 500.
    assert missed_slope <= 33
    assert missed_zero <= 33
    assert told_apart <= 33
    assert called >= 390 if slope else called <= 33


def test_slopes_that_differ_are_told_apart():
    draw = np.random.default_rng(4)
    groups = [simulated(draw, slope, sizes=1)[0] for slope in (-0.1, -0.03, 0.03, 0.1)]
    assert one_slope(fitted_lines(groups)) is None


def test_a_line_through_means_has_the_zero_of_its_truth():
    line = line_through([1.0, 2.0, 3.0], [1.0, 0.0, -1.0], [0.01] * 3, 8)
    zero = line.zero()
    assert zero.value == pytest.approx(2.0)
    assert zero.low < 2 < zero.high
    assert line_through([1.0, 2.0, 3.0], [1.0, 1.1, 1.0], [0.01] * 3, 8).zero() is None


def test_a_size_between_two_is_read_on_the_line_between_them():
    losses = {100: {0: 3.0, 1: 3.2}, 400: {0: 2.0}}
    assert moved(losses, 200) == {0: pytest.approx(2.5), 1: pytest.approx(2.6)}
    assert moved({100: {0: 3.0}}, 105) == {0: 3.0}


def test_seeds_are_paired_where_they_are_shared_and_as_they_come_where_not():
    ours = {100: {0: 3.0, 1: 3.1, 2: 9.0}}
    assert seed_gaps(ours, {100: {0: 2.0, 1: 2.0}}) == {100: {0: 1.0, 1: pytest.approx(1.1)}}
    assert seed_gaps(ours, {100: {7: 2.0}}) == {100: {0: 1.0}}
    assert seed_gaps(ours, {300: {0: 2.0}}) == {}
    assert seed_gaps(ours, {}) == {}


def test_one_d_is_no_line(told):
    data = gap_by_tokens.measure(told(EQUAL))
    (versus,) = data.pairs
    with pytest.raises(Refusal, match="at two numbers of tokens"):
        gap_by_tokens.pair_of(data.each[:1], versus)
