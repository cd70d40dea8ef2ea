import pytest

from isoloss.analysis import contexts as measured
from isoloss.figures import context_laws


@pytest.fixture(scope="module")
def contexts(ahead):
    return measured.measure(ahead)


def test_the_legend_prints_the_law(contexts):
    labels = [row["label"] for row in context_laws.laws_figure(contexts).chart.layer[-1].data.values]
    assert all(" T^-0.6" in label and label.startswith("N = ") for label in labels)


def test_steps_are_drawn_on_a_log_axis_one_curve_an_octave(contexts):
    figure = context_laws.steps_figure(contexts)
    spec = figure.chart.to_dict()
    assert spec["encoding"]["x"]["scale"]["type"] == "log"
    assert contexts.steps["from_token"].unique().sort().to_list() == [1, 2, 3, 5, 9, 17, 33, 65]
    assert contexts.steps["step"].min() == 1
    assert "in 2 of 2 seeds" in figure.title
