"""Huber's function as a density whose scale is fitted too: the objective of Besiroglu et al. 2024."""

from dataclasses import replace
from math import erf

import numpy as np
import scipy

from isoloss.laws._solve import SMALL_GRADIENT, Optimum, Problem, solve
from isoloss.laws.forms import Array
from isoloss.stats import robust_sd

_ROUNDS = 60
_NEARLY_ABSOLUTE = 1e-3  # a threshold below this share of the residuals is no threshold


def by_likelihood(problem: Problem, starts_SF: Array | None) -> tuple[Problem, Optimum, float]:
    """The maximum of the likelihood over parameters and scale s, and the negative log likelihood there.

    It minimises sum_i w_i [rho_delta(r_i / s) + log s + log Z(delta)], with rho_delta Huber's function and
    Z its normalising factor. At a given s that is Huber's sum with threshold delta s, which is the problem
    given back; a threshold far below the residuals makes it least absolute values, solved as such.
    Source: arXiv 2404.10102 and its code.
    """
    delta = problem.delta
    part = replace(problem, objective="huber-log")
    best = solve(part, starts_SF)
    s = _scale(part.residuals(best.phi), part.w_n, delta)
    for _ in range(_ROUNDS):
        width = float(robust_sd(part.residuals(best.phi)))
        part = replace(part, delta=max(delta * s, _NEARLY_ABSOLUTE * width, 1e-12))
        best = replace(solve(part, best.phi[None]), tried=best.tried, agreeing=best.agreeing)
        if part.delta > delta * s:
            best = least_absolute(part, best)
        before, s = s, _scale(part.residuals(best.phi), part.w_n, delta)
        if abs(s / before - 1) < 1e-9:
            break
    r_n = part.residuals(best.phi)
    norm = np.sqrt(2 * np.pi) * erf(delta / np.sqrt(2)) + 2 * np.exp(-(delta**2) / 2) / delta
    z_n = np.abs(r_n) / s
    rho_n = np.where(z_n <= delta, z_n**2 / 2, delta * (z_n - delta / 2))
    return part, best, float(np.sum(part.w_n * (rho_n + np.log(s * norm))))


def least_absolute(problem: Problem, best: Optimum) -> Optimum:
    """Least absolute log residuals from a point near their optimum, by linear programs in a trust region.

    Each step minimises sum w |r + J d| over |d| <= region. ``gradient`` becomes the share of the sum that
    the last program still promised.
    """
    phi, region, promise = best.phi, 1e-2, 1.0
    w_n = problem.w_n
    total = float(w_n @ np.abs(problem.residuals(phi)))
    for _ in range(_ROUNDS):
        r_n, jacobian = problem.residuals(phi), problem.jacobian(phi)
        n, size = jacobian.shape
        above = scipy.sparse.hstack([jacobian, -scipy.sparse.eye_array(n)])
        below = scipy.sparse.hstack([-jacobian, -scipy.sparse.eye_array(n)])
        bounds = [(-region, region)] * size + [(0, None)] * n
        cost = np.concatenate([np.zeros(size), w_n])
        rows = scipy.sparse.vstack([above, below]).tocsr()
        program = scipy.optimize.linprog(cost, rows, np.concatenate([-r_n, r_n]), bounds=bounds)
        if not program.success:
            break
        promise = 1 - program.fun / total
        trial = phi + program.x[:size]
        reached = float(w_n @ np.abs(problem.residuals(trial)))
        if reached < total:
            phi, total, region = trial, reached, region * 2
        else:
            region /= 4
        if promise < 1e-13 or region < 1e-13:
            break
    huber = float(problem.total(problem.residuals(phi)))
    promise = max(promise, 0.0)
    return replace(best, phi=phi, total=huber, gradient=promise, stationary=promise <= SMALL_GRADIENT)


def _scale(r_n: Array, w_n: Array, delta: float) -> float:
    """The best scale for given residuals: n = sum psi(r / s) r / s, by fixed-point steps on a root of it.

    The root settles both ends: s^2 is the mean square at a wide delta, s the mean size at a narrow one.
    """
    s = delta * float(np.average(np.abs(r_n), weights=w_n))
    for _ in range(200):
        z_n = r_n / s
        new = s * float(np.sqrt(np.average(np.clip(z_n, -delta, delta) * z_n, weights=w_n)))
        if abs(new / s - 1) < 1e-13:
            break
        s = new
    return max(s, 1e-300)
