"""Fit a law to runs, with intervals that hold, or refuse."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError, Refusal
from isoloss.laws._bootstrap import with_bootstrap
from isoloss.laws._intervals import check_level, check_seed, t_intervals
from isoloss.laws._likelihood import by_likelihood
from isoloss.laws._profile import with_profiles
from isoloss.laws._result import Fit, FitData, FitStatus, Objective, Starts, Units
from isoloss.laws._rows import Points, checked, designs, points
from isoloss.laws._scaled import scaled_form
from isoloss.laws._solve import OBJECTIVES, Optimum, Problem, solve
from isoloss.laws._spread import FEW, covariance, jackknife, sigma
from isoloss.laws._support import check_design, check_support
from isoloss.laws.forms import Array, Form, registered
from isoloss.laws.seeds import Seeds, seed_noise

STEEP = 1.0  # arXiv 2604.12946 prints 0.78, the largest of sources/published
INTERVALS = ("t", "profile", "bootstrap")
FORM_ERROR = 0.05  # below this p of the lack-of-fit test, intervals count designs instead of rows


def fit(
    law: str | Form,
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    objective: str = "squared",
    delta: float = 1e-3,
    level: float = 0.9,
    fixed: Mapping[str, float] | None = None,
    free: Sequence[str] = (),
    tied: Sequence[Sequence[str]] = (),
    starts: Sequence[Mapping[str, float]] = (),
    intervals: str = "t",
    bootstrap: int = 0,
    seed: int = 0,
    allow_negative: bool = False,
    curve_only: bool = False,
    source: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit ``law`` to losses in nats per token, one row a run.

    ``weights`` are relative precisions; rows of weight 0 are left out, rows repeated exactly count once.
    ``cluster`` names rows that hang together. Where they share their inputs (the seeds of one size) their
    mean is one point; where not (the checkpoints of one run) the rows stay and the covariance comes from
    leaving out one cluster at a time. Either way intervals count clusters.

    ``objective`` is summed: "squared" residuals, "squared-log", or "huber-log" with ``delta``; or it is the
    "huber-likelihood", whose scale is fitted too. ``fixed`` holds parameters at plain values, ``free`` frees
    those that a law holds by default, ``tied`` groups exponents that share one value. ``starts`` are plain
    parameters to start from in place of the law's own grid.

    ``intervals``: "t" with (points - free parameters) degrees of freedom on the log scale, "profile"
    likelihood, or "bootstrap" over points or clusters with ``bootstrap`` resamples (1,000 unless given) drawn
    from ``seed``. Losses at or below 0 need ``allow_negative`` and "squared".

    When runs of equal inputs show that the law misses by more than their noise, the intervals count designs
    and hold that error too. With ``curve_only`` a law whose parameters the data leave open is kept for the
    curve that it draws, with status CURVE_ONLY, the reason, and no interval.

    Raises InputError, naming the row, for values that are not positive and finite, and Refusal when the data
    do not determine the law: too few points, too little range, a floor or a slope lost in the noise.
    """
    law = registered(law)
    level = check_level(level)
    _check_options(law, objective, delta, intervals, bootstrap, seed, allow_negative, free)
    x, y_n, w_n, labels = checked(law, inputs, loss, weights, cluster, allow_negative)
    shape = law.with_signed_floor() if allow_negative else law
    data = FitData(
        {name: tuple(column.tolist()) for name, column in x.items()},
        tuple(y_n.tolist()),
        tuple(w_n.tolist()),
        None if labels is None else tuple(labels.tolist()),
    )
    held = {name: value for name, value in shape.fixed.items() if name not in free} | dict(fixed or {})
    logs = objective != "squared"
    at = points(shape, x, y_n, w_n, labels, logs)
    problem = scaled_problem(shape, at, objective, delta, held, tied)
    check_design(problem.model, at.x_In)
    problem, best, likelihood = optimum(problem, starts)
    x_In, notes = np.stack([x[name] for name in law.inputs]), []
    noise = None if at.dependent else seed_noise(problem, best, x_In, y_n, w_n)
    if noise is not None and noise.p < FORM_ERROR and labels is None and noise.designs > len(best.phi):
        # The law's own error is shared by the seeds of a design: the designs are what counts.
        at = points(shape, x, y_n, w_n, designs(x_In).astype(str), logs)
        problem = scaled_problem(shape, at, objective, delta, held, tied)
        problem, best, likelihood = optimum(problem, starts)
        notes.append(
            f"seeds of one design agree better than the law fits (p = {noise.p:.2g}): intervals count the "
            f"{noise.designs} designs and hold the law's own error inside the data"
        )
    df = len(at.y_n) - len(best.phi)
    unsupported = ""
    try:
        check_support(problem, best, df)
    except Refusal as refusal:
        if not curve_only:
            raise
        unsupported = refusal.what
    found = _result(
        shape, problem, best, at, df, level, data, noise, unsupported, notes, held, tied, dict(source or {})
    )
    if likelihood is not None:
        found = replace(found, objective=Objective(objective, delta, likelihood))
    if found.covariance is None or (intervals == "t" and not bootstrap):
        return found
    if bootstrap or intervals == "bootstrap":
        found = with_bootstrap(
            found, problem, at, count=bootstrap or 1000, seed=seed, use=intervals != "profile"
        )
    return with_profiles(found, problem, at) if intervals == "profile" else found


def problem_of(found: Fit) -> tuple[Problem, Points]:
    """The problem and the points behind a fit, from the rows it carries: for profiles and refits.

    Raises InputError for a fit without data, such as a published law.
    """
    if found.data is None:
        raise InputError(
            "carries no data", where=found.law, mend="fit the law to a table, or read a fit that was"
        )
    law, data = found.form, found.data
    x = {name: np.array(column) for name, column in data.inputs.items()}
    labels = None if data.cluster is None else np.array(data.cluster)
    if labels is None and found.clusters is not None:
        labels = designs(np.stack([x[name] for name in law.inputs])).astype(str)
    logs = found.objective.name != "squared"
    at = points(law, x, np.array(data.loss), np.array(data.weights), labels, logs)
    objective, delta = found.objective.name, found.objective.delta
    problem = scaled_problem(law, at, objective, 1e-3 if delta is None else delta, found.fixed, found.tied)
    if objective == "huber-likelihood":
        problem, _, _ = by_likelihood(problem, np.array(found.theta)[problem.model.free][None])
    return problem, at


def _check_options(
    law: Form,
    objective: str,
    delta: float,
    intervals: str,
    bootstrap: int,
    seed: int,
    allow_negative: bool,
    free: Sequence[str],
) -> None:
    if objective not in OBJECTIVES or not 1e-9 <= delta < np.inf:
        raise InputError(
            f"objective {objective!r} with delta {delta}",
            mend=f"choose one of {', '.join(OBJECTIVES)}; delta from 1e-9",
        )
    if intervals not in INTERVALS:
        raise InputError(
            f"there are no {intervals!r} intervals", mend=f"choose one of {', '.join(INTERVALS)}"
        )
    if not isinstance(bootstrap, int) or bootstrap < 0 or 0 < bootstrap < 100:
        raise InputError(f"{bootstrap} resamples give no interval", mend="draw 1,000, or at least 100")
    check_seed(seed)
    if allow_negative and objective != "squared":
        raise InputError("a negative loss has no logarithm", mend="use the objective squared")
    if unknown := set(free) - set(law.parameters):
        raise InputError(
            f"there is no parameter {min(unknown)!r}",
            where=law.name,
            mend=f"it has {', '.join(law.parameters)}",
        )


def optimum(problem: Problem, starts: Sequence[Mapping[str, float]]) -> tuple[Problem, Optimum, float | None]:
    """The problem as solved, its optimum, and the negative log likelihood where that was the objective."""
    given = np.stack([problem.model.start(start) for start in starts]) if starts else None
    if problem.objective == "huber-likelihood":
        return by_likelihood(problem, given)
    return problem, solve(problem, given), None


def scaled_problem(
    law: Form,
    at: Points,
    objective: str,
    delta: float,
    fixed: Mapping[str, float],
    tied: Sequence[Sequence[str]],
) -> Problem:
    """The points in units of their own middle."""
    log_scale_I, log_loss_scale = scales(law, at)
    with np.errstate(divide="ignore"):
        z_In = np.log(at.x_In) - log_scale_I[:, None]
    shape = scaled_form(law, np.maximum(z_In, -700.0), log_scale_I, log_loss_scale, fixed, tied)
    return Problem(shape, at.y_n / np.exp(log_loss_scale), at.w_n, objective, delta)


def scales(law: Form, at: Points) -> tuple[Array, float]:
    """Logs of the middle of each unit's inputs and of the losses; 0 for laws written in plain units."""
    if law.units is None:
        return np.zeros(len(law.inputs)), 0.0
    out = np.zeros(len(law.inputs))
    for i, unit in enumerate(law.units):
        if unit == "1":
            continue
        values = np.concatenate([x[x > 0] for x, of in zip(at.x_In, law.units, strict=True) if of == unit])
        out[i] = (np.log(values.min()) + np.log(values.max())) / 2 if len(values) else 0.0
    if at.y_n.min() > 0:
        return out, float(np.log(at.y_n.min()) + np.log(at.y_n.max())) / 2
    return out, float(np.log(np.max(np.abs(at.y_n)) or 1.0))


def _result(
    law: Form,
    problem: Problem,
    best: Optimum,
    at: Points,
    df: int,
    level: float,
    data: FitData,
    noise: Seeds | None,
    unsupported: str,
    notes: list[str],
    held: Mapping[str, float],
    tied: Sequence[Sequence[str]],
    source: dict[str, Any],
) -> Fit:
    shape, objective = problem.model, problem.objective
    theta = shape.theta(best.phi)
    kappa = shape.unscale(theta)
    most_p = np.where([name in law.signed for name in law.parameters], np.inf, 700.0)
    # A curve may do without a term: its coefficient is then 0.
    possible_p = np.where(kappa < 0, bool(unsupported) | (kappa > -most_p), kappa < most_p)
    possible_p[shape.held_K] = True
    if not possible_p.all():
        name = law.parameters[int(np.argmin(possible_p))]
        raise Refusal(
            unsupported or f"{name} exceeds the range of floats",
            mend="give inputs in larger units, such as millions",
        )
    params = law.plain(kappa) | {name: float(value) for name, value in held.items()}
    status = FitStatus.CURVE_ONLY if unsupported else _status(best)
    warnings = [*notes, *_doubts(law, objective, df, at), *_steep(law, params, held)]
    r_n = problem.residuals(best.phi)
    condition, spread_FF = covariance(problem, best.phi, df)
    if at.dependent:
        df = max(at.groups - len(best.phi), 0)
        spread_FF = jackknife(problem, best.phi, at.group_n) if df >= 1 else None
        if spread_FF is None:
            warnings.append(f"{at.groups} runs carry {len(best.phi)} free parameters: no interval")
    if status is not FitStatus.CONVERGED or (law.correlated and not at.clustered):
        spread_FF = None
    full = None
    if spread_FF is not None:
        chain = shape.chain(theta) if shape.constrained else np.eye(len(theta))
        full = chain @ spread_FF @ chain.T
    errors, ranges = t_intervals(shape, theta, full, max(df, 1), level)
    unit = float(np.exp(shape.log_loss_scale)) if objective == "squared" else 1.0
    one_run = unit * sigma(problem, r_n, len(at.y_n) - len(best.phi))
    if noise is not None and at.clustered | bool(notes):
        one_run = float(np.hypot(noise.sd, noise.form_sd))
    return Fit(
        law=law.name,
        status=status,
        reason=unsupported or status.value,
        params=params,
        standard_errors=errors,
        intervals=ranges,
        level=level,
        intervals_by="t",
        objective=Objective(
            objective,
            problem.delta if objective == "huber-log" else None,
            best.total if objective == "huber-log" else 2 * best.total * unit**2,
        ),
        fixed={law.parameters[place]: params[law.parameters[place]] for place in shape.held_K},
        tied=tuple(tuple(group) for group in tied),
        n=at.rows,
        clusters=at.groups if at.clustered or notes else None,
        df=df,
        starts=Starts(best.tried, best.agreeing),
        gradient=best.gradient,
        condition=min(condition, 1e300),
        warnings=tuple(warnings),
        residuals=tuple((-unit * r_n).tolist()),
        sigma=one_run,
        seeds=noise,
        theta=tuple(theta.tolist()),
        covariance=None if full is None else tuple(tuple(row) for row in full.tolist()),
        units=Units(
            dict(zip(law.inputs, np.exp(shape.log_scale_I).tolist(), strict=True)),
            float(np.exp(shape.log_loss_scale)),
        ),
        ranges={name: (float(x.min()), float(x.max())) for name, x in zip(law.inputs, at.x_In, strict=True)},
        signed_floor=law.signed != registered(law.name).signed,
        bootstrap=None,
        data=data,
        source=source,
    )


def _status(best: Optimum) -> FitStatus:
    if not best.stationary:
        return FitStatus.GRADIENT_REMAINS
    return FitStatus.CONVERGED if best.agreeing >= 2 else FitStatus.STARTS_DISAGREE


def _steep(law: Form, params: Mapping[str, float], held: Mapping[str, float]) -> list[str]:
    """Exponents of N and D that no published law has: a sign of too little range, however sure they look."""
    return [
        f"{name} is {params[name]:.3g}: published exponents of N and D lie below {STEEP:g}, and a free fit "
        "runs off to larger ones where the runs do not determine it"
        for of in ("params", "tokens")
        for name in law.spans.get(of, ())
        if name not in held and name in law.limits and params[name] > STEEP
    ]


def _doubts(law: Form, objective: str, df: int, at: Points) -> list[str]:
    doubts = []
    if df < 3:
        doubts.append(f"only {df} degree(s) of freedom: intervals are wide and rest on normal noise")
    if objective in ("huber-log", "huber-likelihood") and df < FEW:
        doubts.append(
            f"with {df} degrees of freedom Huber's intervals rest on normal noise; squared-log's are narrower"
        )
    if law.correlated and not at.clustered:
        doubts.append(
            f"rows along {law.correlated} of one run share their noise: intervals need several seeds, named "
            "by cluster"
        )
    return doubts
