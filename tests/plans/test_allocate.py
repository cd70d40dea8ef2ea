"""The optimum: against published numbers, the condition that defines it, brute force, and simulated truth."""

from dataclasses import replace

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import fit
from isoloss.plans import plan
from isoloss.plans.allocate import (
    AllocationQuestion,
    answer,
    at_budget,
    at_loss,
    minimise_budget,
    minimise_cost,
)
from isoloss.plans.cost import Rates
from isoloss.plans.fixed_inputs import FixedInputs
from isoloss.plans.heuristics import kaplan, twenty_tokens
from isoloss.plans.loss_surface import loss_surface, plain_params

SIX = Rates(6.0)


def one(law):
    """The surface of a fit alone, without draws."""
    return loss_surface(law, FixedInputs(), 100, 0)


@pytest.mark.parametrize(
    ("name", "flops", "params", "tokens", "ratio", "loss"),
    [
        ("hoffmann-rounded", 1e21, 1.824e9, 9.136e10, 50.1, 2.329),
        ("hoffmann-rounded", 5.76e23, 3.219e10, 2.982e12, 92.7, 1.931),
        ("hoffmann", 1e21, 2.217e9, 7.517e10, 33.9, 2.295),
        ("hoffmann", 5.76e23, 4.036e10, 2.378e12, 58.9, 1.918),
        ("besiroglu", 1e21, 2.778e9, 5.999e10, 21.6, 2.305),
        ("besiroglu", 5.76e23, 7.225e10, 1.329e12, 18.4, 1.974),
    ],
)
def test_published_constants_give_the_known_allocations(known, name, flops, params, tokens, ratio, loss):
    planned = plan(known(name), flops=flops)
    assert planned.params == pytest.approx(params, rel=5e-4)
    assert planned.tokens == pytest.approx(tokens, rel=5e-4)
    assert planned.tokens_per_param == pytest.approx(ratio, rel=3e-3)
    assert planned.loss == pytest.approx(loss, abs=6e-4)
    assert planned.flops == pytest.approx(flops, rel=1e-12)


def test_the_optimum_balances_both_terms(known):
    law = known("hoffmann")
    for k in (6.0, 7.3):
        planned, p = plan(law, flops=1e22, flops_per_token=k), law.params
        left = p["alpha"] * p["A"] * planned.params ** -p["alpha"]
        assert left == pytest.approx(p["beta"] * p["B"] * planned.tokens ** -p["beta"], rel=1e-9)
        assert k * planned.params * planned.tokens == pytest.approx(1e22, rel=1e-12)


@pytest.mark.parametrize("name", ["hoffmann", "besiroglu"])
@pytest.mark.parametrize("flops", [1e15, 1e21, 1e27])
def test_closed_form_and_search_agree(known, name, flops):
    of, question = one(known(name)), AllocationQuestion(SIX, flops=flops)
    exact = at_budget(of, question, np.array([np.log(flops)]))
    searched = minimise_budget(of, question, np.array([np.log(flops)]))
    np.testing.assert_allclose(searched, exact, atol=2e-6)
    loss = of.loss(0, *exact)
    np.testing.assert_allclose(at_loss(of, AllocationQuestion(SIX), loss), exact, atol=1e-8)
    np.testing.assert_allclose(minimise_cost(of, AllocationQuestion(SIX), loss), exact, atol=1e-4)


def test_search_agrees_with_a_dense_grid_where_there_is_no_closed_form(known):
    law, serve = known("besiroglu"), 3e12
    question = AllocationQuestion(SIX, flops=1e23, serve_tokens=serve)
    of = one(law)
    n = np.linspace(np.log(1e8), np.log(1e23 / (2 * serve)) - 1e-9, 400_001)
    d = question.log_tokens_within(np.log(1e23), n)
    best = n[np.nanargmin(of.loss(0, n, d))]
    assert answer(of, question)[0][0] == pytest.approx(best, abs=1e-4)


def test_target_and_budget_are_inverse(known):
    law = known("besiroglu")
    by_budget = plan(law, flops=3e22)
    by_loss = plan(law, loss=by_budget.loss)
    for name in ("flops", "params", "tokens"):
        assert getattr(by_loss, name) == pytest.approx(getattr(by_budget, name), rel=1e-7)


def test_fixed_size_or_tokens(known):
    law = known("besiroglu")
    best = plan(law, flops=1e22)
    by_size = plan(law, flops=1e22, params=2 * best.params)
    assert by_size.tokens == pytest.approx(best.tokens / 2, rel=1e-9)
    by_tokens = plan(law, flops=1e22, tokens=best.tokens / 2)
    assert by_tokens.params == pytest.approx(2 * best.params, rel=1e-9)
    assert by_size.loss == pytest.approx(by_tokens.loss, rel=1e-12)
    assert by_size.loss > best.loss
    assert by_size.penalty is None
    for fixed in ({"params": by_size.params}, {"tokens": by_size.tokens}):
        planned = plan(law, loss=by_size.loss, **fixed)
        assert planned.flops == pytest.approx(1e22, rel=1e-8)


def test_more_budget_is_a_lower_loss_and_a_unit_is_only_a_unit(known):
    law = known("besiroglu")
    losses = [plan(law, flops=c).loss for c in np.geomspace(1e16, 1e26, 11)]
    assert np.all(np.diff(losses) < 0)
    params = law.params | {"B": law.params["B"] * 1e9 ** -law.params["beta"]}
    # The same law of tokens counted in billions, under FLOPs per parameter and billion tokens.
    scaled = plan(known(params), flops=1e22, flops_per_token=6e9)
    plain = plan(law, flops=1e22)
    assert scaled.tokens * 1e9 == pytest.approx(plain.tokens, rel=1e-9)
    assert scaled.params == pytest.approx(plain.params, rel=1e-9)


def test_penalty_curve(known):
    law = known("besiroglu")
    planned = plan(law, flops=1e22)
    curve = planned.penalty
    middle = len(curve.factor) // 2
    assert curve.factor[middle] == pytest.approx(1)
    assert curve.extra_loss[middle] == pytest.approx(0, abs=1e-12)
    assert curve.factor[0] == pytest.approx(1 / 8)
    for factor, extra_loss, extra_compute in zip(
        curve.factor[::6], curve.extra_loss[::6], curve.extra_compute[::6], strict=True
    ):
        size = factor * planned.params
        other = plan(law, flops=1e22, params=size)
        assert extra_loss == pytest.approx(other.loss - planned.loss, abs=1e-9)
        if extra_compute is None:
            with pytest.raises(Refusal, match="params fixed"):
                plan(law, loss=planned.loss, params=size)
            continue
        same = plan(law, loss=planned.loss, params=size)
        assert extra_compute == pytest.approx(same.flops / 1e22 - 1, abs=1e-6)
    assert sum(extra is None for extra in curve.extra_compute) < 10
    for end in curve.within_10_percent:
        same = plan(law, loss=planned.loss, params=end * planned.params)
        assert same.flops == pytest.approx(1.1e22, rel=1e-6)


def test_sizes_that_cannot_reach_the_loss_have_no_price(known):
    steep = known({"E": 1.0, "A": 1e8, "alpha": 1.0, "B": 1e10, "beta": 1.0})
    curve = plan(steep, flops=1e22).penalty
    assert curve.extra_compute[0] is None
    assert curve.extra_loss[0] > 0


def test_a_target_at_or_below_the_floor_is_refused(known, fitted):
    for target in (1.8172, 1.5):
        with pytest.raises(Refusal, match="no amount of compute"):
            plan(known("besiroglu"), loss=target)
    floor = fitted.params["E"]
    draws_Sp = fitted.draws(4000, np.random.default_rng(1))
    high = np.quantile(plain_params(fitted, draws_Sp)["E"], 0.95)
    with pytest.raises(Refusal, match="do not say whether"):
        plan(fitted, loss=(floor + high) / 2)
    planned = plan(fitted, loss=high + 0.05)
    assert None not in planned.intervals["flops"]


def test_a_size_too_small_for_the_target_is_refused(known):
    law = known("besiroglu")
    least = law.params["E"] + law.params["A"] * 1e9 ** -law.params["alpha"]
    with pytest.raises(Refusal, match="params fixed"):
        plan(law, loss=least - 1e-6, params=1e9)
    assert plan(law, loss=least + 1e-3, params=1e9).tokens > 1e12


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"flops": 1e22, "loss": 2.2},
        {"flops": 1e22, "params": 1e9, "tokens": 1e10},
        {"flops": -1},
        {"flops": float("nan")},
        {"flops": "much"},
        {"flops": 1e22, "max_epochs": 4},
        {"flops": 1e22, "unique_tokens": 1e9, "max_epochs": 0.5},
        {"flops": 1e22, "recurrence": 4},
        {"flops": 1e22, "level": 1.0},
        {"flops": 1e22, "draws": 3},
        {"flops": 1e22, "unique_tokens": 1e9, "max_epochs": 2, "tokens": 1e10},
        {"flops": 1e22, "unique_tokens": 1e9, "max_epochs": 2, "params": 1e9},
    ],
)
def test_questions_that_contradict_themselves(known, question):
    with pytest.raises(InputError) as caught:
        plan(known("besiroglu"), **question)
    assert caught.value.mend


def test_no_optimum_below_one_parameter_or_token(known):
    with pytest.raises(Refusal, match="at least one parameter"):
        plan(known("besiroglu"), flops=20.0)
    with pytest.raises(Refusal, match="at least one parameter"):
        plan(known("besiroglu"), loss=3000.0)


def test_laws_without_tokens_are_no_base_for_a_plan():
    params = np.geomspace(1e5, 1e8, 9)
    law = fit("power", {"params": params}, 10 * params**-0.1 * (1 + 0.001 * (-1.0) ** np.arange(9)))
    with pytest.raises(InputError, match="needs parameters and tokens"):
        plan(law, flops=1e20)


def test_without_covariance_there_are_no_intervals(known):
    planned = plan(known("besiroglu"), flops=1e22)
    assert set(planned.intervals.values()) == {None}
    assert planned.band is None
    assert any("no covariance" in warning for warning in planned.warnings)


def test_draws_without_an_optimum_open_the_interval(fitted):
    def with_broken(share):
        class Broken(type(fitted)):
            def draws(self, count, rng):
                theta_Sp = type(fitted).draws(fitted, count, rng)
                theta_Sp[: round(share * count), 1] = 1e4
                return theta_Sp

        fields = {name: getattr(fitted, name) for name in type(fitted).__dataclass_fields__}
        return plan(Broken(**fields), flops=1e22)

    few, many = with_broken(0.01), with_broken(0.2)
    assert few.draws.without_optimum == 10
    assert None not in few.intervals["params"]
    assert many.intervals["params"] == (None, None)
    assert any("200 of 1000 draws" in warning for warning in many.warnings)
    whole = plan(fitted, flops=1e22).intervals["params"]
    assert few.intervals["params"][0] < whole[0] < whole[1] < few.intervals["params"][1]


def test_plans_repeat(fitted):
    assert plan(fitted, flops=1e22) == plan(fitted, flops=1e22)
    assert plan(fitted, flops=1e22, seed=1).intervals != plan(fitted, flops=1e22).intervals


def test_the_unit_of_tokens_changes_no_plan(runs):
    params, tokens, loss = runs
    plain = plan(fit("chinchilla", {"params": params, "tokens": tokens}, loss), flops=1e22)
    billions = plan(
        fit("chinchilla", {"params": params, "tokens": tokens / 1e9}, loss), flops=1e22, flops_per_token=6e9
    )
    assert billions.params == pytest.approx(plain.params, rel=1e-6)
    assert billions.tokens * 1e9 == pytest.approx(plain.tokens, rel=1e-6)
    np.testing.assert_allclose(billions.intervals["params"], plain.intervals["params"], rtol=1e-4)


def simulate(times, rng):
    """Shares of simulated sets whose interval of N_opt holds the truth: as given, and 30% narrower."""
    truth = {"E": 1.8172, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658}
    both = truth["alpha"] + truth["beta"]
    g = (truth["alpha"] * truth["A"] / (truth["beta"] * truth["B"])) ** (1 / both)
    best = np.log(g * (1e22 / 6) ** (truth["beta"] / both))
    flops = np.repeat(np.geomspace(1e18, 1e21, 6), 5)
    params = np.sqrt(flops / 120) * np.tile(np.geomspace(0.25, 4, 5), 6)
    tokens = flops / (6 * params)
    mean = truth["E"] + truth["A"] * params ** -truth["alpha"] + truth["B"] * tokens ** -truth["beta"]
    held = np.zeros(2)
    for _ in range(times):
        law = fit(
            "chinchilla",
            {"params": params, "tokens": tokens},
            mean + 0.01 * rng.standard_normal(len(mean)),
        )
        low, high = np.log(plan(law, flops=1e22, draws=400, with_forecast=False).intervals["params"])
        off, half = abs(best - (low + high) / 2), (high - low) / 2
        held += [off <= half, off <= 0.7 * half]
    return held / times


def test_the_interval_of_the_best_size_covers():
    """At nominal 90% the share of 200 sets lies in 0.836-0.964 (three standard errors)."""
    held, narrowed = simulate(200, np.random.default_rng(5))
    assert 0.836 <= held <= 0.964
    # Negative control: intervals 30% narrower must fail.
    assert narrowed < 0.836


def test_a_single_number_in_a_fit_of_data_is_planned_from_its_own_draws(fitted):
    planned = plan(fitted, flops=1e22)
    low, high = planned.intervals["params"]
    assert low < planned.params < high
    run = planned.intervals["loss"]
    assert run[0] < planned.band[0] < planned.loss < planned.band[1] < run[1]
    assert planned.draws.asked == 1000
    assert "flops" not in planned.intervals


def test_doubts_are_said(known, fitted):
    rounded = plan(known("hoffmann-rounded"), flops=5.76e23).warnings
    assert any("rounded to 2 digits" in warning for warning in rounded)
    assert any("embeddings in or out" in warning for warning in rounded)
    assert not any("rounded" in warning for warning in plan(known("hoffmann"), flops=5.76e23).warnings)
    near, far = plan(fitted, flops=1e20), plan(fitted, flops=1e26, with_forecast=False)
    assert near.extrapolation["params"] == near.extrapolation["tokens"] == 1.0
    assert far.extrapolation["params"] > 10
    assert any("outside the data" in warning for warning in far.warnings)
    assert not any("outside the data" in warning for warning in near.warnings)
    forecast_warnings = plan(fitted, flops=1e26).warnings
    assert any("so far outside the runs" in warning for warning in forecast_warnings)
    assert not any("outside the data" in warning for warning in forecast_warnings)
    by_column = replace(fitted, source={"columns": {"params": "params"}, "study": True})
    assert any("output head" in warning for warning in plan(by_column, flops=1e20).warnings)
    # In other people's tables the name alone does not say what it counts.
    theirs = replace(fitted, source={"columns": {"params": "params"}})
    assert not any("output head" in warning for warning in plan(theirs, flops=1e20).warnings)
    by_total = replace(fitted, source={"columns": {"params": "params_total"}})
    assert not any("output head" in warning for warning in plan(by_total, flops=1e20).warnings)


def test_the_rounding_of_exponents_moves_the_size_as_far_as_it_says(known):
    law = known("hoffmann-rounded")
    sizes = [
        plan(known(law.params | {"alpha": 0.34 + i, "beta": 0.28 + j}), flops=1e21).params
        for i in (-0.005, 0.005)
        for j in (-0.005, 0.005)
    ]
    warning = next(w for w in plan(law, flops=1e21).warnings if "rounded" in w)
    assert f"{min(sizes) / 1e9:.3g}B" in warning.replace("G", "B")
    assert f"{max(sizes) / 1e9:.3g}B" in warning.replace("G", "B")


def test_rules_of_papers():
    # Hoffmann et al. quote 4.68B as Kaplan's optimum at 1e21 FLOPs: they took C_min = C / 2.
    assert kaplan(1e21)[0] == pytest.approx(4.68e9, rel=2e-3)
    assert kaplan(1e21, critical_batch=False)[0] == pytest.approx(7.77e9, rel=2e-3)
    assert kaplan(2 * 8.64e19)[1] == pytest.approx(2.2e10, rel=0.02)
    params, tokens = twenty_tokens(5.76e23)
    assert tokens / params == pytest.approx(20)
    assert 6 * params * tokens == pytest.approx(5.76e23)
