import re
from dataclasses import replace

import polars as pl
import pytest
import story

from isoloss.analysis import loops
from isoloss.analysis.loop_laws import EARLY, PARTS
from isoloss.errors import Refusal
from isoloss.figures import loop_worth, looped_grid


@pytest.fixture(scope="module")
def data(ahead):
    return loops.measure(ahead)


@pytest.fixture(scope="module")
def wide(told):
    few = replace(story.FEW, transformer_widths=(), lstm_widths=(), hostile=False)
    many = replace(few, looped_widths=(24, 40, 64, 96), loops=(1, 2, 4, 8), depth_widths=(24, 36, 52, 80))
    return loops.measure(told(many))


def test_the_grid_has_a_panel_for_each_size_and_loop_count(data):
    spec = looped_grid.grid_figure(data).chart.to_dict()
    assert spec["facet"]["row"]["sort"] == ["T_m = 1", "T_m = 2", "T_m = 4"]
    assert [name[:4] for name in spec["facet"]["column"]["sort"]] == ["N = "] * 3
    lines = spec["spec"]["layer"][1]["encoding"]
    assert (lines["color"]["scale"]["domain"][:2], lines["strokeDash"]["scale"]["range"][:2]) == (
        ["Real", "Pred"],
        [[1, 0], [5, 3]],
    )
    assert lines["x"]["scale"]["type"] == "log"


@pytest.mark.parametrize("part", PARTS)
def test_axes_are_named_once_for_all_panels(data, part):
    spec = looped_grid.grid_figure(data, part).chart.to_dict()
    lines = spec["spec"]["layer"][1]["encoding"]
    assert (lines["x"]["title"], lines["y"]["title"]) == (None, None)
    assert spec["facet"]["row"]["header"]["title"].lower() == f"{PARTS[part]} (nats)"
    assert spec["facet"]["column"]["header"]["title"] == "Training tokens D (log scale)"


def test_what_was_not_fitted_is_shaded_and_has_no_law(data):
    figure = looped_grid.grid_figure(data)
    shade = figure.chart.to_dict()["spec"]["layer"][0]
    end = EARLY * story.D_POINTS[-1]
    assert (shade["mark"]["type"], shade["encoding"]["x2"]["datum"]) == ("rect", end)
    drawn = figure.table.filter(pl.col("kind") != "Real")
    assert drawn["tokens"].min() > end


def test_the_grid_draws_what_a_law_says_of_loops_it_has_not_seen(wide):
    figure = looped_grid.grid_figure(wide)
    assert set(figure.table["kind"]) == {"Real", "Pred", "Pred, this T_m left out"}
    unseen = figure.table.filter(pl.col("kind") == "Pred, this T_m left out")
    assert set(unseen["recurrence"]) == {1, 2, 4, 8}
    worst = r"where it was fitted, by at most [\d.]+% with (an? (T_m|N)|the last half) left out"
    assert re.search(worst, figure.title)


def test_no_figure_names_what_only_the_code_knows(told):
    flat = replace(story.FEW, transformer_widths=(), lstm_widths=(), loops=(1, 2, 4))
    data = loops.measure(told(replace(flat, looped=story.LoopLaw(C=1e-6, entropy_weight=0.0))))
    for part in PARTS:
        figure = looped_grid.grid_figure(data, part)
        assert "shifted" not in figure.subtitle + figure.title


def test_residuals_are_real_minus_predicted(data):
    figure = looped_grid.residual_figure(data)
    table = figure.table
    assert (table["residual"] - (table["real"] - table["predicted"])).abs().max() < 1e-12
    assert f"{(table['residual'] ** 2).mean() ** 0.5:.3f} nats" in figure.title


def test_exits_are_dodged_and_have_intervals(data):
    figure = looped_grid.exits_figure(data)
    layers = figure.chart.to_dict()["spec"]["layer"]
    assert [layer["encoding"].get("xOffset", {}).get("field") for layer in layers] == [None, "loss", "loss"]
    assert figure.table.select((pl.col("low") < pl.col("change")) & (pl.col("change") < pl.col("high")))[
        "low"
    ].all()
    assert figure.table.height == 3 * 2 * len(story.LSTM_AHEAD.looped_widths)


def test_without_one_loop_there_is_no_change_to_draw(data):
    with pytest.raises(Refusal, match="no size was trained both"):
        looped_grid.exits_figure(replace(data, gains=(), mean_gains=()))


def test_what_loops_are_worth_is_drawn_on_both_axes(wide):
    figure = loop_worth.figure(wide.worth)
    assert figure.title.startswith("A second loop is worth ")
    left, right = figure.chart.to_dict()["hconcat"]
    assert left["layer"][1]["encoding"]["x"]["field"] == "params"
    assert right["layer"][1]["encoding"]["x"]["field"] == "effective"
    one = figure.table.filter(pl.col("recurrence") == 1)
    assert one["effective"].to_list() == pytest.approx(one["params"].to_list())
    assert (figure.table["law"] - figure.table["loss"]).abs().max() < 0.05
