import polars as pl
import pytest
import spec
import story

from isoloss.analysis import by_params, by_tokens
from isoloss.figures import loss_by_params, loss_by_tokens


def test_title_and_marks_follow_the_story(ahead, inside):
    figures = {
        name: loss_by_params.figure(by_params.measure(study))
        for name, study in (("ahead", ahead), ("inside", inside))
    }
    assert "LSTM is ahead at all 5 sizes" in figures["ahead"].title
    assert "Transformer is ahead at 2 of 5" in figures["inside"].title
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


def test_each_d_has_its_panel(ahead):
    figure = loss_by_tokens.figure(by_tokens.measure(ahead))
    assert figure.table["tokens"].unique().sort().to_list() == list(story.D_POINTS)
    assert "5, 5 and 5" in figure.title


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
    wanted = data.points.group_by("curve", "params").agg(pl.col("loss").mean())["loss"]
    assert sorted(row["loss"] for row in spec.rows(figure, means)) == pytest.approx(sorted(wanted))
    assert laws["mark"]["strokeDash"] == [6, 4]
    ours = next(curve for curve in data.curves if curve.name == "Transformer")
    rows = [row for row in spec.rows(figure, laws) if row["curve"] == "Transformer"]
    predicted = ours.fit.predict(params=[row["params"] for row in rows]).loss
    assert [row["law"] for row in rows] == pytest.approx(predicted.tolist())


def test_panels_of_each_d_draw_one_table(ahead):
    figure = loss_by_tokens.figure(by_tokens.measure(ahead))
    drawn = spec.specification(figure)
    assert drawn["facet"]["sort"] == ["D = 524K", "D = 1.05M", "D = 2.1M"]
    assert all("data" not in layer for layer in spec.layers(figure))
    assert sorted(row["loss"] for row in spec.rows(figure)) == sorted(figure.table["loss"])
    line, point = spec.layers(figure)
    assert line["encoding"]["y"]["aggregate"] == "mean"
    assert point["encoding"]["shape"]["scale"]["domain"] == point["encoding"]["color"]["scale"]["domain"]
