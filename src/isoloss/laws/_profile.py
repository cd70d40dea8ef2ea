"""Profile likelihood: how much worse the best fit becomes as one parameter is held away from its estimate."""

from dataclasses import dataclass, replace

import numpy as np
import scipy

from isoloss.distributions import t_quantile
from isoloss.errors import InputError
from isoloss.laws._result import Fit, Interval
from isoloss.laws._rows import Points
from isoloss.laws._scaled import ScaledForm, plain_end, plain_values
from isoloss.laws._solve import Problem, descend
from isoloss.laws._spread import FEW, inside_share, normal_huber
from isoloss.laws.forms import Array

_WIDTHS = (0.4, 0.8, 1.2, 1.6, 2.1, 2.8, 4.0, 6.0)
_FARTHER = 4.0  # a second look reaches that much farther where the first does not close
_LOOKS = 3


@dataclass(frozen=True)
class Profile:
    """The profile of one parameter.

    ``values`` in plain units, ascending; ``distance`` the signed root of the rise of the objective, in units
    of the noise: a straight line through 0 if the t interval is right. ``threshold`` is the t quantile that
    it is held against; ``interval`` ends where it crosses, None where it never does.
    """

    parameter: str
    values: tuple[float, ...]
    distance: tuple[float, ...]
    threshold: float
    interval: Interval


def profile(fit: Fit, problem: Problem, parameter: str, *, level: float | None = None) -> Profile:
    """Hold ``parameter`` at values on both sides of its estimate and fit all others again.

    The squared distance is 2 (rise) / noise, the F of one degree of freedom for least squares; for Huber it
    is scaled so that its curvature at the estimate is that of the sandwich covariance. Raises InputError for
    a parameter that is held or has no covariance.
    """
    law, scaled = fit.form, problem.model
    if parameter not in law.parameters or parameter in fit.fixed or fit.covariance is None:
        raise InputError(
            f"{parameter!r} has no profile",
            where=fit.law,
            mend=f"choose a fitted one of {', '.join(law.parameters)}",
        )
    index = law.parameters.index(parameter)
    theta = np.array(fit.theta)
    kappa_p, error_p = scaled.kappa_errors(theta, np.array(fit.covariance))
    kappa, error = float(kappa_p[index]), float(error_p[index])
    scale = _scale(problem, theta[scaled.free], index, fit.df) * error**2
    # How the others move, to first order, per standard error of this one.
    lean_p = np.array(fit.covariance) @ scaled.slopes(theta)[index] / error
    threshold = t_quantile(fit.level if level is None else level, fit.df)
    offsets, distances, widest = [0.0], [0.0], 1.0
    for _ in range(_LOOKS):
        steps = [side * width * widest for side in (-1, 1) for width in _WIDTHS]
        new = [offset for offset in steps if _is_open(offset, offsets, distances, threshold)]
        if not new:
            break
        held = scaled.hold({parameter: kappa + error * np.array(new)})
        distances += _distances(problem, held, theta, np.array(new), lean_p, scale)
        offsets += new
        widest *= _FARTHER
    order = np.argsort(offsets)
    x, y = np.array(offsets)[order], np.array(distances)[order]
    ends = (_crossing(x, y, -threshold), _crossing(x, y, threshold))
    signed = parameter in law.signed
    low, high = (None if end is None else plain_end(kappa + error * end, signed) for end in ends)
    values = plain_values(kappa + error * x, signed)
    return Profile(parameter, tuple(values.tolist()), tuple(y.tolist()), threshold, (low, high))


def _is_open(offset: float, offsets: list[float], distances: list[float], threshold: float) -> bool:
    """Whether it lies beyond all offsets on its side, and that side has not crossed."""
    side = [(abs(o), abs(d)) for o, d in zip(offsets, distances, strict=True) if o * offset >= 0]
    return abs(offset) > max(o for o, _ in side) and max(d for _, d in side) < threshold


def _scale(problem: Problem, phi: Array, index: int, df: int) -> float:
    """Noise-free curvature: 1 / [inverse(H)]_kk of the plain coordinate, with H the smoothed Hessian."""
    scaled = problem.model
    r_n, jacobian = problem.residuals(phi), problem.jacobian(phi)
    share_n = inside_share(problem, r_n)
    if problem.objective == "huber-log" and df < FEW:
        share_n = np.full_like(r_n, normal_huber(problem, r_n, df)[2])
    weight_n = problem.w_n * share_n
    length = np.sqrt((weight_n[:, None] * jacobian**2).sum(axis=0))
    hessian = (jacobian / length).T @ (weight_n[:, None] * jacobian / length)
    inverse = np.linalg.pinv(hessian, hermitian=True) / length[:, None] / length
    theta = scaled.theta(phi)
    slope_F = scaled.slopes(theta)[index] @ scaled.chain(theta)
    return 1.0 / float(slope_F @ inverse @ slope_F)


def _distances(
    problem: Problem, held: ScaledForm, theta: Array, offset_S: Array, lean_p: Array, scale: float
) -> list[float]:
    """Signed roots of the rise with the parameter ``held`` at the offsets; others lean by ``lean_p`` each."""
    part = replace(problem, model=held)
    least = float(problem.total(problem.residuals(theta[problem.model.free])))
    phi_SF = theta[held.free] + offset_S[:, None] * lean_p[held.free]
    if phi_SF.shape[1]:
        phi_SF = descend(part, phi_SF, tolerance=1e-10)
        # A neighbour's solution may lead to a better optimum than the estimate's.
        order = np.argsort(offset_S)
        for shift in (1, -1):
            neighbour_SF = np.empty_like(phi_SF)
            neighbour_SF[order] = phi_SF[np.roll(order, shift)]
            neighbour_SF = descend(part, neighbour_SF, tolerance=1e-10)
            better = part.total(part.residuals(neighbour_SF)) < part.total(part.residuals(phi_SF))
            phi_SF = np.where(better[:, None], neighbour_SF, phi_SF)
    rise_S = np.maximum(part.total(part.residuals(phi_SF)) - least, 0.0)
    return (np.sign(offset_S) * np.sqrt(2 * rise_S / scale)).tolist()


def _crossing(x: Array, y: Array, threshold: float) -> float | None:
    """Where y first crosses the threshold, going outwards from 0."""
    side = np.sign(threshold)
    keep = x * side >= 0
    away, rise = np.abs(x[keep]), np.maximum.accumulate(np.abs(y[keep])[np.argsort(np.abs(x[keep]))])
    away = np.sort(away)
    if rise[-1] < abs(threshold):
        return None
    last = int(np.argmax(rise >= abs(threshold)))
    keep = np.concatenate([[True], np.diff(rise[: last + 1]) > 0])
    curve = scipy.interpolate.PchipInterpolator(rise[: last + 1][keep], away[: last + 1][keep])
    return float(side * curve(abs(threshold)))


def with_profiles(fit: Fit, problem: Problem, points: Points) -> Fit:
    """The fit with profile intervals. Raises InputError where rows are checkpoints of runs."""
    if points.dependent:
        raise InputError(
            "checkpoints of one run have no likelihood of their own",
            where="cluster",
            mend="use intervals='bootstrap', or keep one row a run",
        )
    intervals = dict(fit.intervals)
    for name in fit.form.parameters:
        if name not in fit.fixed:
            intervals[name] = profile(fit, problem, name).interval
    return replace(fit, intervals=intervals, intervals_by="profile")
