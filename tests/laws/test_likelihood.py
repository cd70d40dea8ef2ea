"""Huber's density with a scale of its own: in effect least absolute residuals, found to the last digits."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from isoloss.laws import FitStatus, fit, problem_of
from isoloss.laws._likelihood import by_likelihood


def _line(seed, n=40):
    """A power law whose log loss is a straight line in log N, with heavy tails about it."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(np.log(1e6), np.log(1e9), n))
    return x, 2.0 - 0.08 * x + 0.004 * rng.standard_t(2, n)


@pytest.mark.parametrize("seed", range(3))
def test_a_straight_line_is_the_linear_program(seed):
    """At delta 1e-3 all residuals lie far outside: least absolute log residuals, a linear program."""
    x, log_loss = _line(seed)
    fitted = fit("power", {"params": np.exp(x)}, np.exp(log_loss + 3), objective="huber-likelihood")
    assert fitted.status is FitStatus.CONVERGED
    n = len(x)
    design = np.stack([np.ones(n), x], axis=1)
    cost = np.concatenate([[0, 0], np.ones(n)])
    both = np.block([[design, -np.eye(n)], [-design, -np.eye(n)]])
    target = log_loss + 3
    best = linprog(cost, both, np.concatenate([target, -target]), bounds=[(None, None)] * 2 + [(0, None)] * n)
    assert fitted.params["a"] == pytest.approx(-best.x[1], rel=1e-6)
    residuals = np.abs(fitted.residuals)
    assert residuals.sum() == pytest.approx(best.fun, rel=1e-7)
    # Negative control: least squares is another line.
    squares = fit("power", {"params": np.exp(x)}, np.exp(log_loss + 3), objective="squared-log")
    assert abs(squares.params["a"] / fitted.params["a"] - 1) > 1e-4


def test_the_value_is_the_negative_log_likelihood_at_its_best_scale():
    x, log_loss = _line(4)
    fitted = fit("power", {"params": np.exp(x)}, np.exp(log_loss + 3), objective="huber-likelihood")
    r, delta = np.abs(fitted.residuals), 1e-3
    grid = np.linspace(-40, 40, 400_001) / 1e-3
    step = grid[1] - grid[0]
    rho = np.where(np.abs(grid) <= delta, grid**2 / 2, delta * (np.abs(grid) - delta / 2))
    log_norm = np.log(np.sum(np.exp(-rho)) * step)

    def negative(log_s):
        z = r / np.exp(log_s)
        huber = np.where(z <= delta, z**2 / 2, delta * (z - delta / 2))
        return np.sum(huber + log_s + log_norm)

    best = minimize(lambda v: negative(v[0]), [np.log(delta * r.mean())], method="Nelder-Mead")
    assert fitted.objective.value == pytest.approx(best.fun, rel=1e-5)
    # At a wide delta it is the normal likelihood: n/2 (1 + log(2 pi variance)).
    normal = fit(
        "power", {"params": np.exp(x)}, np.exp(log_loss + 3), objective="huber-likelihood", delta=50.0
    )
    squares = fit("power", {"params": np.exp(x)}, np.exp(log_loss + 3), objective="squared-log")
    variance = squares.objective.value / len(x)
    assert normal.objective.value == pytest.approx(len(x) / 2 * (1 + np.log(2 * np.pi * variance)), rel=1e-6)
    assert normal.params["a"] == pytest.approx(squares.params["a"], rel=1e-5)


def test_it_has_no_scale_of_its_own(worlds):
    """Weights and units of the loss change nothing; the data behind a fit give the same problem again."""
    world = worlds["chinchilla"]
    y = world.noisy(0)
    fitted = fit("chinchilla", world.inputs, y, objective="huber-likelihood")
    other = fit("chinchilla", world.inputs, y * 7, objective="huber-likelihood", weights=np.full(len(y), 1e3))
    assert other.params["alpha"] == pytest.approx(fitted.params["alpha"], rel=1e-6)
    assert other.params["E"] == pytest.approx(7 * fitted.params["E"], rel=1e-6)
    assert other.objective.value == pytest.approx(fitted.objective.value, rel=1e-8)
    problem, points = problem_of(fitted)
    start = problem.model.start(fitted.params)
    _, best, value = by_likelihood(problem, start[None])
    assert value == pytest.approx(fitted.objective.value, rel=1e-7)
    assert problem.model.theta(best.phi) == pytest.approx(fitted.theta, abs=1e-6)
    assert len(points.y_n) == 36


def test_one_bad_run_hardly_moves_it(worlds):
    world = worlds["chinchilla"]
    y = world.noisy(0)
    bad = y * np.where(np.arange(len(y)) == 17, 1.04, 1.0)
    moved = {
        objective: abs(
            fit("chinchilla", world.inputs, bad, objective=objective).params["alpha"]
            - fit("chinchilla", world.inputs, y, objective=objective).params["alpha"]
        )
        for objective in ("huber-likelihood", "squared-log")
    }
    assert moved["huber-likelihood"] < 0.3 * moved["squared-log"]
