"""Public readings of the Chinchilla figure: published fits found again, objective by objective."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from isoloss.laws import FitStatus, fit

HOFFMANN = {"E": 1.69, "A": 406.4, "B": 410.7, "alpha": 0.34, "beta": 0.28}


@pytest.fixture(scope="module")
def epoch(run_tables):
    """240 of 245 points: Besiroglu et al. 2024 (arXiv 2404.10102) drop the five largest losses."""
    table = pl.read_csv(run_tables / "epoch-chinchilla" / "svg_extracted_data.csv").sort("loss").head(240)
    size, flops = table["Model Size"].to_numpy(), table["Training FLOP"].to_numpy()
    return {"params": size, "tokens": flops / (6 * size)}, table["loss"].to_numpy()


def test_the_summed_huber_optimum(epoch):
    fitted = fit("chinchilla", *epoch, objective="huber-log")
    assert fitted.objective.value <= 0.00101827405
    assert fitted.status is FitStatus.CONVERGED
    for name, value in {"alpha": 0.3473, "beta": 0.3672, "E": 1.8172}.items():
        assert fitted.params[name] == pytest.approx(value, abs=5e-5)
    assert fitted.params["A"] == pytest.approx(477.83, abs=0.05)
    assert fitted.params["B"] == pytest.approx(2143.4, abs=0.5)
    assert fitted.allocation()["a"] == pytest.approx(0.5139, abs=5e-5)


def test_the_likelihood_with_a_free_scale(epoch):
    """The paper's table; the density of Huber's function in place of its sum is another objective."""
    fitted = fit("chinchilla", *epoch, objective="huber-likelihood")
    assert fitted.status is FitStatus.CONVERGED
    for name, value in {"alpha": 0.34781, "beta": 0.36585, "E": 1.81686}.items():
        assert fitted.params[name] == pytest.approx(value, abs=1e-5)
    assert fitted.params["A"] == pytest.approx(482.01, abs=0.02)
    assert fitted.params["B"] == pytest.approx(2085.43, abs=0.02)


def test_a_mean_in_place_of_a_sum_changes_nothing_here(epoch):
    x, y = epoch
    fitted = fit("chinchilla", x, y, objective="huber-log")
    for factor in (1 / 240, 1000.0):
        other = fit("chinchilla", x, y, objective="huber-log", weights=np.full(240, factor))
        assert other.params == pytest.approx(fitted.params, rel=1e-4)
        assert other.objective.value == pytest.approx(fitted.objective.value, rel=1e-8)

    def objective(theta, scale):
        E, A, B, alpha, beta = np.exp(theta)
        r = np.abs(np.log(E + A * x["params"] ** -alpha + B * x["tokens"] ** -beta) - np.log(y))
        return scale * np.sum(np.where(r <= 1e-3, r**2 / 2, 1e-3 * (r - 5e-4)))

    # Negative control: SciPy's default tolerances stop the mean early, which the same check would see.
    start = np.log([HOFFMANN[name] for name in ("E", "A", "B", "alpha", "beta")])
    stopped = minimize(objective, start, args=(1 / 240,), method="L-BFGS-B")
    assert stopped.success
    assert objective(stopped.x, 1.0) > 1.05 * fitted.objective.value


def test_one_start_is_flagged(epoch):
    fitted = fit("chinchilla", *epoch, objective="huber-log", starts=[HOFFMANN])
    assert fitted.status is not FitStatus.CONVERGED
    assert set(fitted.intervals.values()) == {None}


def test_bootstrap_errors_and_intervals_are_the_papers(epoch):
    """4,000 resamples there, 600 here: B is skewed, so its error alone may differ by more than a tenth."""
    more = {"intervals": "bootstrap", "bootstrap": 600, "level": 0.95}
    fitted = fit("chinchilla", *epoch, objective="huber-likelihood", **more)
    assert fitted.bootstrap.agreeing == fitted.bootstrap.checked > 0
    errors = {"A": 124.52, "E": 0.02566, "alpha": 0.0154, "beta": 0.0206}
    for name, error in errors.items():
        assert fitted.standard_errors[name] == pytest.approx(error, rel=0.1)
    assert fitted.standard_errors["B"] == pytest.approx(1293.28, rel=0.25)
    published = {"E": (1.769, 1.871), "alpha": (0.317, 0.373), "beta": (0.331, 0.415), "A": (285.2, 743.6)}
    for name, interval in published.items():
        assert fitted.intervals[name] == pytest.approx(interval, abs=0.3 * errors[name])
    draws = np.exp(fitted.draws(600, np.random.default_rng(0)))
    alpha, beta = (draws[:, fitted.form.parameters.index(name)] for name in ("alpha", "beta"))
    assert np.std(beta / (alpha + beta)) == pytest.approx(0.020, rel=0.1)


def test_another_reading_of_the_figure(run_tables):
    table = pl.read_csv(run_tables / "kyo-takano-chinchilla" / "df.csv")
    x = {"params": table["N"].to_numpy(), "tokens": table["D"].to_numpy()}
    fitted = fit("chinchilla", x, table["loss"].to_numpy(), objective="huber-log")
    assert fitted.objective.value == pytest.approx(0.00084009312, rel=1e-7)
    assert fitted.params["E"] == pytest.approx(1.7839, abs=5e-5)
    assert fitted.params["A"] == pytest.approx(442.16, abs=0.02)
    assert fitted.params["B"] == pytest.approx(1271.8, abs=0.1)
    assert fitted.params["alpha"] == pytest.approx(0.34263, abs=1e-5)
    assert fitted.params["beta"] == pytest.approx(0.34200, abs=1e-5)
    # The objective is part of the answer: least squares on the same points is another law.
    squares = fit("chinchilla", x, table["loss"].to_numpy())
    assert abs(squares.params["alpha"] - fitted.params["alpha"]) > 0.003
