"""Runs that are not equally noisy: whose seeds tell it, and intervals that cover where pooling would not."""

import numpy as np
import pytest
from scipy.stats import binom

from isoloss.errors import Refusal
from isoloss.noise import LEAST_DF, nested_noise, pooled_words
from isoloss.stats import contrast, difference, pooled_noise

TRIALS = 2000
QUIET, LOUD = 0.01, 0.05


def groups(seeds, sizes=5, curves=(("a", "a1"), ("b", "b1")), values=None):
    """``seeds`` runs at each size of each curve."""
    draw = values or (lambda n: np.arange(n, dtype=float))
    return {(*curve, size): draw(seeds) for curve in curves for size in range(sizes)}


@pytest.mark.parametrize(
    ("seeds", "sizes", "within"),
    [
        (5, 5, ("a", "a1", 0)),  # 4 df a size
        (3, 5, ("a", "a1")),  # 10 df a curve
        (2, 4, ("a", "a1")),
        (2, 3, ()),  # 3 df a curve, and a family has but one
        (2, 1, ()),
    ],
)
def test_noise_is_told_by_the_fewest_runs_that_are_enough(seeds, sizes, within):
    noises = nested_noise(groups(seeds, sizes))
    assert noises["a", "a1", 0].within == within


def test_a_familys_curves_are_pooled_before_the_families_are():
    noises = nested_noise(groups(2, 3, (("a", "a1"), ("a", "a2"), ("b", "b1"))))
    assert (noises["a", "a1", 0].within, noises["a", "a1", 0].df) == (("a",), 6)
    assert (noises["b", "b1", 0].within, noises["b", "b1", 0].df) == ((), 9)
    words = (
        "pooled over the depths and sizes of a family or pooled over families, depths and sizes, whichever"
    )
    assert pooled_words(noises.values()) == f"{words} has enough seeds"


def test_a_size_of_one_seed_has_the_noise_of_its_curve():
    data = groups(3) | {("a", "a1", 99): [1.0]}
    noises = nested_noise(data)
    assert noises["a", "a1", 99] == noises["a", "a1", 0]
    assert noises["a", "a1", 99].sd == pooled_noise(v for key, v in data.items() if key[0] == "a").sd
    assert pooled_words(noises.values()) == "pooled over the sizes of a curve"


def test_without_two_seeds_anywhere_the_noise_is_refused():
    assert isinstance(nested_noise(groups(1)), Refusal)
    assert isinstance(nested_noise({}), Refusal)


def band(trials=TRIALS):
    low, high = binom.interval(0.999, trials, 0.95)
    return low / trials, high / trials


def coverage(sds, seeds, compare, noise_of):
    """How often the interval of a difference that is 0 in truth holds 0, and its mean width."""
    rng, held, width = np.random.default_rng(0), 0, 0.0
    for _ in range(TRIALS):
        data = {key: rng.normal(0, sd, seeds[key]) for key, sd in sds.items()}
        sides = [data[key] for key in compare]
        interval = difference(*sides, noise_of(data, compare))
        held += interval.low <= 0 <= interval.high
        width += interval.high - interval.low
    return held / TRIALS, width / TRIALS


def nested(data, compare):
    noises = nested_noise(data)
    return [noises[key] for key in compare]


def pooled(data, compare):
    return pooled_noise(data.values())


def two_families(quiet, loud, seeds=(2, 2), sizes=5):
    sds = groups(1, sizes, values=lambda n: None)
    counts = {key: seeds[key[0] == "b"] for key in sds}
    return {key: loud if key[0] == "b" else quiet for key in sds}, counts


@pytest.mark.parametrize(
    ("seeds", "compare"),
    [
        ((2, 2), [("b", "b1", 0), ("b", "b1", 1)]),  # two sizes of the loud family
        ((2, 2), [("a", "a1", 0), ("a", "a1", 1)]),  # of the quiet one
        ((4, 2), [("a", "a1", 0), ("b", "b1", 0)]),  # one of each, of which the quiet one has more runs
    ],
)
def test_families_of_unequal_noise_are_covered_and_pooling_them_would_not_be(seeds, compare):
    sds, counts = two_families(QUIET, LOUD, seeds)
    low, high = band()
    held, width = coverage(sds, counts, compare, nested)
    assert low <= held <= high
    held_pooled, width_pooled = coverage(sds, counts, compare, pooled)
    if compare[1][0] == "a":
        assert held_pooled > high, "control: the quiet family would have the loud one's noise"
        assert width_pooled > 2 * width
    else:
        assert held_pooled < low, "control: pooling under-covers"


def test_sizes_of_unequal_noise_are_covered_where_each_has_five_seeds():
    sds = {("a", "a1", size): LOUD if size == 0 else QUIET for size in range(5)}
    counts = dict.fromkeys(sds, LEAST_DF + 1)
    compare = [("a", "a1", 0), ("a", "a1", 1)]
    low, high = band()
    assert low <= coverage(sds, counts, compare, nested)[0] <= high + 0.01
    assert coverage(sds, counts, compare, pooled)[0] < low, "control"


def test_where_all_are_equally_noisy_little_is_lost():
    sds, counts = two_families(QUIET, QUIET, (3, 3))
    compare = [("a", "a1", 0), ("b", "b1", 0)]
    held, width = coverage(sds, counts, compare, nested)
    assert band()[0] <= held <= band()[1] + 0.01, "degrees of freedom are rounded down"
    assert 1 <= width / coverage(sds, counts, compare, pooled)[1] < 1.1


def test_noises_that_are_one_keep_their_degrees_of_freedom_and_others_are_combined_as_by_welch():
    noises = nested_noise(groups(3) | {("b", "b1", size): [0.0, 9.0, 18.0] for size in range(5)})
    quiet, loud = noises["a", "a1", 0], noises["b", "b1", 0]
    parts = [(1.0, 5.0, 3), (-1.0, 4.0, 3)]
    assert contrast(parts, [quiet, quiet]) == contrast(parts, quiet)
    assert contrast(parts, quiet).df == 10
    both = contrast(parts, [quiet, loud])
    assert both.se == pytest.approx(np.sqrt((1 + 81) / 3))
    assert both.df == int((1 + 81) ** 2 / (1 / 10 + 81**2 / 10)) == 10
    assert contrast(parts, [quiet, nested_noise(groups(2, 4))["b", "b1", 0]]).df >= 4
