"""Refits of resampled runs: thousands at once, each checked against a cold start on a sample."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isoloss.errors import Refusal
from isoloss.laws._result import Bootstrap, Fit, Interval
from isoloss.laws._rows import Points
from isoloss.laws._scaled import ScaledForm, plain_end, plain_values
from isoloss.laws._solve import Problem, candidates, descend
from isoloss.laws._spread import covariance_S
from isoloss.laws.forms import Array
from isoloss.stats import few_draws

BATCH = 100
FEWEST = 10
CHECKED = 12
COLD = 6
_SAME = 1e-5  # of the objective


def resample(
    problem: Problem, points: Points, phi: Array, count: int, seed: int
) -> tuple[Array, Array, tuple[int, int]]:
    """``count`` refits: coordinates phi_SF, the weights w_Sn that gave them, and the cold-start check.

    Whole groups are drawn with replacement (a run with its checkpoints, or a point). Refits start from the
    optimum of all data; if a sample solved from cold starts finds better optima, all of them start again from
    several points and the sample is taken anew.
    """
    rng = np.random.default_rng(seed)
    w_Sn = rng.multinomial(points.groups, np.full(points.groups, 1 / points.groups), size=count)
    w_Sn = w_Sn[:, points.group_n] * problem.w_n
    phi_SF = _refits(problem, w_Sn, [phi])
    check = cold_check(problem, phi_SF, w_Sn, seed + 1)
    if check[1] < check[0]:
        cold_GF = candidates(problem)
        starts = cold_GF[np.unique(np.linspace(0, len(cold_GF) - 1, 4).astype(int))]
        phi_SF = _refits(problem, w_Sn, [phi, *starts])
        check = cold_check(problem, phi_SF, w_Sn, seed + 2)
    return phi_SF, w_Sn, check


def _refits(problem: Problem, w_Sn: Array, starts: list[Array]) -> Array:
    """The best optimum of each resample over the starts."""
    out = np.empty((len(w_Sn), len(starts[0])))
    for first in range(0, len(w_Sn), BATCH):
        batch = slice(first, first + BATCH)
        part = replace(problem, w_n=w_Sn[batch])
        ends = [descend(part, np.tile(start, (len(part.w_n), 1)), tolerance=1e-9) for start in starts]
        totals = np.stack([part.total(part.residuals(phi_SF)) for phi_SF in ends])
        out[batch] = np.stack(ends)[np.argmin(totals, axis=0), np.arange(len(part.w_n))]
    return out


def cold_check(problem: Problem, phi_SF: Array, w_Sn: Array, seed: int) -> tuple[int, int]:
    """How many of a sample were solved again from cold starts, and in how many that found nothing better."""
    chosen = np.random.default_rng(seed).permutation(len(phi_SF))[:CHECKED]
    starts: list[Array] = []
    rows: list[int] = []
    for s in chosen:
        cold_GF = candidates(replace(problem, w_n=w_Sn[s]))
        ranks = np.unique(np.linspace(0, len(cold_GF) - 1, COLD).astype(int))
        starts.append(cold_GF[ranks])
        rows += [s] * len(ranks)
    part = replace(problem, w_n=w_Sn[rows])
    cold_total = part.total(part.residuals(descend(part, np.concatenate(starts))))
    firsts = np.cumsum([0, *(len(phi) for phi in starts[:-1])])
    part = replace(problem, w_n=w_Sn[chosen])
    warm_total = part.total(part.residuals(phi_SF[chosen]))
    agreeing = warm_total <= np.minimum.reduceat(cold_total, firsts) * (1 + _SAME) + 1e-24
    return len(chosen), int(agreeing.sum())


def with_bootstrap(fit: Fit, problem: Problem, points: Points, count: int, seed: int, *, use: bool) -> Fit:
    """The fit with ``count`` refits, and, with ``use``, intervals from them.

    Least squares: studentised, by the quantiles of (refit - estimate) / its own standard error, times the
    standard error of the estimate. Otherwise percentiles of (refit - estimate), widened by the degrees of
    freedom that the fit used up: standard errors from leaving out runs are too dear to repeat, and that of a
    Huber refit rests on how many residuals lie near 0, which rows drawn twice distort. Raises Refusal below
    ten points or clusters, and if more than a tenth of the refits fail.
    """
    if points.groups < FEWEST:
        raise Refusal(
            f"{points.groups} runs are too few to resample",
            mend=f"use t or profile intervals, or train at least {FEWEST} runs",
        )
    scaled = problem.model
    theta = np.array(fit.theta)
    phi = theta[scaled.free]
    phi_SF, w_Sn, (checked, agreeing) = resample(problem, points, phi, count, seed)
    df = len(points.y_n) - len(phi)
    _, spread_SFF = covariance_S(replace(problem, w_n=w_Sn), phi_SF, df)
    sound_S = np.isfinite(spread_SFF).all(axis=(1, 2)) & _within_limits(scaled, phi_SF)
    if sound_S.sum() < 0.9 * count:
        raise Refusal(
            f"{count - int(sound_S.sum())} of {count} resamples do not determine the law",
            mend="use t or profile intervals, or add runs",
        )
    phi_SF, w_Sn, spread_SFF = phi_SF[sound_S], w_Sn[sound_S], spread_SFF[sound_S]
    theta_Sp = scaled.theta(phi_SF)
    unit = "clusters" if points.clustered or fit.clusters else "rows"
    refits = Bootstrap(
        count, unit, seed, count - len(phi_SF), checked, agreeing, tuple(map(tuple, theta_Sp.tolist()))
    )
    warnings = list(fit.warnings)
    if agreeing < checked:
        warnings.append(f"{checked - agreeing} of {checked} refits have a better optimum from a cold start")
    if use and (few := few_draws(len(phi_SF), fit.level)):
        warnings.append(few)
    fit = replace(fit, bootstrap=refits, warnings=tuple(warnings))
    if not use:
        return fit
    chain = scaled.chain(theta_Sp)
    full_Spp = chain @ spread_SFF @ np.swapaxes(chain, -1, -2)
    kappa_Sp, error_Sp = scaled.kappa_errors(theta_Sp, full_Spp)
    studentised = not points.dependent and problem.objective != "huber-log"
    intervals = _intervals(fit, problem, kappa_Sp, error_Sp if studentised else None)
    spread = {
        name: float(np.std(plain_values(kappa_S, name in fit.form.signed)))
        for name, kappa_S in zip(fit.form.parameters, kappa_Sp.T, strict=True)
    }
    errors = {name: None if intervals[name] is None else spread[name] for name in intervals}
    return replace(fit, intervals=intervals, standard_errors=errors, intervals_by="bootstrap")


def _within_limits(scaled: ScaledForm, phi_SF: Array) -> NDArray[np.bool_]:
    """A resample whose exponent runs to its limit determines no law."""
    sound_S = np.ones(len(phi_SF), dtype=bool)
    for column, name in zip(phi_SF.T, scaled.free_names, strict=True):
        if name in scaled.form.limits:
            low, high = scaled.form.limits[name]
            values = plain_values(column, name in scaled.form.signed)
            sound_S &= (values > low) & (values < high)
    return sound_S


def _intervals(
    fit: Fit, problem: Problem, kappa_Sp: Array, error_Sp: Array | None
) -> dict[str, Interval | None]:
    scaled, ends = problem.model, (0.5 + fit.level / 2, 0.5 - fit.level / 2)
    kappa, errors = scaled.kappa_errors(np.array(fit.theta), np.array(fit.covariance))
    out: dict[str, Interval | None] = dict.fromkeys(fit.form.parameters)
    for i, name in enumerate(fit.form.parameters):
        if name in fit.fixed or errors[i] <= 0:
            continue
        signed, away_S = name in fit.form.signed, kappa_Sp[:, i] - kappa[i]
        if error_Sp is None:
            low, high = fit.widening * np.quantile(away_S, ends[::-1])
        else:
            low, high = -errors[i] * np.quantile(away_S / error_Sp[:, i], ends)
        out[name] = (plain_end(kappa[i] + low, signed), plain_end(kappa[i] + high, signed))
    return out
