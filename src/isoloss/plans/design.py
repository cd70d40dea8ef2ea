"""Which design points to run next, so that one prediction becomes as sure as the budget allows."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from isoloss import text
from isoloss.distributions import t_quantile
from isoloss.errors import InputError, Refusal
from isoloss.laws import Array, Fit, check_seed
from isoloss.plans.forecast import Forecaster, ForecastPoint, predicted
from isoloss.plans.holdout import flops_6nd
from isoloss.plans.selection import CandidateSet, best_selection, d_gain, random_selections, v_gain
from isoloss.plans.warnings import counted
from isoloss.stats import check_level

REACH = 10**0.5
"""Candidates go this factor beyond the data, and never beyond the target."""

Cost = Callable[[Mapping[str, Array]], ArrayLike | None]

_STEPS = {1: 25, 2: 11, 3: 7}
_RANDOM = 200
_KEPT = 0.98
_ENOUGH = 1.01
_LITTLE = 0.05  # of a half-width


@dataclass(frozen=True)
class DesignPoint:
    """One run to make: ``half_width`` of the target's band is expected once it and those before it are in."""

    inputs: dict[str, float]
    flops: float
    half_width: float


@dataclass(frozen=True)
class Design:
    """The runs to make, largest gain first.

    Half-widths are of the band of the law's mean at ``target``, or of the forecast's interval of a new run
    there, in nats at ``level``: now, expected after these runs, after the D-optimal choice and, on average,
    after random choices of the same budget. Those of a law take it as true: no choice of runs guards against
    a wrong form.
    """

    law: str
    target: dict[str, float]
    loss: float
    level: float
    budget_flops: float
    spent_flops: float
    runs: tuple[DesignPoint, ...]
    half_width_now: float
    half_width_after: float
    half_width_d_optimal: float
    half_width_random: float
    candidates: int
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON."""
        return dataclasses.asdict(self)


def design(
    source: Fit | Forecaster,
    *,
    budget_flops: float,
    target: Mapping[str, float],
    candidates: Mapping[str, ArrayLike] | None = None,
    cost: Cost = flops_6nd,
    at_most: int = 8,
    draws: int = 4000,
    level: float | None = None,
    seed: int = 20260422,
) -> Design:
    """The runs that are expected to narrow the prediction at ``target`` most, within ``budget_flops``.

    V-optimality over draws of the law: with K the covariance over draws of the log losses at the target t and
    at the candidates, and s_c the noise of one run there, buying candidate c leaves

        var(t) - K_tc^2 / (K_cc + s_c^2),

    and K is conditioned on c before the next choice. For a law linear in its parameters that is the
    Sherman-Morrison update of its covariance; draws from several optima bring the spread between them too.
    Of a forecast K is that of its kriged laws and the spread between them, and runs beyond the largest also
    lessen how far outside the target lies.
    The set is grown greedily and improved by exchange. Sources: active design after arXiv 2604.22753; Fedorov
    1972, Theory of Optimal Experiments.

    ``candidates`` maps each input to one value a candidate; by default a log grid over the data and half a
    decade beyond, never beyond the target. ``cost`` counts FLOPs, by default 6 N D with a loop counted at
    each pass.

    Raises InputError for a target, candidates or budget that cannot be used, Refusal if the fit has no
    uncertainty to reduce or the budget buys no candidate.
    """
    by_law = isinstance(source, Fit)
    level = (source.level if by_law else 0.9) if level is None else check_level(level)
    check_seed(seed)
    if not (np.isfinite(budget_flops) and budget_flops > 0) or at_most < 1:
        raise InputError(
            f"budget is {budget_flops} FLOPs for at most {at_most} runs", mend="give positive numbers"
        )
    if by_law:
        loss, now, warnings = _prediction(source, level, target)
        candidate_set, linear, x = candidate_sets(
            source, budget_flops, target, candidates=candidates, cost=cost, draws=draws, seed=seed
        )
        width: _Width = _Band(candidate_set, now, level, source.df)
    else:
        candidate_set, x = _forecast_set(source, budget_flops, target, candidates, cost)
        forecast, linear = source.at(target, level), candidate_set
        loss, warnings = float(forecast.loss[0]), forecast.warnings
        width = _Reach(candidate_set, source.point(target), x, level)
    selection = _enough(width, best_selection(candidate_set, v_gain, budget_flops, at_most))
    d_optimal = _enough(width, best_selection(linear, d_gain, budget_flops, at_most))
    if not by_law:
        grown = _enough(width, _narrowest(width, candidate_set, budget_flops, at_most))
        selection = min(selection, d_optimal, grown, key=width.after)
    rng = np.random.default_rng(seed + 1)
    at_random = random_selections(candidate_set, budget_flops, at_most, _RANDOM, rng)
    runs = tuple(
        DesignPoint(
            inputs={name: float(values[c]) for name, values in x.items()},
            flops=float(candidate_set.cost_C[c]),
            half_width=width.after(selection[: i + 1]),
        )
        for i, c in enumerate(selection)
    )
    if cost is flops_6nd:
        warnings = tuple(counted(source.source, warnings))
    now_width = width.after([])
    if (gain := 1 - runs[-1].half_width / now_width) < _LITTLE:
        warnings = (*warnings, f"these runs narrow the interval by only {text.percent(gain)}")
    return Design(
        law=source.law,
        target={name: float(value) for name, value in target.items()},
        loss=loss,
        level=level,
        budget_flops=float(budget_flops),
        spent_flops=float(sum(run.flops for run in runs)),
        runs=runs,
        half_width_now=now_width,
        half_width_after=runs[-1].half_width,
        half_width_d_optimal=width.after(d_optimal),
        half_width_random=float(np.mean([width.after(drawn) for drawn in at_random])),
        candidates=len(candidate_set.cost_C),
        warnings=warnings,
    )


def _prediction(fit: Fit, level: float, target: Mapping[str, float]) -> tuple[float, float, tuple[str, ...]]:
    """The loss at ``target``, the half-width of its band, and the warnings. Raises Refusal without a band."""
    law, _ = predicted(fit, target, level)
    if law.band is None:
        raise Refusal(
            "the fit supports no interval, so no run is known to narrow it",
            where=fit.law,
            mend="fit the law to runs of your own",
        )
    if not isinstance(law.loss, float):
        raise Refusal("the target is more than one point", where=fit.law, mend="design for one at a time")
    return law.loss, float((law.band[1] - law.band[0]) / 2), law.warnings


class _Width(Protocol):
    def after(self, selection: Sequence[int]) -> float:
        """The half-width at the target once these candidates are in, in nats."""
        ...


@dataclass(frozen=True)
class _Band:
    """The target's band of half-width ``now``: runs shrink its variance and add degrees of freedom."""

    candidates: CandidateSet
    now: float
    level: float
    df: int

    def after(self, selection: Sequence[int]) -> float:
        share_left = self.candidates.share_left(selection)
        t, t_now = t_quantile(self.level, self.df + len(selection)), t_quantile(self.level, self.df)
        return float(self.now * np.sqrt(max(share_left, 0.0)) * t / t_now)


@dataclass(frozen=True)
class _Reach:
    """The interval of a new run at the target: runs shrink its variance, and how far outside them it lies."""

    candidates: CandidateSet
    at: ForecastPoint
    x: Mapping[str, Array]
    level: float

    def after(self, selection: Sequence[int]) -> float:
        more = {name: values[list(selection)] for name, values in self.x.items()}
        return self.at.half_width(self.candidates.share_left(selection), more, self.level)


def _narrowest(width: _Width, candidates: CandidateSet, budget: float, at_most: int) -> list[int]:
    """Grown by the candidate that leaves the narrowest interval, as long as one narrows it."""
    selection: list[int] = []
    left, now = budget, width.after([])
    while len(selection) < at_most and candidates.affordable(left).any():
        widths = {
            int(c): width.after([*selection, int(c)]) for c in np.flatnonzero(candidates.affordable(left))
        }
        best = min(widths, key=lambda c: widths[c])
        if widths[best] >= now:
            break
        selection.append(best)
        left, now = left - float(candidates.cost_C[best]), widths[best]
    return selection


def _enough(width: _Width, selection: Sequence[int]) -> Sequence[int]:
    """The first runs that come within 1 % of the width that all of them leave: the rest are not worth it."""
    aim = _ENOUGH * width.after(selection)
    firsts = (selection[:k] for k in range(1, len(selection)))
    return next((first for first in firsts if width.after(first) <= aim), selection)


def _forecast_set(
    known: Forecaster,
    budget_flops: float,
    target: Mapping[str, float],
    candidates: Mapping[str, ArrayLike] | None,
    cost: Cost,
) -> tuple[CandidateSet, dict[str, Array]]:
    """The candidates in the budget by the kriged laws, and their inputs."""
    known.check_inputs(target)
    x = _candidate_grid(known, target) if candidates is None else _check_candidates(known, candidates)
    x, cost_C = _affordable(known, x, cost, budget_flops)
    cov_TT, noise = known.covariance({name: np.append(values, target[name]) for name, values in x.items()})
    return CandidateSet(cov_TT, np.full(len(cost_C), noise), cost_C), x


def candidate_sets(
    fit: Fit,
    budget_flops: float,
    target: Mapping[str, float],
    *,
    candidates: Mapping[str, ArrayLike] | None,
    cost: Cost,
    draws: int,
    seed: int,
) -> tuple[CandidateSet, CandidateSet, dict[str, Array]]:
    """The candidates in the budget: by draws, by the law made linear in its parameters, and their inputs.

    The second is what D-optimal choice works on: curvature would count there as further parameters.
    """
    x = _candidate_grid(fit, target) if candidates is None else _check_candidates(fit, candidates)
    x, cost_C = _affordable(fit, x, cost, budget_flops)
    both = {name: np.append(values, target[name]) for name, values in x.items()}
    theta_Sp = fit.draws(draws, np.random.default_rng(seed))
    log_ST = np.log(fit.losses(theta_Sp, **both))
    # Draws of a t with few degrees of freedom reach laws that no one believes, and a variance is all tail.
    low, high = np.quantile(log_ST[:, -1], [(1 - _KEPT) / 2, (1 + _KEPT) / 2])
    kept_S = np.isfinite(log_ST).all(axis=1) & (log_ST[:, -1] >= low) & (log_ST[:, -1] <= high)

    theta, step = np.array(fit.theta), 1e-30
    loss_T = fit.losses(theta[None], **both)[0]
    slopes_pT = np.imag(fit.losses(theta + 1j * step * np.eye(len(theta)), **both)) / step / loss_T
    linear_TT = slopes_pT.T @ np.cov(theta_Sp[kept_S], rowvar=False) @ slopes_pT

    noise_C = fit.sigma / loss_T[:-1] if fit.objective.name == "squared" else np.full(len(cost_C), fit.sigma)
    # Resampled residuals are too small by the degrees of freedom that the fit used up.
    wider = 1.0 if fit.bootstrap is None else len(fit.residuals) / fit.df
    by_draws, by_slope = (
        CandidateSet(wider * cov_TT, noise_C**2, cost_C)
        for cov_TT in (np.cov(log_ST[kept_S], rowvar=False), linear_TT)
    )
    return by_draws, by_slope, x


def _affordable(
    fit: Fit | Forecaster,
    x: Mapping[str, Array],
    cost: Cost,
    budget_flops: float,
) -> tuple[dict[str, Array], Array]:
    flops = cost(x)
    if flops is None:
        missing = text.listed([name for name in ("params", "tokens") if name not in x])
        raise InputError(
            f"the FLOPs of a run do not follow from {text.listed(list(x))}",
            where=fit.law,
            mend=f"add runs that differ in {missing} too; in Python cost= can count them",
        )
    cost_C = np.asarray(flops, dtype=np.float64)
    if cost_C.shape != next(iter(x.values())).shape or not np.all(np.isfinite(cost_C) & (cost_C > 0)):
        raise InputError("cost does not give one positive number a candidate", mend="correct it")
    keep_C = cost_C <= budget_flops
    if not keep_C.any():
        raise Refusal(
            f"the budget of {text.power(budget_flops)} FLOPs buys no run: the cheapest costs "
            f"{text.power(cost_C.min())}",
            mend="raise the budget, or give smaller candidates",
        )
    return {name: values[keep_C] for name, values in x.items()}, cost_C[keep_C]


def _candidate_grid(fit: Fit | Forecaster, target: Mapping[str, float]) -> dict[str, Array]:
    axes = []
    for name, (low, high) in fit.ranges.items():
        top = high if target[name] <= high else min(high * REACH, target[name])
        axis = np.geomspace(low, top, _STEPS.get(len(fit.ranges), 4))
        # A loop is run a whole number of times.
        axes.append(np.unique(np.round(axis)) if name == "recurrence" else np.unique(axis))
    grid = np.meshgrid(*axes, indexing="ij")
    x: dict[str, Array] = {name: values.ravel() for name, values in zip(fit.ranges, grid, strict=True)}
    return _like_the_data(fit, target, x)


def _like_the_data(
    fit: Fit | Forecaster, target: Mapping[str, float], x: dict[str, Array]
) -> dict[str, Array]:
    """Candidates whose tokens per parameter somebody has trained, within a factor of ``REACH``.

    The law was never tried on a giant of a few tokens, and the corners of a grid are full of those.
    """
    if fit.data is None or not {"params", "tokens"} <= set(x):
        return x
    ratio_n = np.array(fit.data.inputs["tokens"]) / np.array(fit.data.inputs["params"])
    target_ratio = target["tokens"] / target["params"]
    low, high = min(ratio_n.min(), target_ratio) / REACH, max(ratio_n.max(), target_ratio) * REACH
    ratio = x["tokens"] / x["params"]
    return {name: values[(ratio >= low) & (ratio <= high)] for name, values in x.items()}


def _check_candidates(fit: Fit | Forecaster, candidates: Mapping[str, ArrayLike]) -> dict[str, Array]:
    if set(candidates) != set(fit.ranges):
        raise InputError(
            f"candidates have {', '.join(candidates)}; the law takes {', '.join(fit.ranges)}",
            where=fit.law,
            mend="give one array for each input",
        )
    x: dict[str, Array] = {
        name: np.atleast_1d(np.asarray(candidates[name], dtype=np.float64)) for name in fit.ranges
    }
    if len({values.shape for values in x.values()}) != 1 or next(iter(x.values())).ndim != 1:
        raise InputError("candidates differ in length", mend="give one value of each input a candidate")
    return x
