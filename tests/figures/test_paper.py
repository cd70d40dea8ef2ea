"""For print: the column's width, 8 points, no title; a column that is too narrow is refused."""

import re

import altair as alt
import polars as pl
import pytest
import spec

from isoloss.errors import InputError
from isoloss.figures import export, gallery, paper, render
from isoloss.figures.figure import Figure
from isoloss.records import reference

GRIDS = {kind for kind in gallery.STUDY if kind.startswith("looped")}
"""Of more panels abreast than one column holds."""


@pytest.fixture(scope="module")
def printed(examples):
    """Every kind of figure as a paper prints it, by column and kind; or why it is refused."""
    return {
        column: {kind: _drawn(figure, column) for kind, (_, figure) in examples.items()}
        for column in paper.COLUMNS
    }


def _drawn(figure, column):
    try:
        return paper.svg(figure, column)
    except InputError as error:
        return error


def points(drawn, inches):
    """The sizes of its letters at this width."""
    pixels = float(re.search(r'viewBox="0 0 ([\d.]+)', drawn)[1])
    sizes = {float(size) for size in re.findall(r'font-size="([\d.]+)px"', drawn)}
    return [72 * inches * size / pixels for size in sizes]


@pytest.mark.parametrize(("column", "inches"), paper.COLUMNS.items())
def test_every_text_of_every_kind_is_of_eight_points_at_the_columns_width(examples, printed, column, inches):
    refused = {kind for kind, drawn in printed[column].items() if isinstance(drawn, InputError)}
    assert refused == (GRIDS if column == "single" else set())
    for kind in printed[column].keys() - refused:
        drawn = printed[column][kind]
        assert f'width="{inches}in"' in drawn
        sizes = points(drawn, inches)
        assert sizes == pytest.approx([8.0] * len(sizes), rel=0.02), kind
        assert examples[kind][1].title[:20] not in drawn


def not_embedded(pdf):
    """Names of fonts that the file does not bring along: those without the tag of a part of a font."""
    fonts = set(re.findall(rb"/BaseFont ?/([^\s/]+)", pdf))
    known = {font for font in fonts if re.match(rb"[A-Z]{6}\+", font)}
    return (fonts - known) or (fonts if pdf.count(b"/FontFile") < len(known) else set())


def test_every_kind_brings_its_fonts_along(printed):
    for kind, drawn in printed["double"].items():
        pdf = paper.pdf(drawn)
        assert b"/BaseFont" in pdf
        assert not not_embedded(pdf), kind


def test_the_checks_of_letters_and_fonts_can_fail(examples):
    screen = render.svg(examples["law"][1])
    assert max(points(screen, 3.25)) < 6
    assert not_embedded(b"<< /BaseFont /Helvetica >>") == {b"Helvetica"}
    assert not_embedded(b"<< /BaseFont /ABCDEF+Arial >>") == {b"ABCDEF+Arial"}


def test_on_a_screen_the_title_is_there_and_letters_are_larger(examples):
    drawn = render.svg(examples["law"][1])
    assert examples["law"][1].title.split()[0] in drawn
    assert "8px" not in set(re.findall(r'font-size="([\d.]+px)"', drawn))


def test_panels_side_by_side_stand_below_each_other_in_one_column(printed):
    height = {
        column: float(re.search(r'height="([\d.]+)in"', drawn["plan-allocation"])[1])
        for column, drawn in printed.items()
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


def names_cut(drawn, after=paper.AFTER_NAME):
    """Labels of each layer that are no longer told apart where their numbers are cut off."""
    out = []
    for layer in (
        layer for panel in spec.panels(drawn) for layer in panel if layer["mark"]["type"] == "text"
    ):
        if layer["encoding"]["text"].get("field") == "label":
            whole = {str(row["label"]) for row in spec.rows(drawn, layer)}
            if len({re.split(after, label)[0] for label in whole}) < len(whole):
                out.append(sorted(whole))
    return out


@pytest.mark.parametrize("name", reference.names()[1:])
def test_names_at_lines_stay_apart_in_one_column(examples, figures_of, name):
    drawn = [figure for figures in figures_of(name).values() for figure in figures]
    drawn += [figure for _, figure in examples.values()]
    assert [cut for figure in drawn for cut in names_cut(figure)] == []


def test_the_check_of_names_can_fail(figures_of):
    (figure,) = figures_of("reference/looped")["loss-by-params"]
    assert names_cut(figure, "[:,]")


def test_files_are_of_their_format_with_the_caption_beside_them(examples, tmp_path):
    _, figure = examples["law"]
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


def test_families_and_depths_have_shapes_of_their_own(figures_of):
    """What a grey printer cannot part by colour has another shape."""
    (figure,) = figures_of("LSTM_AHEAD")["loss-by-params"]
    drawn = figure.chart.to_dict(validate=False)
    shapes = re.findall(r'"shape": ?"([a-z-]+)"', str(drawn).replace("'", '"').replace('\\"', '"'))
    assert len(set(shapes)) == figure.table["curve"].n_unique() >= 4


def test_a_caption_has_the_labels_that_one_column_cuts(examples):
    _, figure = examples["context-laws"]
    one, two = paper.caption(figure), paper.caption(figure, "double")
    assert re.search(r"Labels: N = [\d.]+K: [\d.]+ \+ [\d.]+ T\^-", one)
    assert "Labels:" not in two
    _, plain = examples["residuals"]
    assert "Labels:" not in paper.caption(plain)
