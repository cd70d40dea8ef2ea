"""The law of repeated data on the 182 runs of its authors (arXiv 2305.16264), and what they leave open."""

import math

import numpy as np
import polars as pl
import pytest

from isoloss.errors import Refusal
from isoloss.laws import FitStatus, fit
from isoloss.sources import published

HELD = {
    "E": math.exp(0.6254804),
    "A": math.exp(6.255414),
    "B": math.exp(7.3049974),
    "alpha": 0.3526596,
    "beta": 0.3526596,
}
PUBLISHED = {"R_D": 15.387756, "R_N": 5.309743}
OBJECTIVE = 0.0158259353


@pytest.fixture(scope="module")
def runs(run_tables):
    table = pl.read_csv(run_tables / "datablations" / "runs.csv")
    table = table.filter(pl.col("set") == "fit_182_outliers_removed")
    assert table.height == 182
    names = ("params", "tokens", "unique_tokens")
    return {name: table[name].to_numpy() for name in names}, table["val_loss"].to_numpy()


def _fit(runs, **options):
    return fit("data-constrained", *runs, objective="huber-log", **options)


def test_the_published_constants_have_the_published_objective(runs):
    fitted = _fit(runs, fixed={**HELD, **PUBLISHED})
    assert fitted.objective.value == pytest.approx(OBJECTIVE, rel=1e-8)
    assert set(fitted.intervals.values()) == {None}
    # Negative control: R_D off by a tenth has another objective.
    other = _fit(runs, fixed={**HELD, **PUBLISHED, "R_D": 17.0})
    assert other.objective.value != pytest.approx(OBJECTIVE, rel=1e-5)


@pytest.mark.parametrize("start", [PUBLISHED, {"R_D": 14.0, "R_N": 5.0}])
def test_descent_from_nearby_ends_at_the_published_values(runs, start):
    """Their optimiser stopped at the fifth digit of the objective: the optimum beside is 15.372 and 5.315."""
    fitted = _fit(runs, fixed=HELD, starts=[start], curve_only=True)
    assert fitted.objective.value == pytest.approx(0.0158259, abs=5e-8)
    assert fitted.objective.value <= OBJECTIVE
    assert fitted.params["R_D"] == pytest.approx(15.39, abs=0.03)
    assert fitted.params["R_N"] == pytest.approx(5.31, abs=0.01)
    assert fitted.gradient < 1e-6


def test_the_same_runs_have_a_better_optimum_and_do_not_decide(runs):
    """A lower objective lies at six times the R_D; endless R_D fits about as well."""
    with pytest.raises(Refusal, match="repeated data are not told apart from new data") as refused:
        _fit(runs, fixed=HELD)
    assert "epochs alone" in refused.value.mend
    curve = _fit(runs, fixed=HELD, curve_only=True)
    assert curve.status is FitStatus.CURVE_ONLY
    assert curve.objective.value <= 0.0158059
    assert curve.starts.agreeing >= 2
    assert curve.params["R_D"] == pytest.approx(95, rel=0.05)
    assert set(curve.intervals.values()) == {None}


def test_units_do_not_move_the_optimum(runs):
    """In billions, as the authors' notebook prints them, the law is the same: A and B have other units."""
    (x, y), billion = runs, 1e9
    scaled = {name: column / billion for name, column in x.items()}
    held = {**HELD, "A": HELD["A"] * billion ** -HELD["alpha"], "B": HELD["B"] * billion ** -HELD["beta"]}
    plain, other = (
        _fit((columns, y), fixed=fixed, starts=[PUBLISHED], curve_only=True)
        for columns, fixed in ((x, HELD), (scaled, held))
    )
    assert other.objective.value == pytest.approx(plain.objective.value, rel=1e-9)
    for name in ("R_D", "R_N"):
        assert other.params[name] == pytest.approx(plain.params[name], rel=1e-4)
    # Negative control: tokens alone in billions, against constants in raw counts.
    mixed = {**x, "tokens": x["tokens"] / billion, "unique_tokens": x["unique_tokens"] / billion}
    trapped = _fit((mixed, y), fixed={**HELD, **PUBLISHED})
    assert trapped.objective.value > 10 * OBJECTIVE


def test_a_designed_grid_decides(worlds):
    """Where repeats reach far beyond R_D, the law is found with its intervals."""
    world = worlds["data-constrained"]
    fitted = fit("data-constrained", world.inputs, world.noisy(0), level=0.999)
    for name, truth in world.params.items():
        low, high = fitted.intervals[name]
        assert low < truth < high
    assert np.ptp(np.log(fitted.intervals["R_D"])) < 1


def test_a_half_life_that_runs_away_leaves_the_rest_of_the_law_an_optimum():
    """Of repeats that are better than new; a step along the rounding of its slope kept others from theirs."""
    rng = np.random.default_rng(0)
    N, U, epochs = (
        10 ** rng.uniform(7, 10, 300),
        10 ** rng.uniform(8, 11, 300),
        np.exp(rng.uniform(0, 4, 300)),
    )
    x = {"params": N, "tokens": U * epochs, "unique_tokens": U}
    noise = np.exp(0.01 * rng.standard_normal(300))
    loss = (1.7 + 406 * N**-0.34 + 410 * (U * epochs**1.1) ** -0.28) * noise
    fitted = _fit((x, loss), curve_only=True)
    assert fitted.status is FitStatus.CURVE_ONLY
    assert fitted.params["R_D"] > 1e12
    assert fitted.gradient < 1e-5
    assert fitted.starts.agreeing >= 2
    # Control: where repeats are worth less, R_D is found.
    worn = published("muennighoff").predict(**x).loss * noise
    assert 5 < _fit((x, worn), curve_only=True).params["R_D"] < 50
