"""The certificate of an optimum: exact data pass on every processor, a point beside it never does."""

import numpy as np
import pytest

from isoloss.laws import FitStatus, fit, problem_of
from isoloss.laws._solve import is_stationary, sharpen
from isoloss.laws.forms import form

SIZES = np.geomspace(1e4, 1e6, 8)
NOISES = [0.0, *10.0 ** np.arange(-15.0, -2.0)]
LAWS = {"power": {"Nc": 8.8e13, "a": 0.076}, "power-floor": {"E": 2.0, "A": 60.0, "a": 0.3}}
OBJECTIVES = ("squared", "squared-log", "huber-log")


def losses(law, sigma, seed):
    exact = form(law).loss(LAWS[law], {"params": SIZES})
    return exact * np.exp(sigma * np.random.default_rng(seed).standard_normal(len(SIZES)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_noise_of_any_size_converges(law, objective):
    """Below a noise of 1e-7 the rounding of one processor or another leaves a cosine above 1e-6."""
    for sigma in NOISES:
        for seed in range(4):
            outcome = fit(law, {"params": SIZES}, losses(law, sigma, seed), objective=objective)
            assert outcome.status is FitStatus.CONVERGED, (sigma, seed, outcome.gradient)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sigma", [0.0, 1e-9, 1e-3])
def test_units_do_not_decide(law, sigma):
    y_n = losses(law, sigma, 0)
    for power in (-12, -6, 6, 12, 24):
        for unit in (1e-6, 1.0, 1e6):
            outcome = fit(law, {"params": SIZES * 10.0**power}, unit * y_n)
            assert outcome.status is FitStatus.CONVERGED, (power, unit, outcome.gradient)


@pytest.mark.parametrize("sigma", [1e-9, 1e-6, 1e-3, 1e-2])
@pytest.mark.parametrize("law", LAWS)
def test_control_a_point_beside_the_optimum_is_no_optimum(law, sigma):
    """A tenth of a standard error away, in each parameter."""
    outcome = fit(law, {"params": SIZES}, losses(law, sigma, 1), objective="squared-log")
    (problem, _), theta = problem_of(outcome), np.array(outcome.theta)
    assert is_stationary(problem, sharpen(problem, theta))
    for index, error in enumerate(np.sqrt(np.diag(np.array(outcome.covariance)))):
        away = theta.copy()
        away[index] += 0.1 * error
        assert not is_stationary(problem, away), index
