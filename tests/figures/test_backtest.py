from dataclasses import replace

import numpy as np
import pytest
import spec

from isoloss.figures import backtest as drawing
from isoloss.figures.render import render
from isoloss.plans.backtest import backtest
from isoloss.plans.standing import Standing

N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 1e11, 5)))
LOSS = 1.8 + 480 * N**-0.35 + 2000 * D**-0.37 + 0.01 * np.random.default_rng(0).standard_normal(N.size)


@pytest.fixture(scope="module")
def outcome():
    return backtest("chinchilla", {"params": N, "tokens": D}, LOSS)


@pytest.fixture(scope="module")
def figure(outcome):
    return drawing.figure(outcome)


def layers(figure):
    left, right = figure.chart.to_dict()["hconcat"]
    return left["layer"], right["layer"]


def test_every_run_and_every_prediction_is_in_the_table(outcome, figure):
    table = figure.table
    assert sorted(table["observed"]) == pytest.approx(sorted(LOSS))
    hidden = table.filter(run="hidden")
    assert hidden["predicted"].to_list() == [run.predicted for run in outcome.runs]
    assert hidden["low"].to_list() == [run.interval[0] for run in outcome.runs]
    for score in outcome.baselines:
        assert hidden[score.name].to_list() == list(score.predicted)
    assert table.filter(run="visible")["predicted"].null_count() == len(N) - len(outcome.runs)


def test_the_title_is_what_was_found(outcome, figure):
    assert outcome.standing is Standing.AHEAD
    assert "beats the best baseline" in figure.title
    assert "nearest run: 4.7%" in figure.title
    assert "6 rungs of N" in figure.shows


def test_the_losing_law_is_not_praised():
    """Negative control: a run that no law foresees turns the title round."""
    turned = backtest("chinchilla", {"params": N, "tokens": D}, np.where(N.max() == N, 3.1, LOSS))
    assert turned.standing is not Standing.AHEAD
    assert "beats the best" not in drawing.figure(turned).title


def test_the_scale_is_logarithmic_and_the_bars_start_at_zero(figure):
    left, right = layers(figure)
    for layer in left:
        assert layer["encoding"]["x"]["scale"]["type"] == "log"
        assert "log scale" in layer["encoding"]["x"]["title"]
    assert right[0]["encoding"]["x"]["scale"]["domain"][0] == 0


def test_intervals_are_drawn_where_there_are_any(outcome, figure):
    rules = [layer for layer in layers(figure)[0] if layer["mark"]["type"] == "rule"]
    assert len(rules) == 1
    left, _ = layers(drawing.figure(replace(outcome, coverage=None)))
    assert not [layer for layer in left if layer["mark"]["type"] == "rule"]


def test_hidden_runs_fill_the_panel(outcome, figure):
    """Not a corner of it: runs far below are left out, in scale and in loss."""
    left, _ = layers(figure)
    low, high = left[0]["encoding"]["x"]["scale"]["domain"]
    hidden = [run.scale for run in outcome.runs]
    assert np.log(high / min(hidden)) > 0.3 * np.log(high / low)
    assert low > min(outcome.visible_scale)
    assert figure.table.height == len(N)


def test_runs_of_one_scale_stand_side_by_side_and_single_ones_stay():
    scale = np.array([1e18, 1e18, 1e18, 1e19, 1e20])
    apart = drawing._spread(scale, np.array([3.0, 2.0, 2.5, 2.0, 1.0]))
    assert len(set(apart)) == 5
    assert apart[1] < apart[2] < apart[0]
    assert apart[3:] == pytest.approx(scale[3:])
    assert apart[:3].max() < 10**0.5 * 1e18


def test_it_renders(figure):
    picture = render(figure)
    assert picture.png.startswith(b"\x89PNG")
    assert "Training FLOPs" in picture.svg


def test_hidden_runs_their_prediction_and_the_baseline_differ_in_colour_and_shape(outcome, figure):
    points = spec.of_mark(figure, "point")
    looks = {(layer["encoding"]["color"]["value"], layer["encoding"]["shape"]["value"]) for layer in points}
    assert len(looks) == len(points) == 4
    _, baseline, predicted, observed = points
    for layer, column, wanted in (
        (baseline, "baseline", outcome.best_baseline.predicted),
        (predicted, "predicted", [run.predicted for run in outcome.runs]),
        (observed, "observed", [run.observed for run in outcome.runs]),
    ):
        assert [row[column] for row in spec.rows(figure, layer)] == list(wanted)


def test_bars_hold_the_miss_of_every_predictor_smallest_first(outcome, figure):
    (bars,) = spec.of_mark(figure, "bar")
    (panel,) = [part for part in spec.specification(figure)["hconcat"] if bars in part["layer"]]
    rows = spec.rows(figure, {**bars, **({"data": panel["data"]} if "data" in panel else {})})
    misses = [row["miss"] for row in rows]
    assert misses == sorted(misses)
    everyone = [outcome.score, outcome.forecast.score, *outcome.baselines]
    assert sorted(misses) == pytest.approx(sorted(100 * score.mean_abs_error for score in everyone))
