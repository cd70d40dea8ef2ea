"""Seed noise and differences between groups of runs."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from isoloss.errors import InputError, Refusal
from isoloss.stats import difference, pooled_noise


def test_one_pair_of_groups_is_the_students_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(3.9, 0.02, 4), rng.normal(3.8, 0.02, 3)
    group_difference = difference(a, b, pooled_noise([a, b]), level=0.95)
    reference = ttest_ind(a, b).confidence_interval(0.95)
    assert group_difference.interval == pytest.approx((reference.low, reference.high), rel=1e-12)
    assert group_difference.df == 5
    assert group_difference.decided


def test_pooling_over_sizes_covers():
    """1,000 simulations at nominal 90%, accept 86.8-93.0%; 30% narrower must fail."""
    rng = np.random.default_rng(2)
    held = np.zeros(2)
    for _ in range(1000):
        a, b = 4.0 + 0.02 * rng.standard_normal((4, 2)), 3.9 + 0.02 * rng.standard_normal((4, 2))
        group_difference = difference(a[0], b[0], pooled_noise([*a, *b]), level=0.9)
        assert group_difference.df == 8
        reach = (group_difference.interval[1] - group_difference.interval[0]) / 2
        held += [abs(group_difference.value - 0.1) <= reach, abs(group_difference.value - 0.1) <= 0.7 * reach]
    covered, narrowed = held / 1000
    assert 0.868 <= covered <= 0.930
    assert narrowed < 0.868


def test_a_difference_within_the_noise_is_not_decided():
    a, b = [4.00, 4.02], [4.01, 4.03]
    assert not difference(a, b, pooled_noise([a, b]), level=0.9).decided


def test_without_a_second_seed_the_noise_is_refused():
    with pytest.raises(Refusal, match="no size has two seeds"):
        pooled_noise([[4.0], [3.9], [3.8]])


def test_bad_groups_are_input_errors():
    with pytest.raises(InputError):
        pooled_noise([[4.0, np.nan]])
    with pytest.raises(InputError):
        pooled_noise([[4.0, 4.1], []])
