"""Marks name themselves on a page as long as it stays small: the first pictures keep their names."""

import altair as alt
import polars as pl

from isoloss.figures.figure import Figure
from isoloss.figures.render import Picture
from isoloss.report import publish


def figure(name):
    return Figure(name, alt.Chart(), "t", "d", "s", "w", pl.DataFrame({"x": [1.0]}))


def pictured(marks):
    mark = '<path transform="translate(1,2)" d="M1,0Z"><title>N 1</title></path>'
    return Picture(f'<svg viewBox="0 0 9 9">{mark * marks}</svg>', b"", b"")


def test_the_first_pictures_keep_the_names_of_their_marks(monkeypatch):
    monkeypatch.setattr(publish, "TITLED", 10)
    marks = {"first": 6, "crowded": 5, "last": 4}
    drawn = dict(
        publish.wide_pictures(list(map(figure, marks)), {name: pictured(n) for name, n in marks.items()})
    )
    assert {name: picture.count("N 1</title>") for name, picture in drawn.items()} == {
        "first": 6, "crowded": 0, "last": 4
    }  # fmt: skip
