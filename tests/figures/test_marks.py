"""The kit of marks: data reach the page as they are, axes keep their scale, names at line ends part."""

from itertools import combinations

import altair as alt
import numpy as np
import polars as pl
import pytest
import spec
from hypothesis import example, given
from hypothesis import strategies as st

from isoloss.figures import marks
from isoloss.figures.style import COUNTS, INK, POWERS, letters, linear_axis, log_axis

TABLE = pl.DataFrame(
    {
        "x": [1.0, 10.0, 100.0] * 3,
        "y": [3.0, 2.0, 1.0, 3.3, 2.1, 1.4, 2.7, 2.2, 1.3],
        "seed": [0, 0, 0, 1, 1, 1, 2, 2, 2],
        "colour": ["#0072B2"] * 9,
        "low": [0.5] * 9,
        "high": [3.5] * 9,
    }
)
X, Y = log_axis(alt.X, "x", "Size", 1, 100), linear_axis("y", "Loss", 1, 3)


def test_a_chart_carries_its_table_to_the_last_digit():
    table = pl.DataFrame({"name": ['"<é>', None], "value": [1 / 3, -0.0], "many": [2**60, None]})
    assert spec.rows(marks.chart_of(table).mark_point()) == table.to_dicts()


def test_an_axis_for_another_column_keeps_scale_and_title_and_leaves_the_first():
    other = marks.renamed(Y, "law")
    assert marks.column_of(other) == "law"
    assert marks.column_of(Y) == "y"
    assert other.to_dict()["scale"] == Y.to_dict()["scale"]


def test_the_span_of_columns_leaves_nulls_out():
    assert marks.span([3, 1], pl.Series([None, 7.0]), np.array([[2.0]])) == (1.0, 7.0)


@pytest.mark.parametrize("channel", [alt.X, alt.Y])
def test_log_axes_say_so_and_widen_by_their_room(channel):
    axis = log_axis(channel, "N", "Parameters N", 1e3, 1e6, room=2).to_dict()
    assert axis["scale"] == {"type": "log", "domain": [500, 2e6], "nice": False}
    assert axis["title"] == "Parameters N (log scale)"
    assert axis["axis"]["values"] == [1e3, 1e4, 1e5, 1e6]
    assert axis["axis"]["labelExpr"] == COUNTS


def test_ticks_and_labels_of_a_log_axis_may_be_given():
    axis = log_axis(alt.X, "C", "FLOPs", 1e18, 1e20, ticks=[1e18, 1e20], labels=POWERS).to_dict()["axis"]
    assert axis["values"] == [1e18, 1e20]
    assert axis["labelExpr"] == POWERS
    assert "format" not in axis
    plain = log_axis(alt.X, "T", "Tokens", 1, 100, labels=",d").to_dict()["axis"]
    assert plain["format"] == ",d"
    assert "labelExpr" not in plain


def test_bands_and_bars_reach_from_one_column_to_the_other():
    for mark in (marks.band(TABLE, X, Y), marks.bars(TABLE, X, Y)):
        encoding = mark.to_dict()["encoding"]
        assert (encoding["y"]["field"], encoding["y2"]["field"]) == ("low", "high")
        assert encoding["y"]["scale"] == Y.to_dict()["scale"]


def test_a_colour_is_one_for_all_or_the_tables_column():
    own = marks.points(TABLE, X, Y, colour=INK, shape="diamond").to_dict()["encoding"]
    assert own["color"] == {"value": INK}
    assert own["shape"] == {"value": "diamond"}
    column = marks.points(TABLE, X, Y, shape=marks.SHAPE).to_dict()["encoding"]
    assert column["color"] == {"field": "colour", "scale": None, "type": "nominal"}
    assert column["shape"]["field"] == "shape"


def test_a_dash_is_constant_or_by_column():
    constant = marks.line(TABLE, X, Y, dash=[6, 4]).to_dict()
    assert constant["mark"]["strokeDash"] == [6, 4]
    by_column = marks.line(TABLE, X, Y, dash=alt.StrokeDash("seed:N")).to_dict()
    assert by_column["encoding"]["strokeDash"]["field"] == "seed"
    assert "strokeDash" not in by_column["mark"]


def test_a_thin_line_a_seed_and_their_median_thick():
    thin, thick = marks.seeds_and_median(TABLE, X, Y)
    assert thin.to_dict()["encoding"]["detail"] == [{"field": "seed", "type": "nominal"}]
    assert thin.to_dict()["mark"]["strokeWidth"] < thick.to_dict()["mark"]["strokeWidth"]
    assert [row["y"] for row in spec.rows(thick)] == [3.0, 2.1, 1.3]
    assert "detail" not in thick.to_dict()["encoding"] or not thick.to_dict()["encoding"]["detail"]


def test_another_middle_than_the_rows_median_can_be_given():
    _, thick = marks.seeds_and_median(TABLE, X, Y, middle=TABLE.filter(seed=1))
    assert [row["y"] for row in spec.rows(thick)] == [3.3, 2.1, 1.4]


def pixels(label: alt.Chart, column: str, axis: alt.Y, height: float) -> list[float]:
    scale = axis.to_dict()["scale"]
    move = np.log if scale.get("type") == "log" else np.asarray
    low, high = (float(move(end)) for end in scale["domain"])
    return [(float(move(row[column])) - low) * height / (high - low) for row in spec.rows(label)]


@example([3.0, 2.9999999999999996])
@given(st.lists(st.floats(1.0, 3.0), min_size=1, max_size=8))
def test_names_at_line_ends_do_not_overlap_and_stay_in_the_panel(heights):
    ends = pl.DataFrame({"y": heights, "label": [str(i) for i in range(len(heights))]})
    for axis in (Y, log_axis(alt.Y, "y", "Loss", 0.9, 3.2)):
        placed = pixels(marks.end_labels(ends, marks.EDGE, axis, 300), "y", axis, 300)
        assert all(abs(a - b) >= 12 for a, b in combinations(placed, 2))
        assert min(placed) >= -1e-6
        assert max(placed) <= 300 + 1e-6
        assert all(
            low <= high + 1e-9
            for (under, low), (over, high) in combinations(sorted(zip(heights, placed, strict=True)), 2)
            if over - under > 1e-9  # the axis rounds what is nearer
        )


def test_names_far_apart_stand_where_their_lines_end():
    ends = pl.DataFrame({"y": [1.0, 2.0, 3.0], "label": ["a", "b", "c"]})
    assert [row["y"] for row in spec.rows(marks.end_labels(ends, marks.EDGE, Y, 300))] == pytest.approx(
        [1.0, 2.0, 3.0]
    )


def test_names_take_their_lines_colour_or_ink():
    ends = pl.DataFrame({"y": [1.0], "label": ["a"]})
    assert spec.rows(marks.end_labels(ends, marks.EDGE, Y, 300))[0]["colour"] == INK
    coloured = ends.with_columns(pl.lit("#CC5500").alias("colour"))
    drawn = spec.rows(marks.end_labels(coloured, marks.EDGE, Y, 300))[0]["colour"]
    assert drawn == letters("#CC5500") != INK


def test_names_stand_at_the_panels_side_or_at_their_own_x():
    ends = pl.DataFrame({"x": [100.0], "y": [1.0], "label": ["a"]})
    side = marks.end_labels(ends, marks.EDGE, Y, 300).to_dict()["encoding"]["x"]
    assert side == {"value": "width"}
    assert marks.end_labels(ends, X, Y, 300).to_dict()["encoding"]["x"]["field"] == "x"


def test_a_colour_bar_covers_its_range_even_where_it_is_one_value():
    bar = marks.colour_bar("N", "Parameters N", 1e6, 1e6).to_dict()
    low, high = bar["scale"]["domain"]
    assert low == 1e6
    assert high > low
    assert bar["legend"]["title"] == "Parameters N (log scale)"


def test_only_a_curve_that_ends_early_has_a_leader_which_keeps_its_level_and_meets_its_label_outside():
    ends = pl.DataFrame(
        {"x": [100.0, 99.0, 30.0], "y": [1.0, 1.01, 1.02], "label": ["a", "b", "c"], "colour": [INK] * 3}
    )
    labels = {row["label"]: row for row in spec.rows(marks.end_labels(ends, marks.EDGE, Y, 300))}
    level, bend = marks.leaders(ends, X, Y, 300)
    for drawn in (level, bend):
        (leader,) = spec.rows(drawn)
        assert (leader["label"], leader["x"], leader["y"]) == ("c", 30.0, 1.02)
    assert leader["placed"] == labels["c"]["y"] != leader["y"], "the label was moved"
    inside, outside = (drawn.to_dict()["encoding"] for drawn in (level, bend))
    assert (inside["x2"], "y2" in inside) == ({"value": "width"}, False), "flat inside the panel"
    assert (outside["x"], outside["y2"]["field"]) == ({"value": "width"}, "placed"), "bent beside it"
    assert marks.leaders(ends.filter(pl.col("label") != "c"), X, Y, 300) == []
