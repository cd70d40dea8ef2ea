"""Refits of resampled runs: optima of their own data, repeatable, of what counts, or refused."""

import numpy as np
import pytest
from nested_intervals import nested

from isoloss.errors import InputError, Refusal
from isoloss.laws import fit, problem_of
from isoloss.laws._bootstrap import cold_check, resample


@pytest.fixture(scope="module")
def fitted(worlds):
    world = worlds["chinchilla"]
    return fit("chinchilla", world.inputs, world.noisy(0), intervals="bootstrap", bootstrap=200, seed=5)


def test_each_refit_is_the_fit_of_its_resample(worlds, fitted):
    """The same rows with the same counts as weights, from cold starts."""
    world = worlds["chinchilla"]
    problem, points = problem_of(fitted)
    phi_SF, w_Sn, check = resample(problem, points, np.array(fitted.theta), 200, 5)
    assert check == (12, 12)
    np.testing.assert_allclose(np.array(fitted.bootstrap.theta), phi_SF, rtol=1e-9)
    for s in range(0, 200, 40):
        weights = w_Sn[s]
        assert weights.sum() == 36
        cold = fit("chinchilla", world.inputs, world.noisy(0), weights=weights, curve_only=True)
        plain = np.exp(problem.model.unscale(phi_SF[s]))
        assert dict(zip(fitted.form.parameters, plain, strict=True)) == pytest.approx(cold.params, rel=1e-3)


def test_the_cold_check_finds_a_bad_refit(fitted):
    """Negative control: refits that are not optima."""
    problem, points = problem_of(fitted)
    phi_SF, w_Sn, _ = resample(problem, points, np.array(fitted.theta), 100, 1)
    assert cold_check(problem, phi_SF, w_Sn, 3) == (12, 12)
    checked, agreeing = cold_check(problem, phi_SF + 0.02, w_Sn, 3)
    assert checked == 12
    assert agreeing == 0


def test_a_seed_repeats_and_another_does_not(worlds, fitted):
    world = worlds["chinchilla"]
    same, other = (
        fit("chinchilla", world.inputs, world.noisy(0), intervals="bootstrap", bootstrap=200, seed=seed)
        for seed in (5, 6)
    )
    assert same == fitted
    assert other.intervals["alpha"] != fitted.intervals["alpha"]
    assert other.intervals["alpha"] == pytest.approx(fitted.intervals["alpha"], rel=0.05)


def test_errors_and_draws_are_those_of_the_refits(fitted):
    alpha = np.exp(np.array(fitted.bootstrap.theta)[:, 2])
    assert fitted.standard_errors["alpha"] == pytest.approx(np.std(alpha), rel=1e-6)
    draws = (fitted.draws(200, np.random.default_rng(0)) - fitted.theta) / np.sqrt(36 / 31)
    np.testing.assert_allclose(np.sort(draws[:, 2] + fitted.theta[2]), np.sort(np.log(alpha)), rtol=1e-9)
    assert fitted.intervals_by == "bootstrap"
    assert nested(fitted.predict(params=2e10, tokens=4e11))


def test_refits_beside_t_intervals_leave_those_alone(worlds, fitted):
    world = worlds["chinchilla"]
    plain = fit("chinchilla", world.inputs, world.noisy(0))
    both = fit("chinchilla", world.inputs, world.noisy(0), intervals="profile", bootstrap=100)
    assert both.intervals_by == "profile"
    assert len(both.bootstrap.theta) == 100
    for name in ("alpha", "beta"):
        assert np.log(fitted.intervals[name]) == pytest.approx(np.log(plain.intervals[name]), abs=0.15)


def test_what_is_not_resampled(worlds):
    sizes = np.geomspace(1e6, 1e8, 9)
    y = 1.8 + 400 * sizes**-0.35 + 0.01 * np.random.default_rng(0).standard_normal(9)
    with pytest.raises(Refusal, match="9 runs are too few to resample") as refused:
        fit("power-floor", {"params": sizes}, y, bootstrap=200)
    assert "t or profile" in refused.value.mend
    for count in (-1, 1, 99):
        with pytest.raises(InputError, match="resamples give no interval"):
            fit("power-floor", {"params": sizes}, y, bootstrap=count)


def test_resamples_that_leave_the_law_open_are_refused():
    """Ten points, of which one alone carries the slope: a third of the resamples miss it."""
    sizes = np.array([1e6, *np.full(4, 0.98e8), *np.full(5, 1e8)])
    y = 10 * sizes**-0.08 * (1 + 0.01 * np.random.default_rng(2).standard_normal(10))
    with pytest.raises(Refusal, match="resamples do not determine the law"):
        fit("power", {"params": sizes}, y, intervals="bootstrap", bootstrap=200)


def test_constrained_laws_are_resampled_with_their_constraints(worlds):
    world = worlds["chinchilla"]
    options = {"tied": [("alpha", "beta")], "fixed": {"E": 1.8}, "intervals": "bootstrap", "bootstrap": 100}
    constrained = fit("chinchilla", world.inputs, world.noisy(0), **options)
    theta = np.array(constrained.bootstrap.theta)
    np.testing.assert_allclose(theta[:, 2], theta[:, 4])
    np.testing.assert_allclose(np.exp(theta[:, 0]) * constrained.units.loss, 1.8)
    assert constrained.intervals["E"] is None
    assert constrained.intervals["alpha"] == pytest.approx(constrained.intervals["beta"], rel=1e-9)
