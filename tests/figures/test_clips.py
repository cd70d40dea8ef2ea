"""Clips go where they cut nothing, and the picture stays as it was."""

import re
from io import BytesIO

import altair as alt
import numpy as np
import pytest
import vl_convert
from PIL import Image, ImageChops

from isoloss.figures import render
from isoloss.figures.clips import without_idle_clips


def panel(*marks, beyond=()):
    """Vega's SVG of points and a line through (0, 0) to (9, 9) and ``beyond``, in a panel from -1 to 10."""
    rows = [{"x": float(i), "y": float(i)} for i in (*range(10), *beyond)]
    scale = alt.Scale(domain=[-1, 10], nice=False)
    base = alt.Chart(alt.InlineData(values=rows)).encode(alt.X("x:Q").scale(scale), alt.Y("y:Q").scale(scale))
    layers = [getattr(base, f"mark_{mark}")(clip=True) for mark in marks]
    return vl_convert.vegalite_to_svg(alt.layer(*layers).to_dict(), vl_version=render.VEGA_LITE)


@pytest.mark.parametrize("mark", ["line", "point", "rule", "area"])
def test_a_clip_goes_where_all_lies_inside_and_stays_where_something_does_not(mark):
    assert "clip-path=" in panel(mark)
    assert "clip" not in without_idle_clips(panel(mark)).lower()
    outside = panel(mark, beyond=[30])
    assert without_idle_clips(outside) == outside


def test_of_two_marks_only_the_one_that_reaches_out_is_clipped():
    drawn = panel("point", "line", beyond=[30]).replace("clip1", "other")
    kept = without_idle_clips(drawn + panel("line"))
    assert kept.count("clip-path=") == kept.count("<clipPath") == 2


def test_what_it_cannot_measure_stays_clipped():
    curved = panel("line").replace(' d="M', ' d="M0,0Q1,1,2,2L')
    assert without_idle_clips(curved) == curved
    nested = panel("line").replace("<path aria-label=", "<g></g><path aria-label=")
    assert without_idle_clips(nested) == nested


def test_pictures_keep_their_pixels_and_most_of_their_clips_go(examples, monkeypatch):
    """Points on the edge of a panel may be whole now, so a few pixels may differ."""
    figures = [examples[kind][1] for kind in ("law", "profiles", "backtest")]
    after = [render.svg(figure) for figure in figures]
    monkeypatch.setattr(render, "without_idle_clips", lambda svg: svg)
    before = [render.svg(figure) for figure in figures]
    for old, new in zip(before, after, strict=True):
        assert new.count("clip-path=") < old.count("clip-path=") / 3
        assert changed(old, new) < 2e-4
    assert changed(before[0], re.sub("(<g[^>]*) clip-path", r'\1 opacity="0" x', before[0])) > 2e-3


def changed(first, second):
    """The share of pixels that differ to the eye."""
    one, two = (Image.open(BytesIO(vl_convert.svg_to_png(drawn))).convert("RGB") for drawn in (first, second))
    return float(np.mean(np.array(ImageChops.difference(one, two)).max(axis=-1) > 48))
