"""Does the chosen design beat random and D-optimal choice? Simulated, with everything paired.

    python benchmarks/design.py [REPEATS]

In each repeat a pilot study is simulated and fitted; the three ways of choosing then spend the same budget,
their runs are simulated, the law is fitted again, and the squared error of the target's log loss is compared
with the truth. As a control the design is also made for another target than the one it is judged on.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from isoloss import cpu
from isoloss.distributions import t_quantile
from isoloss.laws import Array, Fit, fit, form
from isoloss.plans.design import candidate_sets
from isoloss.plans.holdout import flops_6nd
from isoloss.plans.selection import best_selection, d_gain, random_selections, v_gain

NOISE = 0.01
DRAWS = 1000


@dataclass(frozen=True)
class World:
    """A true law, the pilot study's inputs, the prediction that matters and one that does not."""

    law: str
    params: Mapping[str, float]
    pilot: Mapping[str, Array]
    target: Mapping[str, float]
    wrong_target: Mapping[str, float]
    budget_flops: float
    at_most: int = 4

    def loss(self, x: Mapping[str, Array]) -> Array:
        return form(self.law).loss(self.params, x)

    def measured(self, x: Mapping[str, Array], rng: np.random.Generator) -> Array:
        mean = np.asarray(self.loss(x))
        return mean + NOISE * rng.standard_normal(mean.shape)


def grid(**axes: Array) -> dict[str, Array]:
    return {name: a.ravel() for name, a in zip(axes, np.meshgrid(*axes.values()), strict=True)}


CHINCHILLA = World(
    law="chinchilla",
    params={"E": 1.8, "A": 480.0, "alpha": 0.35, "B": 2000.0, "beta": 0.37},
    pilot=grid(params=np.geomspace(3e7, 3e8, 4), tokens=np.geomspace(1e9, 3e10, 4)),
    target={"params": 3e7, "tokens": 3e11},
    wrong_target={"params": 3e8, "tokens": 1e9},
    budget_flops=6e19,
)
"""A small model trained ten times longer than the pilot, as one that will be served to many."""

LOOPED = World(
    law="loop-total",
    params={"E": 1.5, "A": 480.0, "alpha": 0.35, "B": 2000.0, "beta": 0.37, "C": 0.4, "gamma": 0.8}
    | dict.fromkeys(("t1", "t2", "t3"), 0.0),
    pilot=grid(
        params=np.geomspace(1e7, 1e8, 3),
        tokens=np.geomspace(1e9, 1e10, 3),
        recurrence=np.array([1, 2, 4, 8.0]),
    ),
    target={"params": 1e9, "tokens": 1e11, "recurrence": 16.0},
    wrong_target={"params": 1e7, "tokens": 1e9, "recurrence": 1.0},
    budget_flops=6e19,
)
"""A larger model with more loops than the pilot tried."""


def quick_fit(first: Fit, x: Mapping[str, Array], y_n: Array) -> Fit:
    """Least squares by one descent from the optimum of ``first``: far faster than a fit from scratch."""
    law, units = first.form, first.units
    z_In = np.log(np.stack([x[name] / units.inputs[name] for name in law.inputs]))
    free = [place for place, name in enumerate(law.parameters) if name not in first.fixed]

    def theta(moved_F: Array) -> Array:
        all_p = np.array(first.theta)
        all_p[free] = moved_F
        return all_p

    solution = least_squares(
        lambda moved_F: law.value(theta(moved_F), z_In) - y_n / units.loss,
        np.array(first.theta)[free],
        jac=lambda moved_F: law.gradient(theta(moved_F), z_In)[:, free],
        method="lm",
        xtol=1e-7,
        ftol=1e-9,
        max_nfev=100,
    )
    df = len(y_n) - len(free)
    variance = 2 * solution.cost / df
    covariance_pp = np.zeros((len(first.theta), len(first.theta)))
    covariance_pp[np.ix_(free, free)] = variance * np.linalg.inv(solution.jac.T @ solution.jac)
    return replace(
        first,
        theta=tuple(theta(solution.x)),
        covariance=tuple(tuple(row) for row in covariance_pp),
        sigma=float(np.sqrt(variance)) * units.loss,
        df=df,
    )


def errors(world: World, first: Fit, rng: np.random.Generator) -> dict[str, float]:
    """Squared errors of the target's log loss after buying, by way of choosing."""
    pilot_y = world.measured(world.pilot, rng)
    pilot = quick_fit(first, world.pilot, pilot_y)
    seed = int(rng.integers(2**31))
    spend = (world.budget_flops, world.at_most)
    how = {"cost": flops_6nd, "draws": DRAWS, "seed": seed}
    candidates, linear, x = candidate_sets(pilot, world.budget_flops, world.target, candidates=None, **how)
    selections = {
        "V-optimal": best_selection(candidates, v_gain, *spend),
        "D-optimal": best_selection(linear, d_gain, *spend),
        "random": random_selections(candidates, *spend, 1, rng)[0],
    }
    wrong, _, same_x = candidate_sets(pilot, world.budget_flops, world.wrong_target, candidates=x, **how)
    selections["V-optimal for the wrong target"] = best_selection(wrong, v_gain, *spend)
    truth = float(world.loss({name: np.array(value) for name, value in world.target.items()}))
    noise = NOISE * rng.standard_normal(world.at_most)  # the same luck for each way of choosing
    out = {}
    for name, selection in selections.items():
        added = {column: values[selection] for column, values in same_x.items()}
        y_n = np.asarray(world.loss(added)) + noise[: len(selection)]
        both = {column: np.concatenate([world.pilot[column], added[column]]) for column in added}
        after = quick_fit(pilot, both, np.concatenate([pilot_y, y_n]))
        predicted = float(after.losses(np.array([after.theta]), **world.target)[0, 0])
        out[name] = np.log(predicted / truth) ** 2
    return out


@dataclass(frozen=True)
class Result:
    """Mean squared errors, and the 90% interval of each one's minus that of the V-optimal choice."""

    repeats: int
    mean: dict[str, float]
    excess: dict[str, tuple[float, float]]


def simulate(world: World, repeats: int, seed: int = 0) -> Result:
    rng = np.random.default_rng(seed)
    first = fit(world.law, world.pilot, world.measured(world.pilot, rng))
    rows = [errors(world, first, rng) for _ in range(repeats)]
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    excess = {}
    for name, error_r in table.items():
        difference = error_r - table["V-optimal"]
        reach = t_quantile(0.9, repeats - 1) * difference.std(ddof=1) / np.sqrt(repeats)
        excess[name] = (float(difference.mean() - reach), float(difference.mean() + reach))
    return Result(repeats, {name: float(e.mean()) for name, e in table.items()}, excess)


def main(repeats: int) -> None:
    print(f"# isoloss design, {repeats} simulated studies a world, noise {NOISE} nats")
    print(f"# {cpu.with_versions('numpy', 'scipy')}, one thread")
    for world in (CHINCHILLA, LOOPED):
        result = simulate(world, repeats)
        print(f"\n{world.law}: target {dict(world.target)}, budget {world.budget_flops:.3g} FLOPs")
        print(f"{'choice':<32}{'RMSE of log loss':>18}{'MSE minus V-optimal, 90% interval':>38}")
        for name, mean in result.mean.items():
            low, high = result.excess[name]
            apart = "" if name == "V-optimal" else f"[{low:+.2e}, {high:+.2e}]"
            print(f"{name:<32}{np.sqrt(mean):>18.5f}{apart:>38}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
