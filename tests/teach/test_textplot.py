"""Curves in a terminal: each number where it belongs, in plain characters."""

import polars as pl
import pytest

from isoloss.teach.prose import Plot
from isoloss.teach.textplot import HEIGHT, WIDTH, lines

RISING = pl.DataFrame({"x": [0, 50, 100], "value": [0.0, 0.5, 1.0], "side": "a"})
PLOT = Plot(x="x", by="side")


def grid(table, plot=PLOT):
    _, *rows = lines("Title", table, plot)
    return [row.split("|", 1)[1].ljust(WIDTH) for row in rows[:HEIGHT]]


def test_a_straight_line_runs_from_corner_to_corner():
    rows = grid(RISING)
    assert rows[-1][0] == rows[0][-1] == "o"
    places = [row.index(next(c for c in row if c != " ")) for row in reversed(rows)]
    assert places == sorted(places)
    # Control: falling numbers fall.
    falling = grid(RISING.with_columns(value=1 - pl.col("value")))
    assert falling[0][0] == falling[-1][-1] == "o"


def test_each_side_has_a_mark_and_the_median_of_its_seeds():
    seeds = pl.DataFrame({"x": [0, 0, 0, 9], "value": [0.0, 1.0, 8.0, 8.0], "side": ["a", "a", "a", "b"]})
    rows = grid(seeds)
    assert [row[0] for row in rows] == [" "] * (HEIGHT - 1) + ["o"], "the median of 0, 1 and 8 is lowest"
    assert rows[0][-1] == "+"
    assert [line.strip() for line in lines("T", seeds, PLOT)][-3:-1] == ["o a", "+ b"]


def test_a_logarithmic_axis_puts_decades_at_equal_distances():
    decades = pl.DataFrame({"x": [1, 10, 100], "value": [1.0, 10.0, 100.0], "side": "a"})
    straight = grid(decades, Plot(x="x", by="side", log="xy"))
    middle = [row for row in straight if "o" in row][1]
    assert middle.index("o") == pytest.approx((WIDTH - 1) / 2, abs=1)
    # Control: on a plain axis 10 stands near 1.
    assert grid(decades)[-2].index("o") < WIDTH / 5


def test_nothing_is_drawn_of_nothing():
    assert list(lines("T", RISING.clear(), PLOT)) == []
    flat = grid(RISING.with_columns(value=0.3))
    assert flat[-1].count("o") == 3
