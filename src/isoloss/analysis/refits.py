"""A fit's own rows asked again: without one run at a time, under other objectives, the largest hidden, and by
methods without a law."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoloss.analysis.fit_rows import exact, on_logs
from isoloss.errors import Refusal, attempt, refuse_rows
from isoloss.laws import (
    FORMS,
    WORST_CONDITION,
    Array,
    Fit,
    FitData,
    FitStatus,
    Points,
    Problem,
    covariance_S,
    descend,
    fit,
    problem_of,
)
from isoloss.plans.backtest import Backtest, backtest

if TYPE_CHECKING:  # `isoloss fit` hides runs and compares nothing
    from isoloss.plans.compare import Comparison
    from isoloss.plans.methods import ExponentsByMethod

Indices = NDArray[np.integer]

BATCH = 100
MOST = 400
"""Of more runs than this only those that pull hardest are left out in turn."""

OBJECTIVES = (
    ("squared", 1e-3),
    ("squared-log", 1e-3),
    ("huber-log", 1e-4),
    ("huber-log", 1e-3),
    ("huber-log", 1e-2),
)


Refits = list[tuple[str, float | None, Fit | Refusal]]
"""Objective, delta, and the fit under them."""


@dataclass(frozen=True)
class LeftOut:
    """The law without one run, or without the rows of one cluster.

    ``inputs`` are those of the run, or of the cluster's first row. ``moved`` is the root mean square change
    of the law over all runs, in standard deviations of a run; ``params`` the law without it. Both are None
    where the rest does not determine the law.
    """

    inputs: Mapping[str, float]
    rows: int
    loss: float
    moved: float | None
    params: Mapping[str, float] | None


@dataclass(frozen=True)
class LeaveOneOut:
    """All runs or clusters that were left out, the most moving first; ``of`` counts those there are."""

    each: tuple[LeftOut, ...]
    of: int


def leave_one_out(law: Fit) -> LeaveOneOut:
    """Refit without each run or cluster in turn, batched, from the estimate.

    Raises Refusal for a fit without rows, with too few runs, or that misses no run at all.
    """
    if law.data is None:
        raise Refusal("this fit carries no rows to leave out", mend="fit the law to a table")
    problem, points = problem_of(law)
    theta = np.array(law.theta)
    phi = theta[problem.model.free]
    if points.groups <= len(phi) + 1:
        raise Refusal(
            f"{points.groups} runs are too few to do without one", mend=f"train at least {len(phi) + 2} runs"
        )
    if exact(law):
        raise Refusal("the law misses no run, so none can move it", mend="give losses as they were measured")
    groups = _strongest(problem, phi, points)
    phi_GF, sound_G = _without(problem, phi, points, groups)
    theta_Gp = problem.model.theta(phi_GF)
    before_n, after_Gn = (law.form.value(t, problem.model.z_In) for t in (theta, theta_Gp))
    away_Gn = np.log(after_Gn / before_n) if on_logs(law) else law.units.loss * (after_Gn - before_n)
    moved_G = np.sqrt(np.average(away_Gn**2, axis=1, weights=points.w_n)) / law.sigma
    kappa_Gp = problem.model.unscale(theta_Gp)
    left_out: list[LeftOut] = []
    for index, group in enumerate(groups):
        first = int(np.argmax(points.group_n == group))
        sound = bool(sound_G[index])
        left_out.append(
            LeftOut(
                inputs=dict(zip(law.form.inputs, points.x_In[:, first].tolist(), strict=True)),
                rows=int(np.sum(points.group_n == group)),
                loss=float(points.y_n[first]),
                moved=float(moved_G[index]) if sound else None,
                params=law.form.plain(kappa_Gp[index]) | dict(law.fixed) if sound else None,
            )
        )
    # What the rest cannot do without comes first.
    left_out.sort(key=lambda run: -np.inf if run.moved is None else -run.moved)
    return LeaveOneOut(tuple(left_out), points.groups)


def objectives(law: Fit) -> Refits:
    """Name, delta and fit under the fit's own objective and the others. Raises Refusal without rows."""
    if law.data is None:
        raise Refusal("this fit carries no rows to fit again", mend="fit the law to a table")
    first = (law.objective.name, law.objective.delta)
    out: Refits = [(*first, law)]
    for name, delta in OBJECTIVES:
        used = delta if name == "huber-log" else None
        if (name, used) != first and not (law.signed_floor and name != "squared"):
            out.append((name, used, _under(law, law.data, name, delta)))
    return out


def _under(law: Fit, data: FitData, objective: str, delta: float) -> Fit | Refusal:
    return attempt(
        fit,
        law.law,
        data.inputs,
        data.loss,
        weights=data.weights,
        cluster=data.cluster,
        objective=objective,
        delta=delta,
        level=law.level,
        fixed=law.fixed,
        free=[name for name in law.form.fixed if name not in law.fixed],
        tied=law.tied,
        allow_negative=law.signed_floor,
        curve_only=True,
    )


def hidden_runs(law: Fit, *, level: float | None = None, with_forecast: bool = True) -> Backtest:
    """The law on its own largest runs, hidden, by default at its own level.

    Raises Refusal where that cannot be asked.
    """
    data = law.data
    if data is None or law.status is FitStatus.PUBLISHED:
        raise Refusal("a published law brings no runs to hide", mend="fit it to runs")
    column = next((name for name in ("params", "tokens") if name in law.form.inputs), law.form.inputs[0])
    return refuse_rows(
        backtest,
        law.law,
        {name: np.array(values) for name, values in data.inputs.items()},
        np.array(data.loss),
        holdout=f"largest-{column}",
        weights=np.array(data.weights),
        cluster=None if data.cluster is None else np.array(data.cluster),
        level=level or law.level,
        objective=law.objective.name,
        delta=law.objective.delta or 1e-3,
        fixed=law.fixed,
        tied=law.tied,
        source=law.source,
        with_forecast=with_forecast,
    )


def compared(law: Fit) -> "Comparison":
    """The law beside every form of loss that takes its inputs or some of them, on its own rows.

    Raises Refusal where there is no other form, or no rows.
    """
    from isoloss.plans.compare import compare

    names = [
        form.name
        for form in FORMS.values()
        if form.gives == "loss" and set(form.inputs) <= set(law.form.inputs) and form.name != law.law
    ]
    if law.data is None or not names:
        raise Refusal(
            "there is no other law to compare on these rows", mend="fit a law of N and D to a table"
        )
    data = law.data
    return refuse_rows(
        compare,
        [law.form, *names],
        {name: np.array(values) for name, values in data.inputs.items()},
        np.array(data.loss),
        weights=np.array(data.weights),
        cluster=None if data.cluster is None else np.array(data.cluster),
        level=law.level,
        objective=law.objective.name,
        delta=law.objective.delta or 1e-3,
    )


def part_of(law: Fit, most: int) -> Fit:
    """``law`` with at most so many of its rows, a random part that is always the same."""
    data = law.data
    if data is None or len(data.loss) <= most:
        return law
    rows = sorted(np.random.default_rng(0).permutation(len(data.loss))[:most].tolist())

    def some(column: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(column[row] for row in rows)

    part = FitData(
        {name: some(column) for name, column in data.inputs.items()},
        some(data.loss),
        some(data.weights),
        None if data.cluster is None else some(data.cluster),
        None if data.rows is None else some(data.rows),
    )
    return replace(law, data=part)


def without_a_law(data: FitData | None, level: float) -> "ExponentsByMethod":
    """The best size over compute by several methods, at C = 6 N D. Raises Refusal without budgets."""
    from isoloss.plans.methods import exponents_by_method

    if data is None or set(data.inputs) != {"params", "tokens"}:
        raise Refusal("IsoFLOP curves need runs of params and tokens", mend="fit a law of both")
    N, D = (np.array(data.inputs[name]) for name in ("params", "tokens"))
    return refuse_rows(exponents_by_method, 6 * N * D, N, np.array(data.loss), tokens=D, level=level)


def _strongest(problem: Problem, phi: Array, points: Points) -> Indices:
    """The groups to leave out: all, or those of the largest pull times root leverage."""
    if points.groups <= MOST:
        return np.arange(points.groups)
    columns = np.sqrt(problem.w_n)[:, None] * problem.jacobian(phi)
    leverage_n = np.sum(np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[0] ** 2, axis=1)
    force_n = problem.w_n * np.abs(problem.pull(problem.residuals(phi))) * np.sqrt(leverage_n)
    return np.argsort(-np.bincount(points.group_n, force_n))[:MOST]


def _without(problem: Problem, phi: Array, points: Points, groups: Indices) -> tuple[Array, Array]:
    """The optimum without each group, and whether the rest determines it."""
    phi_GF, sound_G = np.tile(phi, (len(groups), 1)), np.zeros(len(groups), dtype=bool)
    for first in range(0, len(groups), BATCH):
        batch = slice(first, first + BATCH)
        w_Gn = np.where(points.group_n == groups[batch, None], 0.0, problem.w_n)
        part = replace(problem, w_n=w_Gn)
        phi_GF[batch] = descend(part, phi_GF[batch], tolerance=1e-9)
        sound_G[batch] = covariance_S(part, phi_GF[batch], 1)[0] <= WORST_CONDITION
    return phi_GF, sound_G
