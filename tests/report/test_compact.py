"""A compact picture draws what the whole one drew: the same marks at the same places, the same words."""

import re

import altair as alt
import numpy as np
import polars as pl
import pytest

from isoloss.figures.render import number_ids
from isoloss.figures.style import configured
from isoloss.report.compact import compact
from isoloss.report.corners import path_through

TITLED = '<path transform="translate(1.23,4.56)" d="M1,0Z" fill="#000000"><title>N 1.2345</title></path>'


@pytest.fixture(scope="module")
def drawn():
    """Points of one look and points of several, a line, and words with long numbers."""
    import vl_convert

    rows = pl.DataFrame({"x": [i / 7 for i in range(40)], "y": [(i * 37 % 40) / 3 for i in range(40)]})
    base = alt.Chart(rows).encode(x="x:Q", y="y:Q")
    looks = alt.Color("y:Q", legend=None).scale(range=["#123456", "#fedcba"])
    chart = alt.layer(
        base.mark_line(), base.mark_point(filled=True), base.mark_point(filled=True).encode(color=looks)
    )
    spec = configured(chart.properties(title="L = 1.8913 + 495.73 N")).to_dict(validate=False)
    return number_ids(vl_convert.vegalite_to_svg(spec), "here")


def through(path):
    """Corners of a path whose steps are told from the last one."""
    start, steps = path.removeprefix("M").removesuffix("Z").split("l")
    x, y = map(float, start.split(","))
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", steps)]
    corners = [(x, y)]
    for across, down in zip(numbers[::2], numbers[1::2], strict=True):
        x, y = x + across, y + down
        corners.append((x, y))
    return corners


def places(svg):
    """Where marks stand, in order of x and y."""
    corners = [
        corner
        for line in re.findall(r'd="([^"]+)" fill="none" style="marker', svg)
        for corner in through(line)
    ]
    used = re.findall(r'<use href="#[^"]+" x="([\d.]+)" y="([\d.]+)"', svg)
    whole = re.findall(r'<path[^>]* transform="translate\(([\d.]+),([\d.]+)\)" d="M[\d.]+,0A', svg)
    return sorted((float(x), float(y)) for x, y in [*corners, *used, *whole])


def test_marks_stand_where_they_stood_in_a_fraction_of_the_bytes(drawn):
    small = compact(drawn, "here")
    assert len(places(small)) == len(places(drawn)) == 80
    for (x, y), (x_2, y_2) in zip(places(drawn), places(small), strict=True):
        assert abs(x - x_2) <= 0.051
        assert abs(y - y_2) <= 0.051
    assert len(small) < 0.6 * len(drawn)
    assert "marker:url" in small


def test_words_keep_their_digits(drawn):
    words = re.findall(r">([^<>]+)</text>", drawn)
    assert "L = 1.8913 + 495.73 N" in words
    assert re.findall(r">([^<>]+)</text>", compact(drawn, "here")) == words


def test_every_reference_leads_to_an_id_and_two_pictures_share_none(drawn):
    ids = []
    for name in ("here", "there"):
        small = compact(drawn.replace('"here-', f'"{name}-').replace("#here-", f"#{name}-"), name)
        own = re.findall(r' id="([^"]+)"', small)
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', small)) <= set(own)
        ids += own
    assert len(ids) == len(set(ids)) > 4


def test_titles_stay_or_go():
    svg = f"<svg>{TITLED * 3}</svg>"
    assert compact(svg, "a").count("<title>N 1.2345</title>") == 3
    assert "title" not in compact(svg, "a", titles=False)


def test_a_gradient_keeps_its_direction():
    """Where a line that says nothing ends at 0, a gradient ends at the other side."""
    ramp = '<linearGradient id="g" x1="0" x2="0" y1="1" y2="0"><stop offset="0.25"/></linearGradient>'
    small = compact(f'<svg>{ramp}<line x2="40" y2="0" stroke="#000"/></svg>', "a")
    assert ramp in small
    assert '<line x2="40" stroke="#000"/>' in small


def test_rules_of_one_look_share_it_and_others_keep_theirs():
    rule = '<line transform="translate({},1)" x2="0" y2="-3" stroke="#000" opacity="0.45"/>'
    group = '<svg><g class="mark-rule role-mark">{}</g></svg>'
    small = compact(group.format(rule.format(1) + rule.format(2) + rule.format(3)), "a")
    assert '<g class="mark-rule" stroke="#000" stroke-opacity="0.45">' in small
    assert small.count(",1l0,-3") == 3
    mixed = group.format(rule.format(1) + rule.format(2).replace("#000", "#111") + rule.format(3))
    assert compact(mixed, "a").count(' stroke="#000" opacity="0.45"/>') == 2


def off_line(point, corners):
    """Pixels from a point to the nearest stretch of a line."""
    point = np.array(point)
    starts, ends = np.array(corners[:-1]), np.array(corners[1:])
    along = ends - starts
    length = np.maximum((along**2).sum(1), 1e-12)
    share = np.clip(((point - starts) * along).sum(1) / length, 0, 1)
    return np.hypot(*(starts + share[:, None] * along - point).T).min()


def test_a_line_keeps_its_way_in_fewer_corners():
    curve = [(i / 2, 100 + 80 * np.sin(i / 40)) for i in range(400)]
    straight = [(i / 3, 200 - i / 7) for i in range(400)]
    back = [*((float(i), 5.0) for i in range(50)), *((float(i), 5.0) for i in range(48, 0, -1))]
    for points in (curve, straight, back):
        path = "M" + "L".join(f"{x:.3f},{y:.3f}" for x, y in points)
        small = re.search(r' d="([^"]+)"', compact(f'<svg><path d="{path}" fill="none"/></svg>', "a"))[1]
        corners = through(small)
        assert max(off_line(point, corners) for point in points) <= 0.13
        assert len(corners) < 0.3 * len(points)
    assert max(corners)[0] == 49
    # Negative control: the straight line between the ends of the curve is far from it.
    assert max(off_line(point, [curve[0], curve[-1]]) for point in curve) > 10


def test_a_path_is_written_short_and_ends_where_it_should():
    assert path_through([(1, 2), (1.25, -3), (0.04, 0)]) == "M1,2l.2-5-1.2 3"
    assert path_through([(0.5, 1)]) == "M.5,1l"
    points = [(0.07 * i, 0.13 * i) for i in range(1000)]
    assert through(path_through(points))[-1] == pytest.approx((69.9, 129.9), abs=0.06)
