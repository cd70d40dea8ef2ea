from dataclasses import replace

import polars as pl
import pytest
import spec
import story

from isoloss.analysis import by_params, gap_by_tokens
from isoloss.analysis.points import Curve
from isoloss.errors import Refusal
from isoloss.figures import gap_by_tokens as gap_figure
from isoloss.figures import loss_by_params
from isoloss.records import load, reference


def test_title_and_marks_follow_the_story(ahead, inside):
    figures = {
        name: loss_by_params.figure(by_params.measure(study))
        for name, study in (("ahead", ahead), ("inside", inside))
    }
    assert "LSTM is ahead at all 5 sizes" in figures["ahead"].title
    assert "Transformer at others (N = " in figures["inside"].title
    assert spec.of_mark(figures["inside"], "rule")
    assert not spec.of_mark(figures["ahead"], "rule")


def test_the_parameter_axis_is_logarithmic_and_says_so(ahead):
    layers = spec.layers(loss_by_params.figure(by_params.measure(ahead)))
    axes = [layer["encoding"]["x"] for layer in layers if "title" in layer["encoding"]["x"]]
    assert axes
    assert all(axis["scale"]["type"] == "log" and "log scale" in axis["title"] for axis in axes)


def test_every_drawn_point_is_in_the_table(ahead):
    data = by_params.measure(ahead)
    table = loss_by_params.figure(data).table
    last = ahead.table().filter(pl.col("cooled") & (pl.col("tokens") == story.D_POINTS[-1]))
    wanted = last.filter(pl.col("family").is_in(["transformer", "lstm"]))["loss"]
    assert sorted(table["loss"]) == sorted(wanted)


def test_curves_of_one_family_differ_in_shade_and_in_shape(ahead):
    figure = loss_by_params.figure(by_params.measure(ahead))
    (points,) = spec.of_mark(figure, "point")
    rows = pl.DataFrame(spec.rows(figure, points))
    looks = rows.select("curve", "colour", "shape").unique()
    assert looks.height == rows["curve"].n_unique() == 4
    lstms = looks.filter(pl.col("curve").str.contains("LSTM"))
    assert lstms["colour"].n_unique() == lstms["shape"].n_unique() == 3
    assert sorted(rows["loss"]) == sorted(figure.table["loss"])


def test_means_are_those_of_the_seeds_and_laws_are_dashed(ahead):
    data = by_params.measure(ahead)
    figure = loss_by_params.figure(data)
    means, laws = spec.of_mark(figure, "line")
    lawless = [curve.name for curve in data.curves if isinstance(curve.fit, Refusal)]
    wanted = data.points.filter(pl.col("curve").is_in(lawless)).group_by("curve", "params")
    wanted = wanted.agg(pl.col("loss").mean())["loss"]
    assert sorted(row["loss"] for row in spec.rows(figure, means)) == pytest.approx(sorted(wanted))
    assert laws["mark"]["strokeDash"] == [6, 4]
    ours = next(curve for curve in data.curves if curve.name == "Transformer")
    rows = [row for row in spec.rows(figure, laws) if row["curve"] == "Transformer"]
    predicted = ours.fit.predict(params=[row["params"] for row in rows]).loss
    assert [row["law"] for row in rows] == pytest.approx(predicted.tolist())


def test_every_family_has_a_colour_and_a_shape_of_its_own():
    rows = pl.DataFrame({"params": [1], "seed": [0], "loss": [3.0]})
    names = ["transformer", "lstm", "gated", "mixer", "ssm"]
    refused = Refusal("too few sizes", mend="add sizes")
    looks = loss_by_params.looks_of([Curve(name, name, rows, refused) for name in names])
    drawn = pl.concat(pl.select(columns) for _, columns in looks)
    assert drawn["colour"].n_unique() == drawn["shape"].n_unique() == 5


def test_the_gap_figure_draws_every_gap_its_line_and_where_it_ends(told):
    law = story.FEW.transformer
    few = replace(story.FEW, transformer=replace(law, lag=0.3), wander=0.004)
    (pair,) = gap_by_tokens.measure(told(few)).pairs.values()
    drawn = gap_figure.figure(pair)
    points, zeros = spec.of_mark(drawn, "point")
    assert sorted(row["gap"] for row in spec.rows(drawn, points)) == sorted(drawn.table["difference"])
    assert len(spec.rows(drawn, zeros)) == sum(size.zero is not None for size in pair.sizes) > 0
    assert " parameters the LSTM's lead " in drawn.title
    assert drawn.shows.startswith("The LSTM's lead shrinks 0.")
    (line, _) = spec.of_mark(drawn, "line")
    assert line["encoding"]["x"]["scale"]["type"] == "log"


def test_a_bar_beyond_a_line_leaves_it_out_where_the_point_misses():
    (pair,) = gap_by_tokens.measure(load(reference.folder("reference"))).pairs.values()
    held = [(size, tokens, check) for size in pair.sizes for tokens, check in size.checks.items()]
    assert len(held) == 2
    figure = gap_figure.figure(pair)
    rows = [row for layer in spec.of_mark(figure, "point") for row in spec.rows(figure, layer)]
    for size, tokens, check in held:
        gap, line = size.gaps[tokens].difference.value, float(size.at(tokens))
        (drawn,) = [row for row in rows if row["gap"] == gap]
        assert (drawn["low"] - line, drawn["high"] - line) == pytest.approx((check.low, check.high))
        assert drawn["low"] < line < drawn["high"], "no miss"
        assert drawn["low"] < gap < drawn["high"]
