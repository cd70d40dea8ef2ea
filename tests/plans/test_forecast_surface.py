"""The kriged surface and the plan by it: its draws, its optimum, and what it refuses."""

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from isoloss.errors import InputError
from isoloss.plans import plan
from isoloss.plans.design import _enough, design
from isoloss.plans.forecast import forecaster, forecaster_of
from isoloss.plans.forecast.surface import forecast_surface

TRUTH = {"E": 1.8, "A": 0.5, "alpha": 0.35, "B": 0.6, "beta": 0.37}
DRAWS = 900


def loss_at(N, D):
    return TRUTH["E"] + TRUTH["A"] * (N / 1e8) ** -TRUTH["alpha"] + TRUTH["B"] * (D / 1e10) ** -TRUTH["beta"]


def columns(bend=0.0, noise=0.005, seed=0):
    rng = np.random.default_rng(seed)
    N, D = 10 ** rng.uniform(7, 9, 50), 10 ** rng.uniform(9, 11, 50)
    loss = loss_at(N, D) * (1 + bend * np.sin(np.log(N * D) / 3))
    return {"params": N, "tokens": D}, loss * np.exp(noise * rng.standard_normal(50))


@pytest.fixture(scope="module")
def known():
    return forecaster(*columns(bend=0.01))


def best(flops):
    """The truth's own optimum, by its closed form."""
    a, b = TRUTH["alpha"], TRUTH["beta"]
    A, B = TRUTH["A"] * 1e8**a, TRUTH["B"] * 1e10**b
    return (a * A / (b * B)) ** (1 / (a + b)) * (flops / 6) ** (b / (a + b))


AT = np.log([[1e8, 5e9, 1e9], [1e10, 4e11, 1e11]])


def test_row_0_is_the_forecast(known):
    prediction = known.at({"params": np.exp(AT[0]), "tokens": np.exp(AT[1])})
    np.testing.assert_allclose(known.surface(100, 0).loss(0, *AT), prediction.loss, rtol=1e-9)


@pytest.mark.parametrize("law", range(4))
def test_draws_have_the_mean_and_covariance_of_their_law(known, law):
    surface = forecast_surface(known.runs, known.laws, 4 * DRAWS, 0)
    drawn_Sq = np.log(surface.loss(np.arange(4 * DRAWS + 1)[1 + law :: 4, None], *AT))
    mean_q, cov_qq = known.laws[law].covariance(AT - known.runs.middle_I[:, None])
    sd_q = np.sqrt(np.diag(cov_qq))
    np.testing.assert_allclose(drawn_Sq.mean(axis=0), mean_q + known.runs.middle_loss, atol=0.15 * sd_q.max())
    np.testing.assert_allclose(drawn_Sq.std(axis=0), sd_q, rtol=0.15)
    correlations = [np.corrcoef(drawn_Sq.T), cov_qq / np.outer(sd_q, sd_q)]
    np.testing.assert_allclose(*correlations, atol=0.15)


def test_the_covariance_of_points_has_the_variances_of_each(known):
    z = AT - known.runs.middle_I[:, None]
    for law in known.laws:
        alone, several = law.moments(z), law.covariance(z)
        np.testing.assert_allclose(several[0], alone[0])
        np.testing.assert_allclose(np.diag(several[1]) + law.noise, alone[1])


def test_the_best_size_is_held_and_a_tenth_of_the_interval_does_not_hold_it():
    held = {1.0: [], 0.1: []}
    for seed in range(6):
        known = forecaster(*columns(seed=seed))
        for flops in (1e20, 1e22):
            planned = plan(known, flops=flops, draws=200)
            away = np.log(np.array(planned.intervals["params"]) / planned.params)
            for share, out in held.items():
                low, high = share * away
                out.append(low < np.log(best(flops) / planned.params) < high)
    assert np.mean(held[1.0]) > 0.7 > 0.5 > np.mean(held[0.1])


def test_every_question_of_a_plan_is_answered(known):
    by_budget = plan(known, flops=1e21, draws=100)
    assert by_budget.law == "forecast"
    assert 6 * by_budget.params * by_budget.tokens == pytest.approx(1e21)
    at = known.at({"params": by_budget.params, "tokens": by_budget.tokens})
    assert by_budget.loss == pytest.approx(at.loss[0])
    assert by_budget.intervals["loss"] == pytest.approx(tuple(at.interval[0]))
    by_loss = plan(known, loss=by_budget.loss, draws=100)
    assert by_loss.flops == pytest.approx(1e21, rel=1e-4)
    assert plan(known, flops=1e21, params=1e9, draws=100).tokens == pytest.approx(1e21 / 6e9)
    assert plan(known, flops=1e21, serve_tokens=1e12, draws=100).params < by_budget.params
    json.dumps(by_budget.to_json(), allow_nan=False)


@pytest.mark.parametrize(("factors", "one_sided"), [((0.03, 0.6), True), ((0.1, 10), False)])
def test_budgets_on_one_side_of_their_best_sizes_are_told(factors, one_sided):
    flops = np.repeat(np.geomspace(1e19, 1e21, 5), 6)
    N = best(flops) * np.tile(np.geomspace(*factors, 6), 5)
    D = flops / 6 / N
    noisy = loss_at(N, D) * np.exp(0.001 * np.random.default_rng(0).standard_normal(len(N)))
    table = pl.DataFrame({"params": N, "tokens": D, "loss": noisy})
    planned = plan(forecaster_of(table), flops=1e21, draws=100)
    phrase = "in 5 of 5 budgets the loss is lowest at the largest size"
    assert any(phrase in words for words in planned.warnings) == one_sided


def test_what_a_forecast_does_not_know_is_said(known):
    with pytest.raises(InputError, match="knows no unique_tokens"):
        plan(known, flops=1e21, unique_tokens=1e11)
    one = forecaster({"params": columns()[0]["params"]}, columns()[1])
    with pytest.raises(InputError, match="runs of params and tokens"):
        plan(one, flops=1e21)


def test_a_written_forecast_answers_as_its_table_does(tmp_path, known):
    inputs, loss = columns(bend=0.01)
    asked = {"params": [5e9], "tokens": [4e11]}
    first = forecaster_of(pl.DataFrame({**inputs, "loss": loss})).at(asked)
    path = tmp_path / "forecast.json"
    path.write_text(json.dumps(first.to_json()), "utf-8")
    reloaded = forecaster_of(path).at(asked)
    np.testing.assert_allclose(reloaded.interval, first.interval, rtol=1e-7)
    assert reloaded.source == json.loads(json.dumps(first.source))
    with pytest.raises(InputError, match="leave out where"):
        forecaster_of(path, where="loss < 3")
    path.write_text("{}", "utf-8")
    with pytest.raises(InputError, match="carries no runs of params and tokens"):
        forecaster_of(path)


def test_bought_runs_narrow_the_forecast_as_it_expects():
    inputs, loss = columns()
    known = forecaster(inputs, loss)
    target = {"params": 7e9, "tokens": 1.4e11}
    designed = design(known, budget_flops=3e21, target=target)
    low, high = known.at(target).interval[0]
    assert designed.half_width_now == pytest.approx((high - low) / 2)
    assert designed.half_width_after < min(designed.half_width_random, designed.half_width_d_optimal + 1e-12)
    assert designed.spent_flops <= 3e21
    bought = {name: np.array([run.inputs[name] for run in designed.runs]) for name in inputs}
    noise = np.exp(0.005 * np.random.default_rng(9).standard_normal(len(designed.runs)))
    both = {name: np.concatenate([inputs[name], bought[name]]) for name in inputs}
    after = forecaster(both, np.concatenate([loss, loss_at(**rename(bought)) * noise])).at(target)
    assert np.diff(after.interval[0])[0] / 2 < 0.9 * designed.half_width_now
    with pytest.raises(InputError, match="differ in inputs"):
        design(known, budget_flops=1e21, target={"params": 7e9})


def test_runs_that_bring_less_than_1_percent_are_not_listed():
    every = list(range(4))
    assert _enough(Falling([5.0, 2.0, 1.005, 1.0]), every) == [0, 1, 2]
    assert _enough(Falling([5.0, 2.0, 1.02, 1.0]), every) == every
    assert _enough(Falling([5.0]), []) == []  # no run narrows it


def test_runs_that_hardly_narrow_the_interval_are_doubted():
    inputs, loss = columns()
    known = forecaster(inputs, loss)
    far = {"params": 1e12, "tokens": 2e13}
    small, large = (design(known, budget_flops=budget, target=far) for budget in (1e18, 1e23))
    assert any("these runs narrow" in warning for warning in small.warnings)
    assert not any("these runs narrow" in warning for warning in large.warnings)
    assert small.half_width_after > 0.95 * small.half_width_now
    assert large.half_width_after < 0.95 * large.half_width_now


@dataclass(frozen=True)
class Falling:
    widths: list[float]

    def after(self, selection):
        return self.widths[len(selection) - 1]


def rename(sizes):
    return {"N": sizes["params"], "D": sizes["tokens"]}
