"""The chosen runs narrow the prediction that they were chosen for, and beat random and D-optimal choice."""

import importlib.util
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import fit, form
from isoloss.plans.design import REACH, candidate_sets, design
from isoloss.plans.holdout import flops_6nd
from isoloss.plans.selection import (
    CandidateSet,
    after_runs,
    best_selection,
    d_gain,
    random_selections,
    v_gain,
)

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "design.py"
TARGET = {"params": 7e9, "tokens": 1.4e11}
SETS = {"candidates": None, "cost": flops_6nd, "draws": 200, "seed": 20260422}


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("design_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def pilot():
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 3e8, 4), np.geomspace(1e9, 3e10, 4)))
    noise = 0.01 * np.random.default_rng(0).standard_normal(N.size)
    return fit("chinchilla", {"params": N, "tokens": D}, 1.8 + 480 * N**-0.35 + 2000 * D**-0.37 + noise)


def test_the_quick_fit_of_the_simulation_is_the_fit(simulation):
    world, rng = simulation.CHINCHILLA, np.random.default_rng(4)
    first, loss = (world.measured(world.pilot, rng) for _ in range(2))
    quick = simulation.quick_fit(fit(world.law, world.pilot, first), world.pilot, loss)
    slow = fit(world.law, world.pilot, loss)
    assert quick.predict(**world.target).loss == pytest.approx(slow.predict(**world.target).loss, rel=1e-6)
    assert quick.predict(**world.target).band == pytest.approx(slow.predict(**world.target).band, rel=1e-4)


@pytest.mark.parametrize("world", ["CHINCHILLA", "LOOPED"])
def test_beats_random_and_d_optimal_choice_and_only_for_its_own_target(simulation, world):
    result = simulation.simulate(getattr(simulation, world), 80)
    assert result.excess["D-optimal"][0] > 0
    assert result.excess["random"][0] > 0
    # Negative control: chosen for another prediction, the same search has no advantage left.
    wrong = "V-optimal for the wrong target"
    assert result.excess[wrong][0] > 0
    assert result.mean[wrong] > result.mean["D-optimal"]


def test_keeps_to_the_budget_the_number_and_the_grid(pilot):
    designed = design(pilot, budget_flops=6e19, target=TARGET, at_most=5)
    assert 1 <= len(designed.runs) <= 5
    assert designed.spent_flops == pytest.approx(sum(run.flops for run in designed.runs))
    assert designed.spent_flops <= 6e19 * (1 + 1e-9)
    for run in designed.runs:
        assert run.flops == pytest.approx(6 * run.inputs["params"] * run.inputs["tokens"])
        for name, value in run.inputs.items():
            low, high = pilot.ranges[name]
            assert low * (1 - 1e-9) <= value <= min(high * REACH, TARGET[name]) * (1 + 1e-9)
    widths = [designed.half_width_now, *(run.half_width for run in designed.runs)]
    assert all(later < before for before, later in pairwise(widths))
    assert designed.half_width_after == designed.runs[-1].half_width
    assert designed.half_width_after < designed.half_width_d_optimal < designed.half_width_random
    low, high = pilot.predict(**TARGET).band
    assert designed.half_width_now == pytest.approx((high - low) / 2)


def test_more_budget_never_leaves_more_doubt(pilot):
    widths = [
        design(pilot, budget_flops=b, target=TARGET, at_most=4).half_width_after for b in (1e18, 1e19, 1e20)
    ]
    assert widths == sorted(widths, reverse=True)


def test_the_expected_variance_is_what_a_linear_law_has_after_the_runs(pilot):
    """Conditioning on draws against Sherman-Morrison written out, on the linear law."""
    _, linear, x = candidate_sets(pilot, 6e19, TARGET, **SETS)
    selection = [0, 5, 5]
    law, theta = form(pilot.law), np.array(pilot.theta)

    def slopes(inputs):
        z_In = np.stack([np.log(np.atleast_1d(inputs[n]) / pilot.units.inputs[n]) for n in law.inputs])
        return law.gradient(theta, z_In) / law.value(theta, z_In)[:, None]

    rows = slopes({name: values[selection] for name, values in x.items()})
    # The covariance of theta behind the candidate set, from its own values at as many points as parameters.
    J = slopes({name: np.append(values, TARGET[name]) for name, values in x.items()})
    pinv = np.linalg.pinv(J)
    sigma = pinv @ linear.cov_TT @ pinv.T
    after = np.linalg.inv(np.linalg.inv(sigma) + rows.T @ (rows / linear.noise_C[selection][:, None]))
    target = slopes(TARGET)[0]
    assert linear.share_left(selection) == pytest.approx(
        target @ after @ target / (target @ sigma @ target), rel=1e-5
    )


def test_a_run_that_tells_two_optima_apart_is_bought_first():
    """Draws in two basins: within each, candidate 0 says most; between them, only candidate 1 does."""
    rng = np.random.default_rng(3)
    basin = np.repeat([0.0, 1.0], 500)
    own = 0.1 * rng.standard_normal(1000)
    target = own + basin
    spread = np.stack([own, basin + 0.01 * rng.standard_normal(1000), target], axis=1)
    candidates = CandidateSet(np.cov(spread, rowvar=False), np.full(2, 1e-4), np.ones(2))
    assert best_selection(candidates, v_gain, 1.0, 1) == [1]
    one_basin = CandidateSet(np.cov(spread[:500], rowvar=False), np.full(2, 1e-4), np.ones(2))
    assert best_selection(one_basin, v_gain, 1.0, 1) == [0]


def test_the_search_finds_the_best_pair_of_a_small_set():
    rng = np.random.default_rng(5)
    for _ in range(20):
        root = rng.standard_normal((9, 4))
        candidates = CandidateSet(root @ root.T, np.full(8, 0.3), rng.uniform(1, 3, 8))
        allowed = [
            [a, b]
            for a in range(8)
            for b in range(a, 8)
            if candidates.cost_C[a] + candidates.cost_C[b] <= 4.5
        ] + [[a] for a in range(8)]
        best = min(candidates.share_left(selection) for selection in allowed)
        best_pair = best_selection(candidates, v_gain, 4.5, 2)
        assert candidates.share_left(best_pair) <= best * 1.02
        # Negative control: a random pair is far from that on average.
        by_chance = random_selections(candidates, 4.5, 2, 50, rng)
        assert np.mean([candidates.share_left(selection) for selection in by_chance]) > best * 1.02


def test_d_gain_adds_up_to_the_log_determinant(pilot):
    _, linear, _ = candidate_sets(pilot, 6e19, TARGET, **SETS)
    selection = [3, 17, 40]
    block = linear.cov_TT[np.ix_(selection, selection)] / linear.noise_C[selection]
    wanted = np.linalg.slogdet(np.eye(3) + block)[1]
    gain = after_runs(linear, d_gain, selection)[1]
    assert gain == pytest.approx(wanted, rel=1e-6)


def test_the_same_seed_gives_the_same_design(pilot):
    one, two = (design(pilot, budget_flops=1e19, target=TARGET, at_most=3) for _ in range(2))
    assert one == two


def test_candidates_and_costs_of_ones_own(pilot):
    mine = {"params": [1e8, 2e9], "tokens": [1e10, 4e10]}
    designed = design(
        pilot, budget_flops=100.0, target=TARGET, candidates=mine, cost=lambda x: np.array([10.0, 60.0])
    )
    assert {run.inputs["params"] for run in designed.runs} <= {1e8, 2e9}
    assert designed.spent_flops <= 100


def test_refuses_what_it_cannot_know(pilot):
    with pytest.raises(Refusal, match="buys no run"):
        design(pilot, budget_flops=1e12, target=TARGET)
    with pytest.raises(Refusal, match="no interval"):
        design(replace(pilot, covariance=None), budget_flops=1e19, target=TARGET)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget_flops": -1.0}, "budget"),
        ({"budget_flops": float("nan")}, "budget"),
        ({"at_most": 0}, "at most 0"),
        ({"target": {"params": 1e9}}, "tokens"),
        ({"target": {"params": [1e9, 1e10], "tokens": [1e9, 1e10]}}, "more than one point"),
        ({"candidates": {"params": [1e9]}}, "candidates have params"),
        ({"candidates": {"params": [1e9, 2e9], "tokens": [1e9]}}, "differ in length"),
        ({"cost": lambda x: -x["params"]}, "cost"),
    ],
)
def test_bad_input_is_named(pilot, options, words):
    with pytest.raises((InputError, Refusal), match=words):
        design(pilot, **{"budget_flops": 1e19, "target": TARGET} | options)


def test_a_law_without_tokens_asks_for_the_cost():
    N = np.geomspace(1e6, 1e8, 8)
    noise = 1 + 0.003 * np.random.default_rng(1).standard_normal(8)
    law = fit("power", {"params": N}, (5e13 / N) ** 0.08 * noise)
    with pytest.raises(InputError, match="do not follow"):
        design(law, budget_flops=1e19, target={"params": 1e9})
    designed = design(law, budget_flops=1e19, target={"params": 1e9}, cost=lambda x: 120 * x["params"] ** 2)
    assert max(run.inputs["params"] for run in designed.runs) > 1e8
