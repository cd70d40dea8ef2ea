"""The way to an optimum is as short as may be; where it ends and what is refused stay the same."""

from dataclasses import replace

import numpy as np
import pytest

from isoloss.laws import _solve, fit, problem_of
from isoloss.laws._solve import least_total
from isoloss.laws._support import nested_model
from isoloss.sources import published


def repeated(rows, noise=0.01):
    """Runs of data-constrained: inputs and losses."""
    rng = np.random.default_rng(3)
    N, U = 10 ** rng.uniform(7, 10, rows), 10 ** rng.uniform(8, 11, rows)
    x = {"params": N, "tokens": U * np.exp(rng.uniform(0, 3, rows)), "unique_tokens": U}
    return x, published("muennighoff").predict(**x).loss * np.exp(noise * rng.standard_normal(rows))


@pytest.mark.parametrize("objective", ["huber-log", "squared-log"])
def test_of_many_rows_the_optimum_is_that_of_the_whole(objective, monkeypatch):
    """Starts go down on a part of them, roughly; the other way each goes down on all of them to its end."""
    x, loss = repeated(2000)
    fitted = fit("data-constrained", x, loss, objective=objective, curve_only=True)
    monkeypatch.setattr(_solve, "_DESCENDED", len(loss))
    whole = fit("data-constrained", x, loss, objective=objective, curve_only=True)
    assert fitted.objective.value <= whole.objective.value * (1 + 1e-9)
    assert fitted.status is whole.status
    for name, value in whole.params.items():
        assert fitted.params[name] == pytest.approx(value, rel=1e-6)
        assert fitted.intervals[name] == pytest.approx(whole.intervals[name], rel=1e-4)


def test_control_the_optimum_of_a_part_is_none_of_the_whole():
    x, loss = repeated(2000)
    whole = fit("data-constrained", x, loss, objective="squared-log", curve_only=True)
    some = {name: values[:1000] for name, values in x.items()}
    part = fit("data-constrained", some, loss[:1000], objective="squared-log", curve_only=True)
    missed = np.log(part.predict(**x).loss / loss)
    assert np.sum(missed**2) > whole.objective.value * (1 + 1e-6)


@pytest.fixture(scope="module")
def smaller():
    """The problems of the laws inside data-constrained, on runs that need the whole of it."""
    problem, _ = problem_of(fit("data-constrained", *repeated(250), objective="huber-log"))
    models = [nested_model(problem.model, nested) for nested in problem.model.form.nested]
    return [replace(problem, model=model) for model in models]


def test_a_bound_says_of_a_simpler_law_what_its_whole_descent_says(smaller):
    ended_early = 0
    for problem in smaller:
        least = least_total(problem)
        for bound in (0.2 * least, 0.9 * least, 1.1 * least, 3.0 * least):
            total = least_total(problem, bound)
            assert (total < bound) == (least < bound)
            ended_early += total > least * (1 + 1e-3)
    assert ended_early


@pytest.mark.parametrize("objective", ["huber-log", "squared-log"])
def test_of_many_rows_a_simpler_law_is_judged_as_by_all_of_them(objective, monkeypatch):
    x, loss = repeated(1200)
    loss[:3] *= 1.5  # in the part or not: an outlier counts once
    problem, _ = problem_of(fit("data-constrained", x, loss, objective=objective, curve_only=True))
    for nested in problem.model.form.nested:
        one = replace(problem, model=nested_model(problem.model, nested))
        with monkeypatch.context() as patch:
            patch.setattr(_solve, "_DESCENDED", len(loss))
            least = least_total(one)
        assert least_total(one) == pytest.approx(least, rel=2e-3)  # on a ridge either may end early
        for bound in (0.5 * least, 0.97 * least, 1.03 * least):
            assert (least_total(one, bound) < bound) == (least < bound)


def test_hubers_sum_is_at_least_its_share_of_a_wider_one(smaller):
    r_n = 1e-2 * np.random.default_rng(0).standard_t(2, len(smaller[0].y_n))
    for delta in (1e-4, 1e-3, 1e-2):
        narrow, wide = (replace(smaller[0], delta=size).total(r_n) for size in (delta, 10 * delta))
        assert 0.1 * wide <= narrow <= wide
