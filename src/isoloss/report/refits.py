"""The same rows fitted again: without one run at a time, and under other objectives."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from isoloss.errors import Refusal
from isoloss.figures.fit_rows import amount, exact, on_logs
from isoloss.laws import WORST_CONDITION, Array, Fit, Points, Problem, covariance_S, descend, fit, problem_of

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


@dataclass(frozen=True)
class LeftOut:
    """The law without one run, or without the rows of one cluster.

    ``moved`` is the root mean square change of the law over all runs, in standard deviations of a run;
    ``params`` the law without it. Both are None where the rest does not determine the law.
    """

    what: str
    rows: int
    loss: float
    moved: float | None
    params: Mapping[str, float] | None


@dataclass(frozen=True)
class LeaveOneOut:
    """All runs or clusters that were left out, the most moving first; ``of`` counts those there are."""

    each: tuple[LeftOut, ...]
    of: int


def leave_one_out(found: Fit) -> LeaveOneOut:
    """Refit without each run or cluster in turn, batched, from the estimate.

    Raises Refusal for a fit without rows, with too few runs, or that misses no run at all.
    """
    if found.data is None:
        raise Refusal("this fit carries no rows to leave out", mend="fit the law to a table")
    problem, at = problem_of(found)
    theta = np.array(found.theta)
    phi = theta[problem.model.free]
    if at.groups <= len(phi) + 1:
        raise Refusal(
            f"{at.groups} runs are too few to do without one", mend=f"train at least {len(phi) + 2} runs"
        )
    if exact(found):
        raise Refusal("the law misses no run, so none can move it", mend="give losses as they were measured")
    groups = _strongest(problem, phi, at)
    phi_GF, sound_G = _without(problem, phi, at, groups)
    theta_Gp = problem.model.theta(phi_GF)
    before_n, after_Gn = (found.form.value(t, problem.model.z_In) for t in (theta, theta_Gp))
    away_Gn = np.log(after_Gn / before_n) if on_logs(found) else found.units.loss * (after_Gn - before_n)
    moved_G = np.sqrt(np.average(away_Gn**2, axis=1, weights=at.w_n)) / found.sigma
    kappa_Gp = problem.model.unscale(theta_Gp)
    out = []
    for place, group in enumerate(groups):
        first = int(np.argmax(at.group_n == group))
        sound = bool(sound_G[place])
        out.append(
            LeftOut(
                what=_inputs(found, at, first),
                rows=int(np.sum(at.group_n == group)),
                loss=float(at.y_n[first]),
                moved=float(moved_G[place]) if sound else None,
                params=found.form.plain(kappa_Gp[place]) | dict(found.fixed) if sound else None,
            )
        )
    # What the rest cannot do without comes first.
    out.sort(key=lambda one: -np.inf if one.moved is None else -one.moved)
    return LeaveOneOut(tuple(out), at.groups)


def objectives(found: Fit) -> list[tuple[str, float | None, Fit | Refusal]]:
    """Name, delta and fit under the fit's own objective and the others. Raises Refusal without rows."""
    if found.data is None:
        raise Refusal("this fit carries no rows to fit again", mend="fit the law to a table")
    own = (found.objective.name, found.objective.delta)
    out: list[tuple[str, float | None, Fit | Refusal]] = [(*own, found)]
    for name, delta in OBJECTIVES:
        told = delta if name == "huber-log" else None
        if (name, told) != own and not (found.signed_floor and name != "squared"):
            out.append((name, told, _again(found, name, delta)))
    return out


def _again(found: Fit, objective: str, delta: float) -> Fit | Refusal:
    data = found.data
    try:
        return fit(
            found.law,
            data.inputs,
            data.loss,
            weights=data.weights,
            cluster=data.cluster,
            objective=objective,
            delta=delta,
            level=found.level,
            fixed=found.fixed,
            free=[name for name in found.form.fixed if name not in found.fixed],
            tied=found.tied,
            allow_negative=found.signed_floor,
            curve_only=True,
        )
    except Refusal as reason:
        return reason


def _strongest(problem: Problem, phi: Array, at: Points) -> Array:
    """The groups to leave out: all, or those of the largest pull times root leverage."""
    if at.groups <= MOST:
        return np.arange(at.groups)
    columns = np.sqrt(problem.w_n)[:, None] * problem.jacobian(phi)
    leverage_n = np.sum(np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[0] ** 2, axis=1)
    force_n = problem.w_n * np.abs(problem.pull(problem.residuals(phi))) * np.sqrt(leverage_n)
    return np.argsort(-np.bincount(at.group_n, force_n))[:MOST]


def _without(problem: Problem, phi: Array, at: Points, groups: Array) -> tuple[Array, Array]:
    """The optimum without each group, and whether the rest determines it."""
    phi_GF, sound_G = np.tile(phi, (len(groups), 1)), np.zeros(len(groups), dtype=bool)
    for first in range(0, len(groups), BATCH):
        batch = slice(first, first + BATCH)
        w_Gn = np.where(at.group_n == groups[batch, None], 0.0, problem.w_n)
        part = replace(problem, w_n=w_Gn)
        phi_GF[batch] = descend(part, phi_GF[batch], tolerance=1e-9)
        sound_G[batch] = covariance_S(part, phi_GF[batch], 1)[0] <= WORST_CONDITION
    return phi_GF, sound_G


def _inputs(found: Fit, at: Points, row: int) -> str:
    return ", ".join(
        amount(name, value) for name, value in zip(found.form.inputs, at.x_In[:, row], strict=True)
    )
