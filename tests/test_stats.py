"""Means, differences and shares: the textbook's numbers, and intervals that cover at their level."""

from math import inf

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm, ttest_1samp, ttest_ind

from isoloss.distributions import t_quantile
from isoloss.errors import InputError, Refusal
from isoloss.stats import (
    LEVEL,
    Interval,
    Noise,
    contrast,
    difference,
    few_draws,
    mean,
    pooled_noise,
    robust_sd,
    seed_noise,
    share,
    t_interval,
)

TRIALS = 2000
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
"""Student's hours of extra sleep (1908), R's ``sleep``."""


def band(level: float, trials: int = TRIALS) -> tuple[float, float]:
    """Shares of ``trials`` that an exact interval of this level gives in 999 of 1,000 simulations."""
    low, high = binom.interval(0.999, trials, level)
    return low / trials, high / trials


def ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def coverage(simulate, truth: float, *, shrink: float = 1.0, seed: int = 0) -> float:
    """How often ``simulate(rng)``, its ends drawn in by ``shrink``, holds ``truth``."""
    rng, held = np.random.default_rng(seed), 0
    for _ in range(TRIALS):
        interval = simulate(rng)
        held += interval.low <= truth <= interval.high if shrink == 1 else _within(interval, truth, shrink)
    return held / TRIALS


def _within(interval: Interval, truth: float, shrink: float) -> bool:
    return abs(interval.value - truth) <= shrink * (interval.high - interval.low) / 2


def normal_for_t(df: int, level: float = LEVEL) -> float:
    """The factor by which 1.96 where t belongs draws an interval in."""
    return float(norm.ppf(0.5 + level / 2)) / t_quantile(level, df)


def test_t_quantiles_are_those_of_the_tables():
    assert t_quantile(0.95, 1) == pytest.approx(12.70620473617, rel=1e-11)
    assert t_quantile(0.95, 10) == pytest.approx(2.228138852, rel=1e-9)
    assert t_quantile(0.90, 5) == pytest.approx(2.0150483733, rel=1e-9)


def test_a_mean_is_students():
    """R: t.test(extra ~ group, sleep, paired = TRUE) gives [-2.4598858, -0.7001142] at 95 %."""
    interval = mean(np.subtract(SLEEP_1, SLEEP_2))
    assert ends(interval) == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)
    assert (interval.n, interval.df, interval.sign, interval.decided) == (10, 9, -1, True)
    reference = ttest_1samp(SLEEP_1, 0).confidence_interval(0.9)
    assert ends(mean(SLEEP_1, level=0.9)) == pytest.approx((reference.low, reference.high), rel=1e-12)
    assert mean(SLEEP_1).se == pytest.approx(np.std(SLEEP_1, ddof=1) / np.sqrt(10))


def test_a_difference_with_pooled_noise_is_students():
    """R: t.test(extra ~ group, sleep, var.equal = TRUE) gives [-3.363874, 0.203874]."""
    interval = difference(SLEEP_1, SLEEP_2, pooled_noise([SLEEP_1, SLEEP_2]))
    assert ends(interval) == pytest.approx((-3.363874, 0.203874), abs=5e-7)
    assert (interval.value, interval.df, interval.sign) == (pytest.approx(-1.58), 18, 0)
    reference = ttest_ind(SLEEP_1, SLEEP_2).confidence_interval()
    assert ends(interval) == pytest.approx((reference.low, reference.high), rel=1e-12)


def test_a_difference_without_noise_is_welchs_with_the_smaller_sides_df():
    a, b = SLEEP_1[:4], SLEEP_2
    interval, reference = difference(a, b), ttest_ind(a, b, equal_var=False)
    assert interval.value / interval.se == pytest.approx(reference.statistic, rel=1e-12)
    assert interval.df == 3 <= reference.df
    assert ends(interval) == pytest.approx(
        (interval.value - 3.18244630528 * interval.se, interval.value + 3.18244630528 * interval.se)
    )


def test_a_contrast_of_two_means_is_their_difference_and_of_three_an_interpolation():
    noise = Noise(0.02, 6, 4)
    two = contrast([(1.0, 4.0, 3), (-1.0, 3.9, 2)], noise)
    assert ends(two) == pytest.approx(ends(difference([4.0] * 3, [3.9] * 2, noise)), rel=1e-12)
    three = contrast([(1.0, 4.0, 3), (-0.25, 3.8, 2), (-0.75, 4.0, 2)], noise)
    assert three.value == pytest.approx(0.05)
    assert three.se == pytest.approx(0.02 * np.sqrt(1 / 3 + (0.25**2 + 0.75**2) / 2))
    assert three.n == 2


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (29, 30), (30, 30), (76, 2000), (1980, 2000)])
def test_a_share_is_wilsons(hits, n):
    reference = binomtest(hits, n).proportion_ci(LEVEL, method="wilson")
    assert ends(share(hits, n)) == pytest.approx((reference.low, reference.high), rel=1e-12, abs=1e-15)


def test_a_share_by_hand():
    """Newcombe 1998, Statistics in Medicine 17, 857, table I, without correction for continuity."""
    assert ends(share(81, 263)) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert ends(share(15, 148)) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert ends(share(0, 20)) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_ends_of_certain_shares_are_exact():
    assert share(0, 7).low == 0.0
    assert share(7, 7).high == 1.0
    assert share(0, 7).df is None
    assert share(7, 7).decided


def test_a_mean_covers_at_its_level():
    """Three values: t holds the truth in 95 % of 2,000; 1.96 for t, or 30 % less, does not."""
    low, high = band(LEVEL)
    args = (lambda rng: mean(rng.normal(3.9, 0.02, 3)), 3.9)
    assert low <= coverage(*args) <= high
    assert coverage(*args, shrink=normal_for_t(2)) < low
    assert coverage(*args, shrink=0.7) < low


def test_a_difference_with_noise_from_other_sizes_covers():
    """Two runs a side, noise pooled over four sizes of two; the same controls."""
    low, high = band(LEVEL)

    def simulate(rng: np.random.Generator) -> Interval:
        groups = 4.0 + 0.02 * rng.standard_normal((4, 2)) + np.arange(4)[:, None]
        return difference(groups[1], groups[0], pooled_noise(groups))

    assert low <= coverage(simulate, 1.0) <= high
    assert coverage(simulate, 1.0, shrink=normal_for_t(4)) < low
    assert coverage(simulate, 1.0, shrink=0.7) < low


def test_a_contrast_covers():
    low, high = band(0.9)

    def simulate(rng: np.random.Generator) -> Interval:
        a, b, c = groups = [m + 0.02 * rng.standard_normal(2) for m in (4.0, 3.8, 4.0)]
        parts = [(1.0, a.mean(), 2), (-0.5, b.mean(), 2), (-0.5, c.mean(), 2)]
        return contrast(parts, pooled_noise(groups), level=0.9)

    assert low <= coverage(simulate, 0.1) <= high
    assert coverage(simulate, 0.1, shrink=normal_for_t(3, 0.9)) < low


def test_welchs_difference_covers_at_least_its_level():
    """Unequal spreads and sizes: never less than the level, as its df are a lower bound; narrower is less."""

    def simulate(rng: np.random.Generator) -> Interval:
        return difference(rng.normal(0, 3, 3), rng.normal(0, 1, 6))

    low, _ = band(LEVEL)
    assert coverage(simulate, 0.0) >= low
    assert coverage(simulate, 0.0, shrink=normal_for_t(2)) < low


def test_pooling_unequal_spreads_would_not_cover():
    """Negative control of Welch's: few values with much noise beside many with little."""

    def simulate(rng: np.random.Generator) -> Interval:
        a, b = rng.normal(0, 3, 3), rng.normal(0, 0.3, 12)
        return difference(a, b, pooled_noise([a, b]))

    assert coverage(simulate, 0.0) < band(LEVEL)[0]


def test_a_floor_covers_what_is_read_coarsely():
    """Values rounded to whole tens often agree: rounding has variance 100 / 12, and no floor says 0."""

    def simulate(floor: float):
        def rounded(rng: np.random.Generator) -> Interval:
            a, b = np.round(rng.normal(100 + 10 * rng.random() + np.array([[4.0], [0.0]]), 1, (2, 3)), -1)
            return difference(a, b, floor=floor)

        return rounded

    assert coverage(simulate(100 / 12), 4.0) >= LEVEL
    assert coverage(simulate(0.0), 4.0) < 0.8


def test_a_floor_a_side():
    interval = difference([1.0, 1.0], [3.0, 3.0, 3.0], floor=(0.5, 0.9))
    assert interval.se == pytest.approx(np.sqrt(0.5 / 2 + 0.9 / 3))
    assert interval.df == 1


@pytest.mark.parametrize("p", [0.02, 0.5, 0.97])
def test_a_share_covers_near_its_level(p):
    """Of 40, by exact sums over hits: Wilson holds 92 to 98 %; half as wide holds far less."""
    hits = np.arange(41)
    chance = binom.pmf(hits, 40, p)
    intervals = [share(int(k), 40) for k in hits]
    assert 0.92 <= chance[[one.low <= p <= one.high for one in intervals]].sum() <= 0.98
    middle = [(one.low + one.high) / 2 for one in intervals]
    half = [(one.high - one.low) / 4 for one in intervals]
    assert chance[[abs(p - m) <= h for m, h in zip(middle, half, strict=True)]].sum() < 0.92


def test_control_the_share_by_the_normal_formula_does_not_cover():
    """Wald's p -+ z sqrt(p (1 - p) / n) at p = 0.02, n = 40 holds 55 %."""
    hits = np.arange(41)
    reach = 1.959964 * np.sqrt(hits / 40 * (1 - hits / 40) / 40)
    assert binom.pmf(hits, 40, 0.02)[np.abs(hits / 40 - 0.02) <= reach].sum() < 0.6


def test_one_value_gives_no_interval():
    for interval in (mean([0.5]), difference([1.0], [2.0, 3.0]), t_interval(0.5, 0.1, 1, 0)):
        assert (interval.low, interval.high, interval.df) == (-inf, inf, 0)
        assert (interval.interval, interval.sign, interval.decided) == (None, None, False)
        assert interval.row()["low"] is interval.row()["high"] is None
    assert mean([0.5]).value == 0.5
    assert mean([0.5], noise=Noise(0.1, 4, 5)).sign == 1


def test_without_a_second_seed_the_noise_is_refused_and_nothing_is_decided():
    noise = seed_noise([[4.0], [3.9], [3.8]])
    assert isinstance(noise, Refusal)
    for interval in (difference([4.0], [3.0], noise), contrast([(1.0, 4.0, 1), (-1.0, 3.0, 1)], noise)):
        assert (interval.value, interval.interval, interval.sign) == (1.0, None, None)
    with pytest.raises(Refusal, match="no size has two seeds"):
        pooled_noise([[4.0], [3.9]])


def test_noise_counts_seeds_and_not_sizes():
    rng = np.random.default_rng(2)
    noise = seed_noise([size + rng.normal(4.0, 0.05, 3) for size in range(200)])
    assert isinstance(noise, Noise)
    assert (noise.df, noise.groups) == (400, 200)
    assert noise.sd == pytest.approx(0.05, rel=0.1)


def test_the_robust_sd_is_that_of_normal_noise_whatever_a_few_do():
    noise = 0.05 * np.random.default_rng(3).standard_normal((4, 20_000))
    assert robust_sd(noise) == pytest.approx(np.full(4, 0.05), rel=0.02)
    noise[:, :200] = 1e6
    assert robust_sd(noise) == pytest.approx(np.full(4, 0.05), rel=0.04)
    assert robust_sd([-1.0, 2.0, -3.0]) == 1.4826 * 2.0
    assert noise.std() > 1e4, "control: the plain one follows them"


@pytest.mark.parametrize(("value", "sign"), [(0.5, 1), (-0.5, -1), (0.001, 0)])
def test_the_sign_is_what_the_interval_supports(value, sign):
    interval = contrast([(1.0, 3.0 + value, 2), (-1.0, 3.0, 2)], Noise(0.05, 8, 4))
    assert (interval.sign, interval.decided) == (sign, sign != 0)


def test_a_mean_of_shares_stays_within_what_is_possible():
    assert ends(mean([0.9, 1.0]).within(0.0, 1.0)) == (pytest.approx(0.3146897632, abs=1e-9), 1.0)


@pytest.mark.parametrize("values", [[], [4.0, np.nan], [[1.0, 2.0]], [inf]])
def test_bad_values_are_input_errors(values):
    for make in (mean, lambda v: difference(v, [1.0, 2.0]), lambda v: pooled_noise([[1.0, 2.0], v])):
        with pytest.raises(InputError, match="empty or not finite"):
            make(values)


@pytest.mark.parametrize("level", [0.0, 1e-300, 0.9999999999999999, 1.0, 95, np.nan, "0.9"])
def test_a_level_that_no_interval_can_have_is_refused_with_the_range(level):
    for make in (lambda: mean([1.0, 2.0], level=level), lambda: share(1, 2, level=level)):
        with pytest.raises(InputError, match=f"level is {level!r}") as refused:
            make()
        assert "from 0.000001 to 0.999999" in refused.value.mend


def test_both_ends_of_the_levels_can_be_asked():
    narrow, wide = (mean([1.0, 2.0], level=level) for level in (1e-6, 0.999999))
    assert 1.5 < narrow.high < 1.5001
    assert 1e5 < wide.high < inf


def test_one_of_many_intervals_may_have_a_higher_level_than_all_of_them():
    assert mean([1.0, 2.0], level=1 - 1e-8).high > mean([1.0, 2.0], level=0.999999).high


@pytest.mark.parametrize(("draws", "level", "takes"), [(1000, 0.999, "2,000"), (100, 0.999999, "2,000,000")])
def test_quantiles_that_draws_cannot_give_are_said(draws, level, takes):
    assert f"{draws:,} draws: it takes {takes}" in few_draws(draws, level)
    assert few_draws(1000, 0.998) == few_draws(20, 0.9) == ""


def test_a_share_of_five_and_of_ten():
    assert ends(share(5, 10)) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert ends(share(5, 5)) == pytest.approx((0.5655, 1.0), abs=1e-4)
    assert ends(share(2.5, 5)) == pytest.approx((0.1704, 0.8296), abs=1e-4)
