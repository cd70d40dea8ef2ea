"""The optima over a range of budgets, and the exponent with which the best size grows."""

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import fit
from isoloss.plans import allocation_exponent, optima
from isoloss.plans.curve import ALLOCATION_DRAWS

C = np.geomspace(1e18, 1e21, 7)


def test_the_exponent_is_that_of_the_law_with_quantiles_of_its_draws(fitted):
    alpha_beta = [fitted.form.parameters.index(name) for name in ("alpha", "beta")]
    alpha_S, beta_S = np.exp(fitted.draws(ALLOCATION_DRAWS, np.random.default_rng(0))[:, alpha_beta]).T
    exponent, interval = allocation_exponent(fitted, level=0.9)
    assert exponent == fitted.allocation()["a"]
    np.testing.assert_allclose(interval, np.quantile(beta_S / (alpha_S + beta_S), [0.05, 0.95]), rtol=1e-12)
    assert allocation_exponent(fitted) == allocation_exponent(fitted, level=fitted.level)
    narrow = allocation_exponent(fitted, level=0.5).interval
    assert interval[0] < narrow[0] < narrow[1] < interval[1]


def test_the_seed_moves_an_end_by_little(fitted):
    low_K, high_K = np.array([allocation_exponent(fitted, seed=seed).interval for seed in range(8)]).T
    assert max(low_K.std(), high_K.std()) < 0.02 * (high_K - low_K).mean()


def test_a_law_that_knows_no_uncertainty_has_no_interval(known):
    assert allocation_exponent(known("besiroglu")) == (pytest.approx(0.3658 / (0.3478 + 0.3658)), None)


def test_the_exponent_follows_the_optima(fitted):
    params_F = optima(fitted, C).params_F
    slope = np.polyfit(np.log(C), np.log(params_F), 1)[0]
    assert slope == pytest.approx(allocation_exponent(fitted).exponent, abs=1e-12)


def test_a_law_without_exponents_of_its_own_has_those_of_its_optima(runs):
    params, tokens, loss = runs
    inputs = {"params": params, "tokens": tokens, "unique_tokens": tokens}
    law = fit("data-constrained", inputs, loss, fixed={"R_N": 5.0, "R_D": 15.0})
    assert allocation_exponent(law) is None
    budgets = C[::3]
    exponent, (low, high) = allocation_exponent(law, budgets, draws=200)
    assert exponent == pytest.approx(np.polyfit(np.log(budgets), np.log(optima(law, budgets).params_F), 1)[0])
    assert low < exponent < high
    with pytest.raises(Refusal, match="no optimum"):
        allocation_exponent(law, [1.0, 10.0])


def test_what_has_no_optimum_is_refused(known, fitted):
    steep = known({"E": 1.8, "A": 1e-3, "alpha": 0.3, "B": 2000.0, "beta": 0.3})
    assert np.isnan(optima(steep, 1e3).params_F).all()
    with pytest.raises(InputError, match="not positive"):
        optima(fitted, [1e18, -1.0])
    with pytest.raises(InputError, match="level"):
        allocation_exponent(fitted, level=1.5)
