"""How far parameters may be off: covariances, for many fits at once, by formula or by leaving runs out."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isoloss.distributions import normal_cdf
from isoloss.laws._solve import Problem, descend
from isoloss.laws.forms import Array
from isoloss.stats import robust_sd

WORST_CONDITION = 1e10
_CELLS = 3_000_000
"""Rows times fits that leave one out: 1,000 runs of 100 checkpoints would take 4 GB and an hour."""


def inside_share(problem: Problem, r_n: Array) -> Array:
    """For each residual, the smoothed chance of lying within delta; 1 for least squares.

    Delta is often far below the noise, and then hardly a residual lies inside it: a normal kernel smooths.
    Source: Powell 1991 for absolute values, with Silverman's bandwidth.
    """
    if problem.objective != "huber-log":
        return np.ones_like(r_n)
    width = 1.06 * np.maximum(robust_sd(r_n), 1e-300) * r_n.shape[-1] ** -0.2
    width = width[..., None] if r_n.ndim > 1 else width
    below, above = (normal_cdf((end - r_n) / width) for end in (-problem.delta, problem.delta))
    return np.maximum(above - below, 1e-12)


FEW = 20  # degrees of freedom below which no kernel knows the density of the residuals


def normal_huber(problem: Problem, r_Sn: Array, df: int) -> tuple[Array, Array, Array]:
    """Variance, mean psi^2 and chance of lying within delta, of normal noise with the residuals' variance.

    With few degrees of freedom Huber's fit runs through several points, and what is left of the others says
    little about density or spread; their squares still do.
    """
    variance_S = (problem.w_n * r_Sn**2).sum(axis=-1) / df
    c_S = problem.delta / np.sqrt(np.maximum(variance_S, 1e-300))
    inside_S = np.maximum(2 * normal_cdf(c_S) - 1, 1e-12)
    density_S = np.exp(-(c_S**2) / 2) / np.sqrt(2 * np.pi)
    psi_S = variance_S * (inside_S - 2 * c_S * density_S + c_S**2 * (1 - inside_S))
    return variance_S, psi_S, inside_S


def covariance(problem: Problem, phi: Array, df: int) -> tuple[float, Array | None]:
    """Condition number of the Jacobian with columns of length 1, and the covariance of phi; None if singular.

    Least squares: residual variance times inverse(J' W J). Huber: the sandwich inverse(H) M inverse(H) n / df
    with H = J' W diag(inside) J and M = J' diag(w psi)^2 J, which holds where the noise differs from run to
    run (Huber and Ronchetti, Robust Statistics, section 7.6); below ``FEW`` degrees of freedom normal theory,
    E psi^2 / P(inside)^2 times inverse(J' W J).
    """
    condition, covariances = covariance_S(problem, phi[None], df)
    return float(condition[0]), covariances[0] if np.isfinite(covariances[0]).all() else None


def covariance_S(problem: Problem, phi_SF: Array, df: int) -> tuple[Array, Array]:
    """Condition numbers and covariances of S fits at once, NaN where a fit is singular."""
    if not phi_SF.shape[1]:
        return np.ones(len(phi_SF)), np.zeros((len(phi_SF), 0, 0))
    r_Sn = problem.residuals(phi_SF)
    w_Sn = np.broadcast_to(problem.w_n, r_Sn.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # of a parameter held far off: not sound
        columns = np.sqrt(w_Sn)[..., None] * problem.jacobian(phi_SF)
        length_SF = np.linalg.norm(columns, axis=1)
    sound_S = np.all((length_SF > 1e-150) & np.isfinite(length_SF), axis=1)
    scaled = np.where(sound_S[:, None, None], columns / np.maximum(length_SF, 1e-300)[:, None], 0.0)
    _, sizes, vt = np.linalg.svd(np.nan_to_num(scaled), full_matrices=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        condition_S = np.where(sound_S, sizes[:, 0] / np.maximum(sizes[:, -1], 1e-300), np.inf)
        sound_S &= condition_S <= WORST_CONDITION
        root = np.swapaxes(vt, 1, 2) / sizes[:, None, :] / length_SF[..., None]
        inverse = root @ np.swapaxes(root, 1, 2)
        if problem.objective == "huber-log" and df < FEW:
            _, psi_S, inside_S = normal_huber(problem, r_Sn, df)
            out = inverse * (psi_S / inside_S**2)[:, None, None]
        elif problem.objective == "huber-log":
            out = _sandwich(problem, r_Sn, w_Sn, columns, df)
        else:
            out = inverse * ((w_Sn * r_Sn**2).sum(axis=1) / df)[:, None, None]
    return condition_S, np.where(sound_S[:, None, None], out, np.nan)


def _sandwich(problem: Problem, r_Sn: Array, w_Sn: Array, columns: Array, df: int) -> Array:
    bread = np.swapaxes(columns, 1, 2) @ (inside_share(problem, r_Sn)[..., None] * columns)
    pulled = (np.sqrt(w_Sn) * problem.pull(r_Sn))[..., None] * columns
    filling = np.swapaxes(pulled, 1, 2) @ pulled * (r_Sn.shape[1] / df)
    length = np.sqrt(np.einsum("sff->sf", bread))
    bread = bread / length[:, :, None] / length[:, None, :]
    inverse = np.linalg.pinv(np.nan_to_num(bread), hermitian=True) / length[:, :, None] / length[:, None, :]
    return inverse @ filling @ inverse


def jackknife(problem: Problem, phi: Array, group_n: NDArray[np.int64]) -> Array | None:
    """Covariance of phi by leaving out one run at a time: (G - 1) / G sum of squared deviations.

    It counts runs however their checkpoints hang together. None if a run alone carries a parameter. Of very
    many rows, blocks of runs drawn at random are left out, as many as ``_CELLS`` allow but at least 30.
    """
    groups = int(group_n.max()) + 1
    blocks = max(30, _CELLS // len(group_n))
    if groups > blocks:
        group_n = (np.random.default_rng(0).permutation(groups) % blocks)[group_n]
        groups = blocks
    w_Gn = np.where(group_n == np.arange(groups)[:, None], 0.0, problem.w_n)
    left_out = replace(problem, w_n=w_Gn)
    phi_GF = descend(left_out, np.tile(phi, (groups, 1)))
    condition_G, _ = covariance_S(left_out, phi_GF, 1)
    if not np.all(condition_G <= WORST_CONDITION):
        return None
    away = phi_GF - phi_GF.mean(axis=0)
    return (groups - 1) / groups * away.T @ away


def sigma(problem: Problem, r_n: Array, df: int) -> float:
    """Standard deviation of one run about the law: of losses, or of log losses."""
    if problem.objective == "huber-log" and df >= FEW:
        return float(robust_sd(r_n)) * float(np.sqrt(len(r_n) / df))
    return float(np.sqrt((problem.w_n * r_n**2).sum() / df))
