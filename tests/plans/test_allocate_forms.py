"""Plans with every law of N and D: outer exponents, Kaplan's, repeated data, loops, embeddings, your own."""

import numpy as np
import pytest

from isoloss.errors import InputError
from isoloss.laws import FORMS, fit, from_function
from isoloss.plans import effective_tokens, plan
from isoloss.plans.allocate import AllocationQuestion, at_budget, at_loss, minimise_budget, minimise_cost
from isoloss.plans.cost import Rates
from isoloss.plans.curve import optima
from isoloss.plans.fixed_inputs import FixedInputs
from isoloss.plans.loss_surface import loss_surface

CHINCHILLA = {"E": 1.8172, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658}
KAPLAN = {"Nc": 6.4e13, "aN": 0.076, "Dc": 1.8e13, "aD": 0.103}
REPEATED = {
    "E": np.exp(0.6254804), "A": np.exp(6.255414), "alpha": 0.3526596, "B": np.exp(7.3049974),
    "beta": 0.3526596, "R_D": 15.387756, "R_N": 5.309743,
}  # fmt: skip
LOOPED = {"E": 1.57, "A": 20.0, "alpha": 0.199, "B": 900.0, "beta": 0.369, "phi": 0.459}
OURO = {"E": 1.5, "A": 300.0, "alpha": 0.33, "B": 1500.0, "beta": 0.35, "C": 0.2, "gamma": 0.7}

CASES = {
    "outer-exponent": (
        CHINCHILLA | {"A": 3e3, "B": 3e4, "alpha": 0.5, "beta": 0.6, "gamma": 0.5},
        FixedInputs(),
    ),
    "kaplan-nd": (KAPLAN, FixedInputs()),
    "loop-equivalence": (LOOPED, FixedInputs(recurrence=4, recurrent_share=0.5)),
}


@pytest.mark.parametrize("law", CASES)
def test_closed_form_and_search_agree(known, law):
    params, setting = CASES[law]
    of = loss_surface(known(params, law), setting, 100, 0)
    question, log_c = AllocationQuestion(Rates(6.0), flops=1e22), np.array([np.log(1e22)])
    assert of.terms is not None
    exact = at_budget(of, question, log_c)
    np.testing.assert_allclose(minimise_budget(of, question, log_c), exact, atol=1e-5)
    loss = of.loss(0, *exact)
    target = AllocationQuestion(Rates(6.0), loss=float(loss[0]))
    np.testing.assert_allclose(at_loss(of, target, loss), exact, atol=1e-7)
    np.testing.assert_allclose(minimise_cost(of, target, loss), exact, atol=1e-3)


@pytest.mark.parametrize("law", ["outer-exponent", "kaplan-nd"])
def test_exponents_are_the_fits_own(known, law):
    fitted_law = known(CASES[law][0], law)
    curve = optima(fitted_law, [1e20, 1e23])
    slope = np.diff(np.log(curve.params_F)) / np.log(1e3)
    assert slope == pytest.approx(fitted_law.allocation()["a"], abs=1e-12)


def test_an_outer_exponent_moves_no_optimum(known):
    p = CASES["outer-exponent"][0]
    bent = plan(known(p, "outer-exponent"), flops=1e22)
    plain = plan(known({name: p[name] for name in CHINCHILLA}), flops=1e22)
    assert bent.params == pytest.approx(plain.params, rel=1e-12)
    assert bent.loss - p["E"] == pytest.approx((plain.loss - p["E"]) ** p["gamma"])


def test_kaplan_has_no_floor_and_its_printed_values(known):
    law = known(KAPLAN, "kaplan-nd")
    planned = plan(law, flops=6 * 1e6 * 1e8, params=1e6)
    assert planned.tokens == pytest.approx(1e8)
    assert planned.loss == pytest.approx(4.0313, abs=1e-4)
    assert plan(law, loss=0.5).flops > plan(law, loss=1.0).flops


def test_data_constrained_without_a_limit_is_its_plain_law(known):
    law = known(REPEATED, "data-constrained")
    free = plan(law, flops=1e22)
    plain = plan(known({name: REPEATED[name] for name in CHINCHILLA}), flops=1e22)
    assert free.params == pytest.approx(plain.params, rel=1e-5)
    assert free.loss == pytest.approx(plain.loss, abs=1e-9)
    assert free.tokens_per_param == pytest.approx(19.6, abs=0.05)
    assert free.epochs is None


def test_data_constrained_uses_its_own_decay(known):
    law = known(REPEATED, "data-constrained")
    scarce = plan(law, flops=1e22, unique_tokens=5e9)
    assert scarce.effective_tokens == pytest.approx(effective_tokens(scarce.tokens, 5e9, REPEATED["R_D"]))
    assert not any("assumed" in warning for warning in scarce.warnings)
    assert any("beyond 4" in warning for warning in scarce.warnings)
    # Against a dense grid along the budget.
    of = loss_surface(law, FixedInputs(unique_tokens=5e9), 100, 0)
    n = np.linspace(np.log(1e8), np.log(1e12), 200_001)
    best = n[np.argmin(of.loss(0, n, np.log(1e22 / 6) - n))]
    assert np.log(scarce.params) == pytest.approx(best, abs=1e-3)
    by_loss = plan(law, loss=scarce.loss, unique_tokens=5e9)
    assert by_loss.flops == pytest.approx(1e22, rel=1e-5)


def test_equal_loops_and_parameters(known):
    law = known(LOOPED, "loop-equivalence")
    # Iso-depth designs: 20 executed blocks of 12 d^2, two before and two behind the loop, an injection 2 d^2.
    amplitude, flops = {}, {}
    for r, layers in ((2, 8), (4, 4), (8, 2)):
        once, looped = 4 * 12, layers * 12 + 2
        share = looped / (once + looped)
        planned = plan(law, flops=1e20, recurrence=r, recurrent_share=share)
        flops[r] = 1e20 / (6 * planned.params * planned.tokens)
        terms = loss_surface(law, FixedInputs(recurrence=r, recurrent_share=share), 100, 0).terms
        amplitude[r] = float((terms.A[0] / LOOPED["A"]) ** (-1 / LOOPED["alpha"]))
    assert amplitude == pytest.approx({2: 1.251, 4: 1.454, 8: 1.561}, abs=1e-3)
    assert flops == pytest.approx({2: 1.671, 4: 2.531, 8: 3.459}, abs=1e-3)
    one = plan(law, flops=1e20, recurrence=1, recurrent_share=0.7)
    plain = plan(known({name: LOOPED[name] for name in CHINCHILLA}), flops=1e20)
    assert one.params == pytest.approx(plain.params, rel=1e-12)
    assert one.loss == pytest.approx(plain.loss, rel=1e-12)


def test_ouro_runs_its_stack_so_many_times(known):
    law = known(OURO, "loop-total")
    planned = plan(law, flops=1e21, recurrence=4)
    assert 6 * 4 * planned.params * planned.tokens == pytest.approx(1e21)
    p = OURO
    left = p["alpha"] * p["A"] * planned.params ** -p["alpha"]
    assert left == pytest.approx(p["beta"] * p["B"] * planned.tokens ** -p["beta"], rel=1e-5)
    with pytest.raises(InputError, match="takes recurrence"):
        plan(law, flops=1e21)


def test_pearce_and_song_explain_kaplans_exponent(known):
    # Fitted over N from 768 to 1.5e9 they print N ~ C^0.78; a plain log grid gives 0.75 to 0.79.
    law = known(CHINCHILLA | {"g": 47491.0}, "pearce-song")
    flops = np.geomspace(1e10, 1e23, 40)
    curve = optima(law, flops)
    used = (curve.params_F > 768) & (curve.params_F < 1.5e9)
    slope = np.polyfit(np.log(curve.flops_F[used]), np.log(curve.params_F[used]), 1)[0]
    assert 0.74 < slope < 0.80


@pytest.mark.parametrize(
    ("law", "setting"),
    [
        ("chinchilla", {"recurrence": 2}),
        ("chinchilla", {"recurrent_share": 0.5}),
        ("loop-equivalence", {"recurrence": 2}),
        ("loop-equivalence", {"recurrence": 2, "recurrent_share": 1.5}),
        ("loop-total", {}),
        ("loop-total", {"recurrence": 2, "recurrent_share": 0.5}),
    ],
)
def test_what_a_law_lacks_or_does_not_know(known, law, setting):
    params = {"chinchilla": CHINCHILLA, "loop-equivalence": LOOPED, "loop-total": OURO}[law]
    with pytest.raises(InputError) as caught:
        plan(known(params, law), flops=1e21, **setting)
    assert caught.value.mend


@pytest.mark.parametrize(
    "law", ["width-depth", "context-params", "kaplan-ns", "power-floor", "context", "shape"]
)
def test_laws_without_n_or_d(known, law):
    params = dict.fromkeys(FORMS[law].parameters, 0.5)
    with pytest.raises(InputError, match="needs parameters and tokens"):
        plan(known(params, law), flops=1e21)


def test_your_own_law(runs, monkeypatch):
    own = from_function(
        "own",
        lambda p, x: p["E"] + p["A"] * x["params"] ** -p["a"] + p["A"] * (20 / x["tokens"]) ** p["a"],
        formula="L = E + A N^-a + A (D/20)^-a",
        inputs=("params", "tokens"),
        starts={"E": (1.5, 2.0), "A": (300.0, 1000.0), "a": (0.3, 0.4)},
    )
    monkeypatch.setitem(FORMS, "own", own)
    params, tokens, loss = runs
    fitted_law = fit("own", {"params": params, "tokens": tokens}, loss)
    planned = plan(fitted_law, flops=1e22)
    # By symmetry the best split has 20 tokens a parameter, whatever the numbers.
    assert planned.tokens_per_param == pytest.approx(20, rel=1e-5)
    low, high = planned.intervals["params"]
    assert high / low == pytest.approx(1, abs=1e-4)
