import polars as pl
import pytest
import spec

from isoloss.analysis import contexts as measured
from isoloss.figures import context_laws


@pytest.fixture(scope="module")
def contexts(ahead):
    return measured.measure(ahead)


def test_the_legend_prints_the_law(contexts):
    figure = context_laws.laws_figure(contexts)
    (names,) = spec.of_mark(figure, "text")
    labels = [row["label"] for row in spec.rows(figure, names)]
    assert len(labels) == len(contexts.sizes)
    assert all(" T^-0.6" in label and label.startswith("N = ") for label in labels)


def test_steps_are_drawn_on_a_log_axis_one_curve_an_octave(contexts):
    figure = context_laws.steps_figure(contexts)
    (curves,) = spec.of_mark(figure, "line")
    assert curves["encoding"]["x"]["scale"]["type"] == "log"
    mean = contexts.steps.group_by("from_token", "step").agg(pl.col("loss").mean())
    shown = pl.DataFrame(spec.rows(figure, curves))
    assert sorted(shown["loss"]) == sorted(mean["loss"])
    assert contexts.steps["from_token"].unique().sort().to_list() == [1, 2, 3, 5, 9, 17, 33, 65]
    assert contexts.steps["step"].min() == 1
    assert "in 2 of 2 seeds" in figure.title


def test_measured_curve_and_law_of_a_size_share_its_colour(contexts):
    figure = context_laws.laws_figure(contexts)
    measured, law = spec.of_mark(figure, "line")
    assert measured["encoding"]["color"] == law["encoding"]["color"]
    assert law["mark"]["strokeDash"] == [5, 4]
    assert sorted(row["loss"] for row in spec.rows(figure, measured)) == sorted(figure.table["loss"])
    low, high = measured["encoding"]["color"]["scale"]["domain"]
    sizes = [size.profile.params for size in contexts.sizes]
    assert (low, high) == (min(sizes), max(sizes))
