"""Fit a law to runs, with intervals that hold, or refuse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss.errors import InputError, attempt
from isoloss.laws._bootstrap import with_bootstrap
from isoloss.laws._likelihood import by_likelihood
from isoloss.laws._profile import with_profiles
from isoloss.laws._result import Fit, FitData, Objective
from isoloss.laws._rows import Points, Rows, designs, points_of, rows_of
from isoloss.laws._scaled import check_names, middles, scaled_form
from isoloss.laws._solve import OBJECTIVES, Problem, solve
from isoloss.laws._solved import Solved
from isoloss.laws._support import check_design, check_support, lack_of_fit
from isoloss.laws.forms import Array, Form, registered
from isoloss.stats import check_level

INTERVALS = ("t", "profile", "bootstrap")
FORM_ERROR = 0.05  # below this p of the lack-of-fit test, intervals count designs instead of rows


def check_seed(seed: int) -> int:
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is {seed}", mend="give a whole number, 0 or larger")
    return seed


@dataclass(frozen=True)
class Options:
    """How ``fit`` is asked to fit: see there. ``held`` are the parameters held at plain values."""

    objective: str
    delta: float
    held: Mapping[str, float]
    tied: Sequence[Sequence[str]]
    starts: Sequence[Mapping[str, float]]
    intervals: str
    bootstrap: int
    seed: int

    @property
    def logs(self) -> bool:
        """Whether residuals are of log losses."""
        return self.objective != "squared"

    def check(self) -> None:
        """Raises InputError for what cannot be."""
        if self.objective not in OBJECTIVES or not 1e-9 <= self.delta < np.inf:
            raise InputError(
                f"objective {self.objective!r} with delta {self.delta}",
                mend=f"choose one of {', '.join(OBJECTIVES)}; delta from 1e-9",
            )
        if self.intervals not in INTERVALS:
            raise InputError(
                f"there are no {self.intervals!r} intervals", mend=f"choose one of {', '.join(INTERVALS)}"
            )
        draws = self.bootstrap
        if not isinstance(draws, int) or draws < 0 or 0 < draws < 100:
            raise InputError(f"{draws} resamples give no interval", mend="draw 1,000, or at least 100")
        check_seed(self.seed)


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
    law, level = registered(law), check_level(level)
    form = law.with_signed_floor() if allow_negative else law
    held = {name: value for name, value in form.fixed.items() if name not in free} | dict(fixed or {})
    options = Options(objective, delta, held, tied, starts, intervals, bootstrap, seed)
    options.check()
    if allow_negative and options.logs:
        raise InputError("a negative loss has no logarithm", mend="use the objective squared")
    check_names(law, sorted(free))
    rows = rows_of(law, inputs, loss, weights, cluster, allow_negative)
    solved = _by_designs(form, rows, _solved(form, rows, options, rows.labels), options)
    refusal = attempt(check_support, solved.problem, solved.points.x_In, solved.optimum, solved.df)
    if refusal and not curve_only:
        raise refusal
    solved = replace(solved, unsupported=refusal.what if refusal else "")
    return _with_intervals(solved.fit(level, _data(rows), dict(source or {})), solved, options)


def _solved(form: Form, rows: Rows, options: Options, labels: NDArray[np.str_] | None) -> Solved:
    """The optimum for rows as points. Raises Refusal for a design that is too thin."""
    points = points_of(rows, options.logs, labels)
    problem = scaled_problem(form, points, options.objective, options.delta, options.held, options.tied)
    check_design(problem.model, points.x_In)
    given = np.stack([problem.model.start(start) for start in options.starts]) if options.starts else None
    summed = None
    if options.objective == "huber-likelihood":
        problem, best, likelihood = by_likelihood(problem, given)
        summed = Objective(options.objective, options.delta, likelihood)
    else:
        best = solve(problem, given)
    return Solved(problem, points, best, options.held, options.tied, summed)


def _by_designs(form: Form, rows: Rows, solved: Solved, options: Options) -> Solved:
    """With the noise of seeds; solved again by designs where the law's own error exceeds that noise."""
    if solved.points.dependent:
        return solved
    noise = lack_of_fit(solved.problem, solved.optimum, rows.x_In, rows.y_n, rows.w_n)
    free = len(solved.optimum.phi)
    if noise is None or not noise.p < FORM_ERROR or noise.designs <= free or rows.grouped:
        return replace(solved, seeds=noise)
    # The law's own error is shared by the seeds of a design: the designs are what counts.
    note = (
        f"seeds of one design agree better than the law fits (p = {noise.p:.2g}). Intervals count the "
        f"{noise.designs} designs and hold the law's own error inside the data"
    )
    by_design = _solved(form, rows, options, designs(rows.x_In).astype(str))
    return replace(by_design, seeds=noise, notes=(note,))


def _data(rows: Rows) -> FitData:
    return FitData(
        {name: tuple(column.tolist()) for name, column in rows.inputs.items()},
        tuple(rows.y_n.tolist()),
        tuple(rows.w_n.tolist()),
        None if rows.labels is None else tuple(rows.labels.tolist()),
    )


def _with_intervals(outcome: Fit, solved: Solved, options: Options) -> Fit:
    """Profiles and refits where they are asked for and the fit supports them."""
    if outcome.covariance is None:
        return outcome
    if options.bootstrap or options.intervals == "bootstrap":
        count, use = options.bootstrap or 1000, options.intervals != "profile"
        outcome = with_bootstrap(outcome, solved.problem, solved.points, count, options.seed, use=use)
    if options.intervals == "profile":
        outcome = with_profiles(outcome, solved.problem, solved.points)
    return outcome


def problem_of(fit: Fit) -> tuple[Problem, Points]:
    """The problem and the points behind a fit, from the rows it carries: for profiles and refits.

    Raises InputError for a fit without data, such as a published law.
    """
    if fit.data is None:
        raise InputError(
            "carries no data", where=fit.law, mend="fit the law to a table, or read a fit that was"
        )
    form, data = fit.form, fit.data
    labels = None if data.cluster is None else np.array(data.cluster)
    columns = {name: np.array(data.inputs[name]) for name in form.inputs}
    rows = Rows(columns, np.array(data.loss), np.array(data.weights), labels)
    if not rows.grouped and fit.clusters is not None and fit.clusters < len(rows.y_n):
        labels = designs(rows.x_In).astype(str)
    objective, delta = fit.objective.name, fit.objective.delta
    points = points_of(rows, objective != "squared", labels)
    problem = scaled_problem(form, points, objective, 1e-3 if delta is None else delta, fit.fixed, fit.tied)
    if objective == "huber-likelihood":
        problem, _, _ = by_likelihood(problem, np.array(fit.theta)[problem.model.free][None])
    return problem, points


def scaled_problem(
    law: Form,
    points: Points,
    objective: str,
    delta: float,
    fixed: Mapping[str, float],
    tied: Sequence[Sequence[str]],
) -> Problem:
    """The points in units of their own middle."""
    columns = zip(law.inputs, points.x_In, strict=True)
    ranges = {name: (x[x > 0].min(), x.max()) for name, x in columns if x.max() > 0}
    log_scale_I, log_loss_scale = middles(law, ranges), _log_loss_scale(law, points.y_n)
    with np.errstate(divide="ignore"):
        z_In = np.log(points.x_In) - log_scale_I[:, None]
    scaled = scaled_form(law, np.maximum(z_In, -700.0), log_scale_I, log_loss_scale, fixed, tied)
    return Problem(scaled, points.y_n / np.exp(log_loss_scale), points.w_n, objective, delta)


def _log_loss_scale(law: Form, y_n: Array) -> float:
    """Of the middle of the losses, of the largest where some are negative; 0 for laws in plain units."""
    if law.units is None:
        return 0.0
    if y_n.min() > 0:
        return float(np.log(y_n.min()) + np.log(y_n.max())) / 2
    return float(np.log(np.max(np.abs(y_n)) or 1.0))
