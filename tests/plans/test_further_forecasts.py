"""What benchmarks/further_forecasts.py adds: a third size, ranges over tables, a setting's own draws."""

import sys
from pathlib import Path

import numpy as np
import pytest

from isoloss.laws import fit

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import extrapolation
import further_forecasts
from extrapolation import Score, simulations
from further_forecasts import LEAST_HELD, drawn, held_between
from predictors import by_forecast, inputs_of, known_of
from public_tables import Table, repeated
from simulated_tables import of_three_sizes

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "extrapolation.txt"
RUNS = 40


def held(share):
    return Score(share, 0.03, 0.01, float(np.log(0.01)), 0.07)


@pytest.fixture(scope="module")
def three_sizes():
    return of_three_sizes(np.random.default_rng(0), RUNS, 0.0)


def test_a_range_is_over_tables_and_not_over_runs():
    """Six of twelve tables are missed whole. As 144 runs the range would be a third as wide."""
    low, high = held_between([held(share) for share in (0.0, 1.0) * 6])
    assert low == pytest.approx(0.168, abs=0.001)
    assert high == pytest.approx(0.832, abs=0.001)
    assert 2 * 1.96 * np.sqrt(0.25 / 144) < (high - low) / 3
    assert held_between([held(1.0), None, held(1.0)]) == (1.0, 1.0)


def test_losses_with_loops_are_of_the_law_and_those_of_repeated_tokens_are_not(three_sizes):
    names = ("loops, loop-total", "repeated tokens")
    looped, repeats = (fitted("loop-total", three_sizes[name]) for name in names)
    assert np.abs(looped.residuals).max() < 1e-6
    assert np.abs(repeats.residuals).max() > 1e-3


def fitted(law, of):
    inputs = inputs_of(of, np.arange(len(of.loss)) < RUNS)
    loops = inputs.pop("unique_tokens", None)
    inputs |= {} if loops is None else {"recurrence": loops}
    return fit(law, inputs, of.loss[:RUNS], objective="squared-log", curve_only=True)


def test_repeated_tokens_are_worth_less_than_new_ones(three_sizes):
    of, once = three_sizes["repeated tokens"], three_sizes["loops, loop-total"]
    assert (of.more["unique_tokens"] <= of.tokens).all()
    assert not np.allclose(of.loss, once.loss)
    epochs = of.tokens / of.more["unique_tokens"]
    assert 1 <= epochs[:RUNS].min() < epochs[:RUNS].max() < 16


def test_a_forecast_of_a_benchmark_reads_the_third_size(three_sizes):
    of = three_sizes["loops, loop-total"]
    hide = np.arange(len(of.loss)) >= RUNS
    two = Table(of.family, of.name, of.params, of.tokens, of.loss)
    assert known_of(of, hide).runs.names == ("params", "tokens", "recurrence")
    assert known_of(two, hide).runs.names == ("params", "tokens")
    error, blind = (
        np.abs(by_forecast(one, hide, 0.9)[0] - np.log(of.loss[hide])).mean() for one in (of, two)
    )
    assert error < blind / 2


def test_a_setting_is_drawn_as_the_whole_simulation_draws_it(monkeypatch):
    """Each score is the first size that was hidden, which tells one table from another."""

    def look(of, hide, *_):
        return held(float(of.params[hide][0]))

    monkeypatch.setattr(extrapolation, "score", look)
    monkeypatch.setattr(further_forecasts, "score", look)
    monkeypatch.setattr(extrapolation, "SIMULATED", ("forecast",))
    every = simulations((20,), (0.05,), 2)
    name = "with a product term"
    assert drawn(name, 20, 0.05, range(2)) == every[name, "forecast"]
    assert drawn(name, 20, 0.05, range(2, 4)) != every[name, "forecast"]


def test_the_settings_drawn_again_are_those_that_held_least():
    lines = RESULTS.read_text("utf-8").splitlines()
    shares = {
        line[:58].strip(): float(line.split()[-6].strip("%")) for line in lines if " runs, noise " in line
    }
    assert len(shares) == 72
    named = {f"{name}, {runs} runs, noise {noise:.1%}" for name, runs, noise in LEAST_HELD}
    assert {name for name, share in shares.items() if share < 85} == named


def test_public_runs_over_repeated_data_have_their_unique_tokens(run_tables):
    few, every = repeated(run_tables, 16.0), repeated(run_tables, 1e5)
    assert len(few.loss) < len(every.loss) < 296
    epochs = few.tokens / few.more["unique_tokens"]
    assert epochs.min() == 1
    assert 4 < epochs.max() <= 16
