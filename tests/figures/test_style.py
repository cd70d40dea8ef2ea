from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss.figures import style


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast_with_white(colour):
    return 1.05 / (luminance(colour) + 0.05)


@pytest.mark.parametrize("family", style.FAMILY_COLOURS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_shade_of_a_family_is_readable_on_white_and_differs(family, count):
    shades = style.shades(style.FAMILY_COLOURS[family], count)
    assert len(set(shades)) == count
    assert min(contrast_with_white(shade) for shade in shades) >= 4.2


def test_the_contrast_check_can_fail():
    assert contrast_with_white("#F0E442") < 2


def test_families_of_users_get_colours_of_their_own():
    users = ["zebra", "mamba"]
    assert style.family_colour("mamba", users) != style.family_colour("zebra", users)
    assert style.family_colour("lstm", users) == style.FAMILY_COLOURS["lstm"]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.floats(0.1, 20))
def test_labels_are_moved_apart_and_keep_their_order(heights, gap):
    placed = style.spread(heights, gap)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    moved = [placed[i] for i in order]
    assert all(upper - lower >= gap * 0.99 for lower, upper in pairwise(moved))


def test_labels_far_apart_stay():
    assert style.spread([1.0, 9.0, 5.0], 2.0) == [1.0, 9.0, 5.0]


def test_long_titles_wrap_and_lose_no_word():
    title = "word " * 60
    lines = style.wrap(title, 40)
    assert max(len(line) for line in lines) <= 40
    assert " ".join(lines).split() == title.split()


def test_log_ticks_lie_in_the_range():
    assert style.log_ticks(9_000, 1_100_000) == [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6]
    assert style.log_ticks(1, 1e6) == [10.0**k for k in range(7)]
