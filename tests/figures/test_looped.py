import pytest

from isoloss.analysis import loops
from isoloss.figures import looped_grid


@pytest.fixture(scope="module")
def data(ahead):
    return loops.measure(ahead)


def test_the_grid_has_a_panel_for_each_size_and_loop_count(data):
    figure = looped_grid.grid_figure(data)
    spec = figure.chart.to_dict()
    assert spec["facet"]["row"]["sort"] == ["T_m = 1", "T_m = 2", "T_m = 4"]
    assert [name[:4] for name in spec["facet"]["column"]["sort"]] == ["N = "] * 3
    colour = spec["spec"]["layer"][0]["encoding"]["color"]["scale"]
    dash = spec["spec"]["layer"][0]["encoding"]["strokeDash"]["scale"]
    assert (colour["domain"], dash["range"]) == (["Real", "Pred"], [[1, 0], [5, 3]])
    log = looped_grid.grid_figure(data, log=True).chart.to_dict()
    x = log["spec"]["layer"][0]["encoding"]["x"]
    assert x["scale"]["type"] == "log"
    assert "log scale" in x["title"]


def test_residuals_are_real_minus_predicted(data):
    table = looped_grid.residual_figure(data).table
    assert (table["residual"] - (table["real"] - table["predicted"])).abs().max() < 1e-12
