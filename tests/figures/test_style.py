from itertools import combinations, pairwise

import altair as alt
import numpy as np
import polars as pl
import pytest
import spec
from hypothesis import given
from hypothesis import strategies as st

from isoloss.figures import marks, style

TO_LIGHT = np.array([0.2126, 0.7152, 0.0722])
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)
NORMAL = np.eye(3)
DEUTERANOPE = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
"""What is seen without the middle cones, in linear RGB: Machado, Oliveira and Fernandes 2009, severity 1."""
GREY = np.tile(TO_LIGHT, (3, 1))
APART = 12.0
"""Differences of CIELAB that are told at a glance in small marks; 2.3 are just noticeable side by side."""


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return TO_LIGHT @ linear(colour)


def lab(colour, eye):
    ratio = TO_XYZ @ np.clip(eye @ linear(colour), 0, 1) / WHITE
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(first, second, eye):
    return float(np.linalg.norm(lab(first, eye) - lab(second, eye)))


@pytest.mark.parametrize("eye", [NORMAL, DEUTERANOPE], ids=["normal", "deuteranope"])
def test_colours_of_families_are_told_apart(eye):
    used = [*style.FAMILY_COLOURS.values(), *style.OTHER_COLOURS[:2]]
    pairs = {pair: apart(*pair, eye) for pair in combinations(used, 2)}
    assert min(pairs.values()) > APART, pairs


def nearest(ramp, eye):
    """How near a ramp comes to the colour of a family."""
    of_families = [*style.FAMILY_COLOURS.values(), *style.OTHER_COLOURS]
    return min(apart(colour, other, eye) for colour in ramp for other in of_families)


@pytest.mark.parametrize("eye", [NORMAL, DEUTERANOPE], ids=["normal", "deuteranope"])
def test_no_family_has_a_colour_of_the_ramp(eye, monkeypatch):
    assert nearest(style.along_ramp(np.linspace(0, 1, 50)), eye) > APART
    monkeypatch.setattr(style, "RAMP", ("#2b0a6b", "#8f0da4", "#cc4778", "#f0843c"))
    assert nearest(style.along_ramp(np.linspace(0, 1, 50)), eye) < APART, "negative control: plasma"


def test_the_check_of_colours_can_fail():
    red, green = "#c0392b", "#6b7d1e"
    assert apart(red, green, NORMAL) > 50
    assert apart(red, green, DEUTERANOPE) < APART


FORMS = {"point": ("shape", "filled"), "line": ("strokeDash", "strokeWidth")}
"""What tells marks of one kind apart besides colour."""


def look(layer, channel, row):
    """A row's look in one channel: of its column, of its name on a scale, or the mark's; None on a ramp."""
    given = layer["encoding"].get(channel, {})
    if "field" not in given:
        return str(given.get("value", layer["mark"].get(channel)))
    value, scale = row[given["field"]], given.get("scale")
    if scale is None:
        return value
    by_name = dict(zip(scale["domain"], scale["range"], strict=False))
    return str(by_name[value]) if given["type"] == "nominal" else None


def same_but_for_colour(drawn, eye=GREY):
    """Pairs of colours that this eye or a grey print takes for one: of one form, not named at their ends.

    Colours along the ramp say a quantity, by their light too.
    """
    out = set()
    for layers in spec.panels(drawn):
        texts = [layer for layer in layers if layer["mark"]["type"] == "text"]
        named = {row.get("colour") for layer in texts for row in spec.rows(drawn, layer)}
        for kind, forms in FORMS.items():
            looks = {
                (look(layer, "color", row), *(look(layer, form, row) for form in forms))
                for layer in layers
                if layer["mark"]["type"] == kind
                for row in spec.rows(drawn, layer)
            }
            looks = {(colour, *form) for colour, *form in looks if str(colour).startswith("#")}
            for (a, *form), (b, *other) in combinations(sorted(looks), 2):
                if (
                    form == other
                    and a != b
                    and not {style.letters(a), style.letters(b)} <= named
                    and not (on_ramp(a) and on_ramp(b))
                ):
                    out |= {(a, b)} if apart(a, b, eye) < APART else set()
    return out


def channels(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])


RAMP = np.stack([channels(colour) for colour in style.along_ramp(np.linspace(0, 1, 2000))])


def on_ramp(colour):
    return np.abs(RAMP - channels(colour)).max(axis=1).min() <= 1


def test_the_ramp_grows_lighter_all_the_way():
    light = [lab(colour, GREY)[0] for colour in style.along_ramp(np.linspace(0, 1, 20))]
    assert np.all(np.diff(light) > 1)


@pytest.mark.parametrize("eye", [GREY, DEUTERANOPE], ids=["grey", "deuteranope"])
def test_marks_of_every_kind_are_told_apart(examples, figures_of, eye):
    drawn = [figure for _, figure in examples.values()]
    drawn += [figure for figures in figures_of("LSTM_AHEAD").values() for figure in figures]
    assert {figure.name: pairs for figure in drawn if (pairs := same_but_for_colour(figure, eye))} == {}


ALIKE = [(GREY, ["#0072B2", "#CC5500"]), (DEUTERANOPE, ["#6b7d1e", "#c0392b"])]


@pytest.mark.parametrize(("eye", "colours"), ALIKE, ids=["grey", "deuteranope"])
@pytest.mark.parametrize("mark", [marks.points, marks.line])
def test_the_check_of_marks_can_fail(mark, eye, colours):
    table = pl.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "colour": colours})
    table = table.with_columns(label="colour")
    x, y = (style.log_axis(channel, name, name, 1, 2) for channel, name in ((alt.X, "x"), (alt.Y, "y")))
    drawn = mark(table, x, y)
    assert same_but_for_colour(alt.layer(drawn), eye) == {tuple(colours)}
    assert not same_but_for_colour(alt.layer(drawn), NORMAL)
    assert not same_but_for_colour(alt.layer(drawn, marks.end_labels(table, x, y, 100)), eye)
    other = mark(table[1:], x, y, **({"shape": "cross"} if mark is marks.points else {"dash": [4, 2]}))
    assert not same_but_for_colour(alt.layer(mark(table[:1], x, y), other), eye)


def contrast_with_white(colour):
    return 1.05 / (luminance(colour) + 0.05)


@pytest.mark.parametrize("family", style.FAMILY_COLOURS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_shade_of_a_family_is_readable_on_white_and_differs(family, count):
    shades = style.shades(style.FAMILY_COLOURS[family], count)
    assert len(set(shades)) == count
    assert min(contrast_with_white(shade) for shade in shades) >= 4.2


def test_the_names_of_lines_along_the_ramp_can_be_read():
    dark, *_, bright = ramp = style.along_ramp(np.linspace(0, 1, 6))
    assert min(contrast_with_white(style.letters(colour)) for colour in ramp) >= 4.5
    assert style.letters(dark) == dark
    assert contrast_with_white(bright) < 3, "as it is, it cannot"


def pale(drawn):
    """Letters on white whose contrast is less than 4.5; numbers in cells stand on the cell's colour."""
    out = set()
    for layers in spec.panels(drawn):
        texts = [layer for layer in layers if layer["mark"]["type"] == "text"]
        if not any(layer["mark"]["type"] == "rect" and "color" in layer["encoding"] for layer in layers):
            looks = {str(look(text, "color", row)) for text in texts for row in spec.rows(drawn, text)}
            out |= {colour for colour in looks if colour[0] == "#" and contrast_with_white(colour) < 4.5}
    return out


def test_names_in_every_kind_of_figure_can_be_read(examples, figures_of):
    drawn = [figure for _, figure in examples.values()]
    drawn += [figure for figures in figures_of("LSTM_AHEAD").values() for figure in figures]
    assert {figure.name: colours for figure in drawn if (colours := pale(figure))} == {}


def test_the_contrast_checks_can_fail():
    assert contrast_with_white("#F0E442") < 2
    table = pl.DataFrame({"x": [1.0], "y": [1.0], "label": ["a"], "colour": ["#F0E442"]})
    named = marks.chart_of(table).mark_text().encode(x="x:Q", y="y:Q", text="label:N", color=marks.COLOUR)
    assert pale(alt.layer(named)) == {"#F0E442"}


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


def test_a_name_and_its_value_stay_on_one_line():
    lines = style.wrap("the loss at D = 21.1B falls where N ≥ 1.5K", 12)
    assert [line.replace("\u00a0", " ") for line in lines] == [
        "the loss at",
        "D = 21.1B",
        "falls where",
        "N ≥ 1.5K",
    ]


def test_long_titles_wrap_and_lose_no_word():
    title = "word " * 60
    lines = style.wrap(title, 40)
    assert max(len(line) for line in lines) <= 40
    assert " ".join(lines).split() == title.split()


def test_log_ticks_lie_in_the_range():
    assert style.log_ticks(9_000, 1_100_000) == [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6]
    assert style.log_ticks(1, 1e6) == [10.0**k for k in range(7)]
