"""Find the optimum of a form on scaled data, from several starts, and say how sure that is."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import leastsq
from scipy.special import ndtr

from isoloss.laws.forms import Array, Form

OBJECTIVES = ("squared", "squared-log", "huber-log")
_STARTS = 4
_MOST_STEPS = 60


@dataclass(frozen=True)
class Problem:
    """Scaled data: inputs z_In, losses y_n, weights w_n of mean 1, and what is summed."""

    z_In: Array
    y_n: Array
    w_n: Array
    objective: str
    delta: float

    def residuals(self, form: Form, theta: Array) -> Array:
        """Fitted minus observed, shape (..., n)."""
        fitted = form.value(theta, self.z_In)
        if self.objective == "squared":
            return fitted - self.y_n
        return np.log(np.maximum(fitted, 1e-300)) - np.log(self.y_n)

    def jacobian(self, form: Form, theta: Array) -> Array:
        """Derivative of the residuals, shape (..., n, p)."""
        gradient = form.gradient(theta, self.z_In)
        if self.objective == "squared":
            return gradient
        return gradient / np.maximum(form.value(theta, self.z_In), 1e-300)[..., None]

    def pull(self, r_n: Array) -> Array:
        """psi, the derivative of the summed function of a residual."""
        return np.clip(r_n, -self.delta, self.delta) if self.objective == "huber-log" else r_n

    def total(self, r_n: Array) -> Array:
        """Half the sum of squares, or the sum of Huber's function, over the last axis; weights are inside."""
        if self.objective != "huber-log":
            return 0.5 * (r_n * r_n) @ self.w_n
        size = np.abs(r_n)
        return np.where(size <= self.delta, 0.5 * r_n**2, self.delta * (size - 0.5 * self.delta)) @ self.w_n


@dataclass(frozen=True)
class Optimum:
    theta: Array
    total: float
    gradient: float
    tried: int
    agreeing: int


def descend(form: Form, problem: Problem, theta_Sp: Array) -> Array:
    """Levenberg-Marquardt from S starts at once.

    Huber's delta narrows from the largest residual down: near the end its function is almost an absolute
    value, where a cold start crawls.
    """
    if problem.objective == "huber-log":
        widest = float(np.max(np.abs(problem.residuals(form, theta_Sp))))
        delta = problem.delta * 10.0 ** np.ceil(np.log10(max(widest / problem.delta, 1.0)))
        while delta > problem.delta:
            theta_Sp = _descend(form, replace(problem, delta=delta), theta_Sp)
            delta = max(delta / 10.0, problem.delta)
    return _descend(form, problem, theta_Sp)


def _descend(form: Form, problem: Problem, theta_Sp: Array) -> Array:
    r_Sn = problem.residuals(form, theta_Sp)
    total_S = problem.total(r_Sn)
    damping_S = np.full(len(theta_Sp), 1e-3)
    diagonal = np.arange(theta_Sp.shape[1])
    for _ in range(_MOST_STEPS):
        jacobian_Snp = problem.jacobian(form, theta_Sp)
        weighted_Snp = jacobian_Snp * problem.w_n[:, None]
        pull_Sn = problem.pull(r_Sn)
        gradient_Sp = (pull_Sn[:, None, :] @ weighted_Snp)[:, 0]
        length_Sp = np.maximum((jacobian_Snp * weighted_Snp).sum(axis=1), 1e-30)
        if problem.objective == "huber-log":
            weighted_Snp = weighted_Snp * (np.abs(r_Sn) <= problem.delta)[..., None]
        hessian_Spp = weighted_Snp.transpose(0, 2, 1) @ jacobian_Snp
        hessian_Spp[:, diagonal, diagonal] += damping_S[:, None] * length_Sp + 1e-30
        step_Sp = np.clip(np.linalg.solve(hessian_Spp, -gradient_Sp[..., None])[..., 0], -2.0, 2.0)
        # Done: the step promises less than the rounding of the objective, or no step helps any more.
        promise_S = np.abs((gradient_Sp * step_Sp).sum(axis=1))
        if np.all((promise_S <= 1e-14 * total_S + 1e-30) | (damping_S > 1e10)):
            break
        trial_Sp = theta_Sp + step_Sp
        trial_r_Sn = problem.residuals(form, trial_Sp)
        trial_total_S = problem.total(trial_r_Sn)
        better_S = trial_total_S <= total_S
        theta_Sp = np.where(better_S[:, None], trial_Sp, theta_Sp)
        r_Sn = np.where(better_S[:, None], trial_r_Sn, r_Sn)
        total_S = np.where(better_S, trial_total_S, total_S)
        damping_S = np.where(better_S, np.maximum(damping_S / 5, 1e-12), damping_S * 4)
    return theta_Sp


def sharpen(form: Form, problem: Problem, theta: Array) -> Array:
    """The last digits of a least-squares optimum: MINPACK's QR steps do not square the condition number."""
    if problem.objective == "huber-log":
        return theta
    root_n = np.sqrt(problem.w_n)
    return leastsq(
        lambda t: root_n * problem.residuals(form, t),
        theta,
        Dfun=lambda t: root_n[:, None] * problem.jacobian(form, t),
        full_output=True,  # else it warns; what it calls success is judged by the gradient instead
        xtol=1e-15,
        ftol=1e-15,
        gtol=0.0,
        maxfev=400,
    )[0]


def scaled_gradient(form: Form, problem: Problem, theta: Array) -> float:
    """Largest cosine between a column of the Jacobian and the pull of the residuals: 0 at an optimum."""
    root_n = np.sqrt(problem.w_n)
    r_n = problem.residuals(form, theta)
    pull = root_n * problem.pull(r_n)
    columns = root_n[:, None] * problem.jacobian(form, theta)
    # Below residuals of 1e-8 of the loss, what is left of the gradient is the rounding of the data.
    length = np.linalg.norm(columns, axis=0) * max(np.linalg.norm(pull), 1e-8 * np.sqrt(len(r_n)))
    return float(np.max(np.abs(columns.T @ pull) / np.maximum(length, 1e-30)))


def solve(form: Form, problem: Problem) -> Optimum:
    """Best optimum over starts spread from the best to the worst point of the start grid."""
    candidates_Gp = _candidates(form, problem)
    ranks = np.unique(np.linspace(0, len(candidates_Gp) - 1, _STARTS).astype(int))
    theta_Sp = descend(form, problem, candidates_Gp[ranks])
    total_S = problem.total(problem.residuals(form, theta_Sp))
    best = int(np.argmin(total_S))
    theta = sharpen(form, problem, theta_Sp[best])
    total = float(problem.total(problem.residuals(form, theta)))
    if total > total_S[best]:
        theta, total = theta_Sp[best], float(total_S[best])
    slack = 1e-6 * total + 1e-24 * len(problem.y_n)
    return Optimum(
        theta, total, scaled_gradient(form, problem, theta), len(ranks), int(np.sum(total_S <= total + slack))
    )


def least_total(form: Form, problem: Problem) -> float:
    """The objective of a simpler law, from the best point of its start grid alone."""
    theta_1p = descend(form, problem, _candidates(form, problem)[:1])
    return float(problem.total(problem.residuals(form, theta_1p))[0])


def _candidates(form: Form, problem: Problem) -> Array:
    # A weight of 1 / y^2 makes the squares of the start grid behave like squares of logarithms.
    weights = problem.w_n if problem.objective == "squared" else problem.w_n / problem.y_n**2
    return form.start(problem.z_In, problem.y_n, weights)


def dispersion(problem: Problem, r_n: Array, df: int) -> float:
    """The factor kappa in covariance = kappa * inverse(J' W J).

    Least squares: the residual variance. Huber: mean(psi^2) / mean(psi')^2, with mean(psi') smoothed by a
    normal kernel, since delta is often far below the noise and then hardly a residual lies inside it.
    Source: Huber and Ronchetti, Robust Statistics, section 7.6.
    """
    if problem.objective != "huber-log":
        return float(problem.w_n @ r_n**2) / df
    return float(problem.w_n @ problem.pull(r_n) ** 2) / df / _inside(problem, r_n) ** 2


def _inside(problem: Problem, r_n: Array) -> float:
    """Smoothed share of residuals within delta; 1 for least squares."""
    if problem.objective != "huber-log":
        return 1.0
    bandwidth = 1.06 * max(spread(r_n), 1e-300) * len(r_n) ** -0.2
    share_n = ndtr((problem.delta - r_n) / bandwidth) - ndtr((-problem.delta - r_n) / bandwidth)
    return max(float(np.average(share_n, weights=problem.w_n)), 1e-12)


def spread(r_n: Array) -> float:
    """Normal-consistent median absolute residual."""
    return float(1.4826 * np.median(np.abs(r_n)))


def gain_statistic(problem: Problem, r_n: Array, total_nested: float, df: int) -> float:
    """How much worse a nested law fits, in units of the noise: an F, or drop in dispersion for Huber."""
    gain = 2 * (total_nested - float(problem.total(r_n)))
    noise = float(problem.w_n @ problem.pull(r_n) ** 2) / df / _inside(problem, r_n)
    return gain / max(noise, 1e-26)
