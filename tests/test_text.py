"""Numbers as words: every helper against what it must write."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss import text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.44, "0.44 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (256, "4.3 min"),
        (3599, "1 h"),
        (6 * 3600 + 3, "6 h"),
        (47.4 * 3600, "47 h"),
        (48 * 3600, "2 days"),
        (2223.9 * 3600, "93 days"),
        (1234 * 86400, "1,234 days"),
        (1_234_567 * 86400, "1,234,567 days"),
    ],
)
def test_a_duration_has_its_unit(seconds, words):
    assert text.duration(seconds) == words


FACTORS = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (1, "1"),
        (999, "999"),
        (999.6, "1K"),
        (1234567, "1.23M"),
        (999_499, "999K"),
        (999_600, "1M"),
        (-2500, "-2.5K"),
        (1.5e9, "1.5B"),
        (2.62e13, "26.2T"),
        (1e15, "1e15"),
        (3.1e21, "3.1e21"),
        (-3.1e21, "-3.1e21"),
        (0.25, "0.25"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_counts_for_people(value, words):
    assert text.count(value) == words


@given(st.floats(1, 9.9e14))
def test_counts_are_right_to_three_digits(value):
    words = text.count(value)
    suffix = words.lstrip("0123456789.")
    assert float(words.removesuffix(suffix)) * FACTORS[suffix] == pytest.approx(value, rel=0.0051)
    assert float(words.removesuffix(suffix)) < 1000 or suffix == "T"


def test_a_range_of_one_count_is_that_count():
    assert text.counts(1e3, 7e9) == "1K to 7B"
    assert text.counts(7e9, 7e9) == "7B"


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0B"), (999, "999B"), (1234567, "1.23MB"), (7e9, "7GB"), (3.1e15, "3.1PB")]
)
def test_sizes_count_bytes_with_the_prefixes_of_bytes(value, words):
    assert text.size(value) == words


@given(st.floats(1e-30, 1e30))
def test_a_power_reads_back_as_its_three_digits(value):
    words = text.power(value)
    assert float(words) == float(f"{value:.3g}")
    assert "+" not in words
    assert "e0" not in words
    assert "e-0" not in words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2.3, "2.30"),
        (813.8, "814"),
        (2111, "2110"),
        (90249, "90200"),
        (6.939e13, "6.94e13"),
        (-0.1, "−0.100"),
        (0, "0"),
    ],
)
def test_a_sentence_has_three_digits(value, words):
    assert text.brief(value) == words


@given(st.floats(1e-12, 1e18))
def test_three_digits_read_back(value):
    assert float(text.brief(value).replace("−", "-")) == pytest.approx(value, rel=0.00501)


def test_numbers_have_a_true_minus():
    assert text.number(-0.34781) == "−0.3478"
    assert text.number(1.25e21) == "1.25e21"
    assert text.number(2e-5) == "2e−5"
    assert text.number(0.123456, 5) == "0.12346"
    assert text.number(None) == "none"
    assert (text.signed(0.0123), text.signed(-0.0123)) == ("+0.012", "−0.012")
    assert text.loss(3.14159) == "3.142"


@pytest.mark.parametrize(
    ("share", "words"), [(0.0012, "0.12%"), (0.123, "12%"), (0.996, "100%"), (1.2, "120%"), (-0.05, "-5%")]
)
def test_percent_to_two_digits(share, words):
    assert text.percent(share) == words


def test_percent_says_all_only_of_all():
    assert text.percent(1.0, 1) == "100.0%"
    assert text.percent(1999 / 2000, 1) == ">99.9%"
    assert text.percent(0.9994, 1) == "99.9%"
    assert text.percent(0.0375, 1) == "3.8%"
    assert text.percent(0.996, 0) == ">99%"
    assert text.percent(None) == "none"


def test_a_level_keeps_all_its_digits():
    assert (text.level(0.95), text.level(0.999)) == ("95%", "99.9%")


def test_an_interval_is_a_to_b():
    assert text.interval((1.2, 3.4)) == "1.2 to 3.4"
    assert text.interval((-1.2, None)) == "−1.2 to open"
    assert text.interval((0.1, 0.2), text.percent) == "10% to 20%"
    assert text.interval(None) == "no interval"


@dataclass
class Estimate:
    value: float
    interval: tuple[float, float] | None


def test_a_difference_carries_its_interval():
    assert text.difference(Estimate(0.0234, (0.012, 0.034))) == "+0.023 nats (+0.012 to +0.034)"
    assert text.difference(Estimate(-0.0234, None)) == "−0.023 nats (no interval)"


def test_words():
    assert [text.plural(n, "seed") for n in (0, 1, 1200)] == ["0 seeds", "1 seed", "1,200 seeds"]
    assert [text.listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]
    assert (text.capital("one law"), text.capital("")) == ("One law", "")


def test_the_headline_of_a_warning_is_its_first_sentence():
    assert text.headline("off by 0.3% more. The farthest is N. It is") == (
        "off by 0.3% more.",
        "The farthest is N. It is",
    )
    assert text.headline("two kinds of runs? Without them: L = 2") == (
        "two kinds of runs?",
        "Without them: L = 2",
    )
    for whole in ("Muennighoff et al. 2023 say so", "one", ""):
        assert text.headline(whole) == (whole, "")


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_number_is_too_odd_for_words(value):
    for write in (text.count, text.size, text.power, text.number, text.loss, text.signed, text.percent):
        assert write(value)
    assert not (math.isfinite(value) and "e+" in text.count(value))
