"""How Transformers use context: laws on the same targets at every position, and what is said of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import story

from isoloss.analysis import context_steps, contexts, sliding
from isoloss.analysis.context_misses import misses_words
from isoloss.analysis.context_steps import steps_verdict
from isoloss.analysis.contexts import law_sentence, law_verdict, sizes_verdict, slope_for_tenfold
from isoloss.analysis.findings import findings
from isoloss.analysis.points import cooled_points
from isoloss.analysis.sliding import SlidingProfile, octaves
from isoloss.errors import Refusal
from isoloss.laws import Fit

BLOCKS = 16
FIRST_G = np.r_[np.arange(1, 9), np.arange(9, 256, 4)]
LAST_G = np.r_[FIRST_G[1:] - 1, 256]
WIDE = replace(story.FEW, lstm_widths=())


def profile(params, loss_G, rng, *, text=0.3, own=0.02, context=256, seed=0):
    inside_G = context >= LAST_G
    noise_B = np.random.default_rng(1).normal(0, text, BLOCKS)
    loss_GB = loss_G[inside_G, None] + noise_B + rng.normal(0, own, (inside_G.sum(), BLOCKS))
    ends = FIRST_G[inside_G], LAST_G[inside_G]
    return SlidingProfile("Transformer", params, context, seed, f"run-{params}-{seed}", 1, *ends, loss_GB)


def sizes_with(exponents, rng, **noise):
    T_G = np.sqrt(FIRST_G * LAST_G)
    widths = [13_824, 55_296, 147_456, 331_776, 786_432]
    losses = [3.5 + 1.5 * T_G**-p for p in exponents]
    profiles = [profile(N, loss_G, rng, **noise) for N, loss_G in zip(widths, losses, strict=True)]
    return contexts.sizes_of(profiles)


@pytest.fixture(scope="module")
def measured(told):
    return contexts.measure_family(told(WIDE))


def test_every_size_recovers_the_law_that_made_it(measured):
    assert len(measured.sizes) == 5
    truth = story.LSTM_AHEAD.transformer
    for size in measured.sizes:
        low, high = size.law.intervals["p"]
        assert low < truth.p < high or size.law.params["p"] == pytest.approx(truth.p, abs=0.01)
        assert size.law.params["b"] == pytest.approx(truth.b, rel=0.02)
        assert size.law.df == BLOCKS - 1


@pytest.mark.parametrize(("steeper", "who", "sign"), [(0.1, "smaller", "+"), (-0.1, "larger", "−")])
def test_a_planted_trend_of_the_exponent_is_found(told, steeper, who, sign):
    family = contexts.measure_family(told(replace(WIDE, steeper=steeper)))
    verdict = f"{who} models gain longer from context"
    assert law_verdict(family) == verdict
    assert law_sentence(family).startswith(f"{verdict}: the exponent p changes by {sign}0.")


def test_without_one_none_is_stated(measured):
    assert law_verdict(measured) == "it is not shown that larger models gain longer from context"


def curves_off(*off):
    """Sizes whose groups of T (1, 2, 3-4, 5-8) have the law 2 + T^-1 and losses so far below it."""
    first, last = np.array([1, 2, 3, 5]), np.array([1, 2, 4, 8])
    position = np.sqrt(first * last)
    law = SimpleNamespace(predict=lambda level, position: SimpleNamespace(loss=2 + position**-1.0))
    return [
        SimpleNamespace(
            known=law,
            curve=pl.DataFrame(
                {
                    "first": first,
                    "last": last,
                    "position": position,
                    "loss": 2 + 1 / position - np.array(each),
                }
            ),
        )
        for each in off
    ]


@pytest.mark.parametrize(
    ("off", "words"),
    [
        (
            ([0.01, -0.02, -0.03, 0.004], [0.0, -0.02, -0.04, 0.006]),
            "At T = 2 to 4 all laws lie below the measured loss, by up to 0.040 nats. "
            "Later the miss is at most 0.006 nats",
        ),
        (
            ([0.01, 0.02, 0.03, 0.05],),
            "At T = 1 to 8 the law lies above the measured loss, by up to 0.050 nats",
        ),
        (([0.01, 0.02, 0.03, -0.05], [0.01, 0.02, -0.03, 0.05]), "At T = 1 to 2 all laws lie above"),
        (([0.0, 0.0, 0.03, 0.0], [0.0, 0.0, -0.01, 0.0]), "The laws miss their curves by up to 0.030 nats"),
    ],
)
def test_where_all_laws_lie_on_one_side_of_their_curves_is_said(off, words):
    assert misses_words(curves_off(*off)).startswith(words)
    assert misses_words([SimpleNamespace(known=None)]) == ""


def test_the_finding_of_transformers_alone_is_how_the_exponent_changes(told):
    (finding,) = findings(told(replace(WIDE, steeper=0.1)))
    assert finding.sentence.startswith(
        "Smaller models gain longer from context: the exponent p changes by +0."
    )
    low, high = finding.numbers["exponent_for_tenfold_params"]["interval"]
    assert 0 < low < high
    (unknown,) = findings(told(replace(WIDE, slides=False)))
    assert unknown.sentence.startswith("Not answered: no loss was taken of the same tokens")


def test_the_trends_interval_holds_at_its_rate():
    """2,000 simulations of slopes +0.1, 0 and -0.1 with noise of seeds and of text: accept 93.5% or more."""
    rng, held, told_apart = np.random.default_rng(0), 0, 0
    sizes = sizes_with([0.6] * 5, rng)
    x_Z = np.log10([size.params for size in sizes])
    for turn in range(2000):
        slope = (0.1, 0.0, -0.1, 0.0)[turn % 4]
        text_B, own_ZB = rng.normal(0, 0.02, BLOCKS), rng.normal(0, 0.08, (5, BLOCKS))
        # Text that common to all sizes tilts their line, what is each size's own scatters them.
        value_ZB = slope * x_Z[:, None] + text_B * x_Z[:, None] + own_ZB + rng.normal(0, 0.02, (5, 1))
        interval = slope_for_tenfold(sizes, value_ZB.mean(axis=1), sliding.left_out(value_ZB).T)
        held += interval.low <= slope <= interval.high
        told_apart += slope == 0.0 and interval.decided
    assert held / 2000 >= 0.935
    assert told_apart / 1000 <= 0.065


def test_the_exponents_intervals_cover_other_text():
    """100 sizes at nominal 95%: accept 89% or more; noise common to all positions is no noise of p."""
    rng, T_G = np.random.default_rng(2), np.sqrt(FIRST_G * LAST_G)
    profiles = [profile(1000 + k, 3.5 + 1.5 * T_G**-0.6, rng, own=0.05) for k in range(100)]
    laws = [contexts.law_of([each])[0] for each in profiles]
    held = sum(low < 0.6 < high for low, high in (law.intervals["p"] for law in laws))
    assert held >= 89
    assert all(law.clusters == BLOCKS and not law.warnings for law in laws)


def test_a_law_that_the_data_leave_open_has_no_formula():
    rng = np.random.default_rng(3)
    (lost,) = contexts.sizes_of([profile(1000, np.full(len(FIRST_G), 3.5), rng, own=0.1)])
    assert lost.formula == ""
    (kept,) = contexts.sizes_of([profile(1000, 3.5 + 1.5 * FIRST_G**-0.6, rng)])
    assert kept.formula.startswith("3.")
    assert " T^-0." in kept.formula


@pytest.mark.parametrize(
    ("late", "words"),
    [(-0.2, ") more at"), (0.2, ") less at"), (0.0, "are not shown to lower the loss more at")],
)
def test_what_size_gives_late_tokens_has_its_sign(measured, late, words):
    rng = np.random.default_rng(4)
    shape_G = np.log2(LAST_G) / 8
    sizes = [
        profile(N, 4.0 + late * np.log10(N / 1e4) * shape_G + rng.normal(0, 0.01), rng)
        for N in (10_000, 30_000, 100_000, 300_000, 1_000_000)
    ]
    interval = contexts.late_slope(contexts.sizes_of(sizes), 256)
    assert words in sizes_verdict(replace(measured, context=256, late=interval))


def test_two_sizes_are_no_trend(measured):
    with pytest.raises(Refusal, match="only 2 sizes can be compared"):
        contexts.late_slope(measured.sizes[:2], measured.context)
    assert "only 2 sizes" in law_verdict(replace(measured, trend=attempt_trend(measured.sizes[:2])))


def attempt_trend(sizes):
    with pytest.raises(Refusal) as caught:
        contexts.trend_of(sizes)
    return caught.value


def test_one_law_predicts_the_size_left_out():
    """The control: what does not follow any law in N is predicted no better than by the next size's curve."""
    rng = np.random.default_rng(5)
    T_G = np.sqrt(FIRST_G * LAST_G)
    widths = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    lawful = [profile(N, 2.0 + 30 * N**-0.3 + 1.5 * T_G**-0.6, rng, own=0.01) for N in widths]
    joint = contexts.joint_law(contexts.sizes_of(lawful), steeper=False)
    assert isinstance(joint.law, Fit)
    assert joint.error < 0.3 * joint.nearest
    lawless = [*lawful[:-1], profile(widths[-1], lawful[-2].loss_GB.mean(axis=1), rng)]
    joint = contexts.joint_law(contexts.sizes_of(lawless), steeper=False)
    assert joint.error > joint.nearest


def test_a_short_context_is_a_size_of_its_own_and_compared_at_its_last_tokens(measured):
    rng = np.random.default_rng(6)
    long = profile(10_000, np.full(len(FIRST_G), 4.0), rng)
    for gap in (-0.1, 0.1, 0.0):
        short = profile(10_000, np.full(len(FIRST_G), 4.0 + gap), rng, context=8)
        sizes = contexts.sizes_of([short, long])
        assert [size.context for size in sizes] == [8, 256]
        size, difference = contexts.short_minus_long(replace(measured, sizes=sizes[1:], short=sizes[:1]))
        assert size.context == 8
        assert difference.value == pytest.approx(gap, abs=0.02)
        assert difference.sign == np.sign(gap) or gap == 0
    assert contexts.short_minus_long(measured) is None


@pytest.mark.parametrize(("delay", "words"), [(0.5, "times later in"), (-0.5, "times sooner in")])
def test_the_order_in_which_distances_are_learned_is_found(told, delay, words):
    assert words in steps_verdict(contexts.measure_family(told(replace(WIDE, delay=delay))).steps)


def test_without_an_order_none_is_stated(told):
    verdict = steps_verdict(contexts.measure_family(told(replace(WIDE, delay=0.0))).steps)
    assert "do not tell apart" in verdict


def test_blocks_hold_at_their_rate():
    """2,000 simulations at nominal 95%, of a mean and of a ratio of means: accept 93.5% or more."""
    rng, held = np.random.default_rng(8), np.zeros(2)
    for _ in range(2000):
        value_XB = np.array([[2.0], [1.0]]) + rng.normal(0, 0.2, (2, BLOCKS))
        means = sliding.block_mean(value_XB[0])
        ratio = sliding.jackknife(lambda x_X: x_X[0] / x_X[1], value_XB)
        held += [means.low < 2.0 < means.high, ratio.low < 2.0 < ratio.high]
    assert np.all(held / 2000 >= 0.935)


def test_a_run_too_short_to_tell_states_no_order(measured):
    words = steps_verdict(replace(measured.steps, settled=False))
    assert words.startswith("no order is stated")


def test_half_of_a_gain_is_read_between_steps():
    steps = np.array([1.0, 2.0, 4.0, 8.0])
    assert context_steps.half_step(steps, np.array([0.0, 0.0, 1.0, 1.0])) == pytest.approx(1.5)
    assert context_steps.half_step(steps, np.array([1.0, 1.0, 1.0, 1.0])) == 0.0
    assert context_steps.rise(steps, np.array([0.0, 0.0, 1.0, 4.0])) == pytest.approx(0.75)


def test_studies_of_before_say_how_to_get_them(told):
    with pytest.raises(Refusal, match="same tokens at every position") as caught:
        contexts.measure_family(told(replace(WIDE, slides=False)))
    assert "evaluation.targets=2048" in caught.value.mend


def test_octaves_cover_the_context_once():
    assert octaves(8) == [(1, 1), (2, 2), (3, 4), (5, 8)]
    assert octaves(10)[-1] == (9, 10)
    for context in (2, 96, 256):
        ends = octaves(context)
        assert [t for first, last in ends for t in range(first, last + 1)] == list(range(1, context + 1))


def test_blocks_are_read_back_as_they_were_written(told):
    study = told(WIDE)
    points = cooled_points(study.table()).filter(pl.col("tokens") == story.D_POINTS[-1])
    first, *others = sliding.sliding_profiles(study, points)
    rows = study.sliding().filter((pl.col("run_id") == first.run_id) & pl.col("cooled"))
    rows = rows.filter((pl.col("tokens") == story.D_POINTS[-1]) & (pl.col("block") == 5))
    assert first.loss_GB[:, 5] == pytest.approx((rows.sort("first")["sum"] / 64).to_numpy())
    assert len(others) == points.height - 1
    weights = first.last_G - first.first_G + 1
    assert first.mean_B(1, 128) == pytest.approx(np.average(first.loss_GB, axis=0, weights=weights))
