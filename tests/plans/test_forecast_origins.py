"""What hiding a table's largest runs tells: the side of an edge, whole runs, how far they were missed."""

import numpy as np
import pytest

from isoloss.plans.forecast import forecast
from isoloss.plans.forecast.origins import error_rate
from isoloss.plans.forecast.runs import log_runs

AT = {"params": [5e9], "tokens": [4e11]}


def loss_at(N, D):
    return 1.8 + 0.5 * (N / 1e8) ** -0.35 + 0.6 * (D / 1e10) ** -0.37


def asked(N, D, loss, **options):
    return forecast({"params": N, "tokens": D}, loss, AT, **options)


def isoflop():
    """Six budgets of seven sizes: two fifths of the range of compute end at a budget."""
    flops = np.repeat(np.geomspace(1e18, 1e21, 6), 7)
    params = 0.1 * (flops / 6) ** 0.5 * np.tile(np.geomspace(0.2, 5, 7), 6)
    return params, flops / 6 / params


def square():
    return [a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 1e11, 6))]


@pytest.mark.parametrize("sizes", [isoflop, square])
@pytest.mark.parametrize("scale", [(3.0, 1.0), (1.0, 7.0), (1e-6, 1.0), (1e3, 1e3), "counts"])
def test_neither_factors_nor_rounded_counts_move_a_budget_across_an_edge(sizes, scale):
    N, D = sizes()
    loss = loss_at(N, D) * np.exp(0.004 * np.random.default_rng(0).standard_normal(N.size))
    rounded = scale == "counts"
    ours = error_rate(log_runs({"params": N, "tokens": D}, loss))
    moved = (np.round(N), np.round(D)) if rounded else (scale[0] * N, scale[1] * D)
    theirs = error_rate(log_runs(dict(zip(("params", "tokens"), moved, strict=True)), loss))
    assert (theirs.rate, theirs.width_factor) == pytest.approx((ours.rate, ours.width_factor), rel=1e-4)
    assert theirs.farthest == pytest.approx(ours.farthest, rel=1e-6)


@pytest.mark.parametrize("jitter", [0.0, 1e-3])
def test_runs_of_one_budget_have_no_largest_compute_to_hide(jitter):
    rng = np.random.default_rng(0)
    N = np.geomspace(1e7, 1e9, 14)
    D = 1e18 / N * np.exp(jitter * rng.standard_normal(14))
    rate = error_rate(log_runs({"params": N, "tokens": D}, loss_at(N, D)))
    assert 0 < rate.origins <= 4


def checkpoints(size_of_run=6):
    """15 runs of 1% noise each, and the run of each row."""
    rng = np.random.default_rng(4)
    N = np.repeat(10 ** rng.uniform(7, 9, 15), size_of_run)
    D = np.tile(np.geomspace(1e9, 1e11, size_of_run), 15)
    loss = loss_at(N, D) * np.exp(0.01 * np.repeat(rng.standard_normal(15), size_of_run))
    return N, D, loss, np.repeat(np.arange(15), size_of_run)


def test_names_of_runs_change_the_forecast_and_which_names_does_not():
    N, D, loss, run = checkpoints()
    blind, clustered = asked(N, D, loss), asked(N, D, loss, cluster=run)
    assert np.diff(clustered.interval[0]) != np.diff(blind.interval[0])
    renamed = asked(N, D, loss, cluster=np.array([f"r{14 - name}" for name in run]))
    assert renamed.interval == pytest.approx(clustered.interval, rel=1e-7)


def test_a_run_is_hidden_whole():
    """Its early checkpoints, left to see, would tell its noise."""
    N, D, loss, run = checkpoints()
    blind, clustered = (
        error_rate(log_runs({"params": N, "tokens": D}, loss, cluster)) for cluster in (None, run)
    )
    assert clustered.whole
    assert clustered.origins < blind.origins  # the most tokens are those of every run


def test_runs_that_no_hiding_leaves_whole_are_said():
    """Two labels dealt over a grid like the colours of a chessboard: the top of each size has both."""
    N, D = square()
    loss = loss_at(N, D) * np.exp(0.004 * np.random.default_rng(0).standard_normal(36))
    deal = np.add.outer(np.arange(6), np.arange(6)).ravel() % 2
    clustered = asked(N, D, loss, cluster=deal)
    assert any("stood on both sides of every hiding" in warning for warning in clustered.warnings)
    assert clustered.origins > 0
    assert not any("both sides" in warning for warning in asked(N, D, loss).warnings)


def test_the_error_rate_grows_where_hidden_runs_were_missed():
    rng = np.random.default_rng(0)
    N, D = 10 ** rng.uniform(7, 9, 60), 10 ** rng.uniform(9, 11, 60)
    loss = loss_at(N, D) * np.exp(0.003 * rng.standard_normal(60))
    losses = (loss, np.where(N > 3e8, 1.06, 1.0) * loss)
    rates = [error_rate(log_runs({"params": N, "tokens": D}, each)) for each in losses]
    assert rates[0].origins == 6
    assert rates[1].rate > 2 * rates[0].rate
    assert rates[0].width_factor <= 1.0
