"""The shape figure and its chapter, of a study on disk."""

from dataclasses import replace

import pytest
import spec
import story

from isoloss.analysis import shape
from isoloss.analysis.findings import findings
from isoloss.analysis.study import analyse
from isoloss.figures import shape as figures
from isoloss.report.sections import sections
from isoloss.teach.deck.study import questions

SHAPES = tuple(
    (("n_layer", layers), ("d_model", width * factor), ("n_head", 2))
    for factor in (1, 2, 4)
    for layers, width in ((1, 56), (2, 40), (3, 32), (8, 20))
) + tuple((("n_layer", 3), ("d_model", 64), ("n_head", heads)) for heads in (1, 8, 16))
NONE = replace(story.LSTM_AHEAD, transformer_widths=(), lstm_widths=(), loops=(), hostile=False)
BENT = replace(NONE, shapes=SHAPES, bends=(("aspect", 10.0, 0.02),))


@pytest.fixture(scope="module")
def analysis(told):
    return analyse(told(BENT))


def test_all_panels_share_one_axis_and_shade_what_is_flat(analysis):
    figure = figures.figure(analysis.shape)
    layers = spec.layers(figure)
    axes = {
        tuple(layer["encoding"]["y"]["scale"]["domain"])
        for layer in layers
        if "scale" in layer["encoding"].get("y", {})
    }
    assert len(axes) == 1
    assert all("log scale" in layer["encoding"]["x"]["title"] for layer in spec.of_mark(figure, "line"))
    shades = [spec.rows(figure, layer) for layer in spec.of_mark(figure, "rect")]
    (aspect,) = shades[0]
    assert 5 < aspect["x"] < 10.7 < aspect["end"] < 20
    assert "more compute" in str(spec.rows(figure, spec.of_mark(figure, "text")[-1]))


def test_the_table_holds_every_shape_and_white_is_what_is_inside_the_noise(analysis):
    figure = figures.figure(analysis.shape)
    assert figure.table.height == sum(curve.rows.height for curve in analysis.shape.curves) == 16
    white = [spec.rows(figure, layer) for layer in spec.of_mark(figure, "point")[1::2]]
    for row in (row for rows in white for row in rows):
        assert row["low"] <= 0


def test_only_a_study_of_shapes_has_the_chapter_and_the_finding(analysis, ahead):
    assert [section.anchor for section in sections(analysis)] == ["shape"]
    assert [finding.key for finding in findings(analysis.study)] == ["shape"]
    assert "shape" not in [section.anchor for section in sections(analyse(ahead))]
    assert "shape" not in [finding.key for finding in findings(ahead)]


def test_the_finding_has_one_number_a_ratio(analysis):
    (finding,) = findings(analysis.study)
    assert finding.sentence.endswith("costs at most 1% of loss.")
    assert [f"{panel} " in finding.sentence for panel in shape.PANELS] == [False, True, True]
    worth = finding.numbers["compute"]
    assert worth == pytest.approx(1.01 ** (1 / BENT.transformer.a) - 1, rel=0.1)
    assert "more compute" in finding.caveats[0]
    assert [one["verdict"] for one in finding.numbers["folds"]] == [c.verdict for c in analysis.shape.curves]
    assert questions(analysis)[0]["picture"] is not None


def test_a_study_of_shapes_that_has_not_begun_says_what_is_missing(told):
    waiting = told(replace(BENT, finished=False))
    (finding,) = findings(waiting)
    assert "Not answered: no 3 shapes of one size" in finding.sentence
    (section,) = sections(analyse(waiting))
    assert section.missing
