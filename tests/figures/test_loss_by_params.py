import polars as pl
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
    marks = {
        name: [layer.to_dict()["mark"]["type"] for layer in f.chart.layer] for name, f in figures.items()
    }
    assert "rule" in marks["inside"]
    assert "rule" not in marks["ahead"]


def test_the_parameter_axis_is_logarithmic_and_says_so(ahead):
    spec = loss_by_params.figure(by_params.measure(ahead)).chart.to_dict()
    axes = [layer["encoding"]["x"] for layer in spec["layer"] if "title" in layer["encoding"]["x"]]
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
