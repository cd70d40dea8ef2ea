"""IsoFLOP: exact on known curves, flags that discard, noise that is told."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import Akima1DInterpolator
from sweeps import BUDGETS, EXPONENT, LAW, chinchilla, chinchilla_optimum, grid

from isoloss.errors import InputError, IsolossError, Refusal
from isoloss.laws.frontier import frontier, thirds
from isoloss.laws.isoflop import Flag, TokenRule, isoflop, reasons
from isoloss.laws.minima import Method, minima, scatter


def bowl(C, N, exponent=0.6):
    """Log loss quadratic in log N about N* = 0.02 C^exponent."""
    return np.exp(1.2 - 0.03 * np.log(C / 1e18) + 0.05 * np.log(N / (0.02 * C**exponent)) ** 2)


def bowl_grid(exponent=0.6, sizes=7):
    C = np.repeat(BUDGETS, sizes)
    N = 0.02 * C**exponent * np.tile(np.geomspace(0.2, 7.0, sizes), len(BUDGETS))
    return C, N, bowl(C, N, exponent)


def test_a_parabola_recovers_a_quadratic_law_exactly():
    C, N, loss = bowl_grid()
    sweep_fit = isoflop(C, N, loss, method="parabola")
    assert sweep_fit.params.exponent == pytest.approx(0.6, abs=1e-9)
    assert sweep_fit.params.coefficient == pytest.approx(0.02, rel=1e-7)
    assert sweep_fit.params_weighted.exponent == pytest.approx(0.6, abs=1e-9)
    assert [budget.params for budget in sweep_fit.used] == pytest.approx(0.02 * BUDGETS**0.6, rel=1e-9)
    assert [budget.loss for budget in sweep_fit.used] == pytest.approx(
        np.exp(1.2 - 0.03 * np.log(BUDGETS / 1e18))
    )


def test_akima_recovers_a_chinchilla_law_on_a_fine_grid():
    C, N = grid(sizes=25)
    sweep_fit = isoflop(C, N, chinchilla(C, N))
    assert sweep_fit.params.exponent == pytest.approx(EXPONENT, abs=2e-4)
    assert [budget.params for budget in sweep_fit.used] == pytest.approx(
        chinchilla_optimum(LAW, BUDGETS), rel=0.003
    )
    assert sweep_fit.params.band(3e19)[0] == pytest.approx(chinchilla_optimum(LAW, 3e19), rel=0.003)


@pytest.mark.parametrize(("place", "by"), [(3, 0.6), (1, 0.3), (8, -0.5), (13, 1.0), (20, 0.2)])
def test_one_bad_size_is_left_out_and_every_budget_stays(place, by):
    C, N, loss = bowl_grid()
    wrong = loss.copy()
    wrong[place] += by
    sweep_fit = isoflop(C, N, wrong)
    assert [size for budget in sweep_fit.budgets for size in budget.left_out] == [pytest.approx(N[place])]
    assert len(sweep_fit.used) == len(BUDGETS)
    assert sweep_fit.params.exponent == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize("noise", [0.0, 1e-3, 1e-2])
def test_control_no_size_of_an_honest_sweep_is_left_out(noise):
    C, N, loss = bowl_grid()
    loss = loss * np.exp(np.random.default_rng(5).normal(0, noise, len(loss)))
    assert not any(budget.left_out for budget in isoflop(C, N, loss, method="parabola").budgets)


@given(st.integers(0, 10_000), st.integers(4, 12))
@settings(max_examples=60)
def test_minima_agree_with_a_dense_search(seed, count):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.2, 2.0, count))
    y_nS = rng.standard_normal((count, 3))
    at, low, inside = minima(x, y_nS, Method.AKIMA)
    dense, step = np.linspace(x[0], x[-1], 60_001, retstep=True)
    curve = Akima1DInterpolator(x, y_nS)
    least = curve(dense).min(axis=0)
    bend = curve.derivative(2).c  # linear between two points, so largest at one of them
    sharpest = np.maximum(np.abs(bend[1]), np.abs(bend[1] + bend[0] * np.diff(x)[:, None])).max(axis=0)
    assert np.all(least <= low + sharpest * step**2 / 8 + 1e-9)
    assert np.all(low <= least + 1e-9)
    assert np.array_equal(inside, (at > x[0]) & (at < x[-1]))


def edge_case():
    """A frontier whose three largest budgets hold no size above the optimum, with the losses' true law."""
    C, N = grid(np.geomspace(1e18, 1e22, 9), width=40.0, sizes=15)
    kept = 1.02 * chinchilla_optimum(LAW, 1e20 * 10**0.5) >= N
    return C[kept], N[kept], chinchilla(C[kept], N[kept])


def test_minima_on_an_edge_are_discarded_and_would_bias():
    sweep_fit = isoflop(*edge_case())
    assert [budget.flags for budget in sweep_fit.budgets if not budget.used] == [(Flag.EDGE,)] * 3
    assert reasons(sweep_fit.budgets)[0].startswith("C = 1e21: discarded: the curve is lowest at")
    assert sweep_fit.params.exponent == pytest.approx(EXPONENT, abs=0.005)
    kept = frontier([b.flops for b in sweep_fit.budgets], [b.params for b in sweep_fit.budgets], level=0.9)
    assert kept.exponent < EXPONENT - 0.05


def test_curves_within_the_noise_are_discarded():
    C, N, loss = bowl_grid()
    flat = BUDGETS[2] == C
    loss[flat] = 3.0 + 0.001 * np.cos(np.arange(flat.sum()) + 2.6)
    sweep_fit = isoflop(C, N, loss, noise=0.002)
    assert not sweep_fit.budgets[2].used
    assert set(sweep_fit.budgets[2].flags) & {Flag.WEAK, Flag.OFTEN_EDGE, Flag.EDGE}
    assert sweep_fit.params.exponent == pytest.approx(0.6, abs=0.01)
    steady = isoflop(C, N, loss, noise=1e-6)
    assert Flag.WEAK not in steady.budgets[2].flags


def test_each_flag_has_its_case():
    C, N, loss = bowl_grid()
    first, second, third = (flops == C for flops in BUDGETS[:3])
    drop = np.flatnonzero(first)[3:]
    loss[second] = 9 - loss[second]
    shifted = N[third] * 4.5
    N[third], loss[third] = shifted, bowl(C[third], shifted)
    keep = np.delete(np.arange(len(C)), drop)
    keep = np.append(keep, keep[-1])  # the last row twice
    sweep_fit = isoflop(C[keep], N[keep], loss[keep], method="parabola", noise=1e-4)
    flags = [set(budget.flags) for budget in sweep_fit.budgets]
    assert flags[0] == {Flag.FEW_SIZES}
    assert flags[1] == {Flag.OPENS_DOWN}
    assert flags[2] == {Flag.OFF_CENTRE}
    assert flags[3] == set()
    assert flags[-1] == {Flag.DUPLICATES}
    assert [budget.used for budget in sweep_fit.budgets] == [False, False] + [True] * 5


def test_a_shallow_side_is_flagged_and_kept():
    C, N, loss = bowl_grid(sizes=13)
    own = BUDGETS[3] == C
    N[own] *= 4.0  # the smallest size is now 0.8 N*, where the loss is 0.007 above the minimum
    loss[own] = bowl(C[own], N[own])
    budget = isoflop(C, N, loss, noise=0.005).budgets[3]
    assert Flag.SHALLOW in budget.flags
    assert budget.used
    assert Flag.SHALLOW not in isoflop(C, N, loss, noise=0.001).budgets[3].flags


def test_a_minimum_that_most_noise_draws_move_to_an_edge_is_discarded():
    C, N, loss = bowl_grid()
    loss[BUDGETS[3] == C] = [3.001, 3.1, 3.05, 3.0, 3.05, 3.1, 3.001]
    budget = isoflop(C, N, loss, noise=0.02).budgets[3]
    assert Flag.OFTEN_EDGE in budget.flags
    assert not budget.used
    assert budget.log_se is None
    assert isoflop(C, N, loss, noise=1e-4).budgets[3].used


def test_repeats_of_a_size_are_averaged():
    C, N, loss = bowl_grid()
    twice = isoflop(np.tile(C, 2), np.tile(N, 2), np.concatenate([loss + 0.01, loss - 0.01]), draws=0)
    once = isoflop(C, N, loss, draws=0)
    assert twice.params.exponent == pytest.approx(once.params.exponent, abs=1e-12)
    assert all(Flag.DUPLICATES in budget.flags for budget in twice.budgets)


def test_near_flops_share_a_budget_and_distant_ones_do_not():
    C, N = grid(np.array([1.5e19, 2.4e19, 1e20]), sizes=7)
    loss = chinchilla(C, N)
    jitter = 1 + 0.03 * np.cos(np.arange(len(C)))
    sweep_fit = isoflop(C * jitter, N, loss)
    assert [budget.flops for budget in sweep_fit.budgets] == pytest.approx([1.5e19, 2.4e19, 1e20], rel=0.02)
    spread = np.geomspace(1e18, 1e19, 60)
    with pytest.raises(Refusal, match="form no budgets"):
        isoflop(spread, np.geomspace(1e8, 1e9, 60), np.full(60, 3.0))


def same(one, other, rel=1e-9):
    for name in ("params", "tokens", "params_weighted"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert ours.exponent == pytest.approx(theirs.exponent, rel=rel)
        assert ours.interval == pytest.approx(theirs.interval, rel=rel)


def test_the_order_of_rows_changes_nothing():
    C, N = grid(sizes=9)
    rng = np.random.default_rng(1)
    loss = chinchilla(C, N) + 0.004 * rng.standard_normal(len(C))
    order = rng.permutation(len(C))
    assert isoflop(C, N, loss) == isoflop(C[order], N[order], loss[order])


def test_units_change_no_exponent():
    C, N = grid(sizes=9)
    loss = chinchilla(C, N) + 0.004 * np.random.default_rng(2).standard_normal(len(C))
    D = C / 6 / N
    plain = isoflop(C, N, loss, tokens=D, noise=0.004)
    billions = isoflop(C / 1e18, N / 1e9, loss / math.log(2), tokens=D / 1e9, noise=0.004 / math.log(2))
    same(plain, billions, rel=1e-7)
    assert billions.params.band(1.0)[0] == pytest.approx(plain.params.band(1e18)[0] / 1e9, rel=1e-7)


def test_exponents_need_not_add_up_to_one():
    C, N = grid(sizes=9)
    head = 1 + 3e7 / N  # FLOPs that params do not count weigh most in small models
    sweep_fit = isoflop(C, N, chinchilla(C, N), tokens=C / (6 * N * head))
    assert sweep_fit.token_rule is TokenRule.FROM_ROWS
    assert sweep_fit.exponent_sum == pytest.approx(sweep_fit.params.exponent + sweep_fit.tokens.exponent)
    assert sweep_fit.exponent_sum > 1.01
    for budget in sweep_fit.used:
        assert budget.tokens == pytest.approx(
            budget.flops / (6 * budget.params * (1 + 3e7 / budget.params)), rel=0.01
        )
    proportional = isoflop(C, N, chinchilla(C, N), tokens=C / (6 * N))
    assert proportional.token_rule is TokenRule.OBEYED
    assert proportional.exponent_sum == pytest.approx(1.0, abs=1e-9)
    assert isoflop(C, N, chinchilla(C, N)).token_rule is TokenRule.ASSUMED


def test_noise_is_estimated_from_neighbouring_sizes():
    rng = np.random.default_rng(3)
    x = np.linspace(0, 4, 15)
    curves = [(x, 0.05 * (x - 2) ** 2 + 0.01 * rng.standard_normal(15)) for _ in range(40)]
    assert scatter(curves)[0] == pytest.approx(0.01, rel=0.15)
    assert scatter([(x, (x - 2) ** 2 + 0.1 * (x - 2) ** 3)])[0] == pytest.approx(0, abs=1e-12)
    C, N, loss = bowl_grid()
    assert "estimated" in isoflop(C, N, loss).noise
    assert isoflop(C, N, loss, noise=0.01).noise == "given: 0.01 nats"


def test_noise_draws_give_the_scatter_of_an_optimum():
    C, N = grid(np.array([1e18, 1e19, 1e20]), sizes=9)
    rng = np.random.default_rng(4)
    clean = chinchilla(C, N)
    read = [
        isoflop(C, N, clean + 0.004 * rng.standard_normal(len(C)), draws=0).budgets[1].params
        for _ in range(200)
    ]
    drawn = isoflop(C, N, clean, noise=lambda loss: np.full(len(loss), 0.004)).budgets[1].log_se
    assert drawn == pytest.approx(np.std(np.log(read)), rel=0.2)
    assert isoflop(C, N, clean, noise=0.008).budgets[1].log_se > 1.3 * drawn


def test_the_interval_covers_and_a_narrower_one_does_not():
    """400 simulations at nominal 90%: accept 84.8-94.5%; 30% narrower must fail."""
    C, N = grid(np.geomspace(1e18, 1e21, 7), sizes=9)
    rng, clean = np.random.default_rng(5), chinchilla(C, N)
    held = np.zeros(2)
    for _ in range(400):
        law = isoflop(C, N, clean + 0.005 * rng.standard_normal(len(C)), noise=0.005, draws=0).params
        off = abs(law.exponent - EXPONENT)
        half = (law.interval[1] - law.interval[0]) / 2
        held += [off <= half, off <= 0.7 * half]
    covered, narrowed = held / 400
    assert 0.848 <= covered <= 0.945
    assert narrowed < 0.848


def test_a_bent_frontier_shows_in_the_thirds():
    C = np.geomspace(1e18, 1e22, 10)
    straight, bent = C**0.5, C**0.5 * np.exp(0.01 * np.log(C / 1e20) ** 2)
    assert [third.exponent for third in thirds(C, straight, 0.1)] == pytest.approx([0.5] * 3)
    first, middle, last = (third.exponent for third in thirds(C, bent, 0.1))
    assert first < middle - 0.04 < last - 0.08
    assert thirds(C[:3], straight[:3], 0.1) == ()


def test_thin_data_are_refused_with_their_reasons():
    C, N = grid(BUDGETS[:2])
    with pytest.raises(Refusal, match="2 of 2 compute budgets"):
        isoflop(C, N, chinchilla(C, N))
    C, N = grid(np.array([1e20, 1.3e20, 1.7e20]))
    with pytest.raises(Refusal, match="half a decade"):
        isoflop(C, N, chinchilla(C, N))
    C, N = grid(shift=60.0)
    with pytest.raises(Refusal, match=r"0 of 7.*lowest at the smallest or largest size"):
        isoflop(C, N, chinchilla(C, N))


def test_bad_arguments_are_input_errors():
    C, N, loss = bowl_grid()
    for wrong in ({"method": "cubic"}, {"draws": 1}, {"level": 1.0}, {"noise": -1.0}, {"noise": 2.0}):
        with pytest.raises(InputError):
            isoflop(C, N, loss, **wrong)
    with pytest.raises(InputError, match="row 3, loss"):
        isoflop(C, N, np.where(np.arange(len(C)) == 2, np.nan, loss))
    with pytest.raises(InputError, match="differ in length"):
        isoflop(C, N[1:], loss)
    with pytest.raises(InputError, match="array of numbers"):
        isoflop(C, ["many"] * len(C), loss)


number = st.one_of(
    st.floats(1e-3, 1e3), st.sampled_from([1.0, 2.0, 1e18, 1e300, 1e-300, 0.0, -1.0, math.inf, math.nan])
)


@settings(max_examples=150)
@given(st.lists(st.tuples(number, number, number), max_size=24), st.sampled_from(["akima", "parabola"]))
def test_hostile_tables_give_an_error_or_a_finite_law(rows, method):
    C, N, loss = zip(*rows, strict=True) if rows else ((), (), ())
    try:
        sweep_fit = isoflop(C, N, loss, method=method, draws=20)
    except IsolossError:
        return
    assert np.isfinite(sweep_fit.params.exponent)
    assert json.loads(json.dumps(sweep_fit.to_json(), allow_nan=False))["budgets"]


def test_json_carries_every_reason():
    written = json.loads(json.dumps(isoflop(*edge_case()).to_json(), allow_nan=False))
    assert written["budgets"][-1]["flags"] == [Flag.EDGE.value]
    assert written["method"] == "akima"
