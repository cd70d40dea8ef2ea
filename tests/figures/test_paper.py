"""For print: the column's width, 8 points, no title; a column that is too narrow is refused."""

import re
from dataclasses import replace

import altair as alt
import fitted
import polars as pl
import pytest
import story

from isoloss.errors import InputError
from isoloss.figures import export, gallery, paper, render
from isoloss.figures.figure import Figure


@pytest.fixture(scope="module")
def figures(ahead):
    law = fitted.fitted("chinchilla")
    made = [gallery.fit_figures_of(law, kind)[0] for kind in ("law", "plan-allocation", "loss-by-ratio")]
    return [
        *made,
        *gallery.study_figures(ahead, "loss-by-params"),
        *gallery.study_figures(ahead, "gap-by-tokens"),
    ]


@pytest.mark.parametrize(("column", "inches"), paper.COLUMNS.items())
def test_every_text_is_of_eight_points_at_the_columns_width(figures, column, inches):
    for figure in figures:
        drawn = paper.svg(figure, column)
        assert f'width="{inches}in"' in drawn
        pixels = float(re.search(r'viewBox="0 0 ([\d.]+)', drawn)[1])
        sizes = {float(size) for size in re.findall(r'font-size="([\d.]+)px"', drawn)}
        points = [72 * inches * size / pixels for size in sizes]
        assert points == pytest.approx([8.0] * len(points), rel=0.02)
        assert figure.title[:20] not in drawn


def test_on_a_screen_the_title_is_there_and_letters_are_larger(figures):
    drawn = render.svg(figures[0])
    assert figures[0].title.split()[0] in drawn
    assert "8px" not in set(re.findall(r'font-size="([\d.]+px)"', drawn))


def test_panels_side_by_side_stand_below_each_other_in_one_column(figures):
    by_name = {figure.name: figure for figure in figures}
    height = {
        column: float(re.search(r'height="([\d.]+)in"', paper.svg(by_name["plan-allocation"], column))[1])
        for column in paper.COLUMNS
    }
    assert height["single"] > 1.5 * height["double"]


def test_a_figure_of_many_panels_asks_for_two_columns():
    rows = pl.DataFrame({"x": [1.0, 2.0] * 8, "y": [1.0, 2.0] * 8, "panel": [str(i // 2) for i in range(16)]})
    base = alt.Chart(alt.InlineData(values=rows.to_dicts())).mark_line().encode(x="x:Q", y="y:Q")
    long = "a name that leaves a panel in one column no room at all, whatever is done to it"
    wide = base.properties(width=200).encode(
        y=alt.Y("panel:N", axis=alt.Axis(labelExpr=f"'{long}'", labelLimit=900))
    )
    figure = Figure("wide", wide, "t", "d", "s", "w", rows)
    with pytest.raises(InputError, match=r"(?s)3.25 inches are too narrow.*--width double"):
        paper.svg(figure)


def test_files_are_of_their_format_with_the_caption_beside_them(figures, tmp_path):
    figure = figures[0]
    written = export.write(figure, tmp_path / "law.pdf", "paper")
    assert [path.name for path in written] == ["law.pdf", "law.txt"]
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", written[0].read_bytes())
    assert float(box[1]) == pytest.approx(72 * 3.25, abs=0.1)
    caption = written[1].read_text("utf-8")
    assert caption.startswith(figure.title)
    assert f"Alt text: {figure.description}" in caption
    assert export.write(figure, tmp_path / "law.csv") == [tmp_path / "law.csv"]
    assert export.write(figure, tmp_path / "law.png")[0].read_bytes().startswith(b"\x89PNG")
    for path, style, column in (
        ("law.gif", "screen", "single"),
        ("a.svg", "print", "single"),
        ("a.svg", "paper", "3"),
    ):
        with pytest.raises(InputError, match="is not known"):
            export.write(figure, tmp_path / path, style, column)


def test_families_and_depths_have_shapes_of_their_own(told):
    """What a grey printer cannot part by colour has another shape."""
    (figure,) = gallery.study_figures(told(replace(story.LSTM_AHEAD, hostile=False)), "loss-by-params")
    drawn = figure.chart.to_dict(validate=False)
    shapes = re.findall(r'"shape": ?"([a-z-]+)"', str(drawn).replace("'", '"').replace('\\"', '"'))
    assert len(set(shapes)) == figure.table["curve"].n_unique() >= 4
