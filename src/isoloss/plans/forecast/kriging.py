"""Kriging around a law: what its residuals say between and beyond the runs.

The residuals of a fitted law have covariance J S J' + tau^2 exp(-|z - z'|^2 / 2 l^2) + sigma^2 N: the law's
own parameters linearised (J its slopes, S their priors), a smooth error of its form, and the noise N of runs.
This is universal kriging (Matheron 1969), the smooth error the discrepancy of Kennedy and O'Hagan 2001.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from isoloss.laws import Array
from isoloss.plans.forecast.bases import BaseFit

_TAUS = np.geomspace(2e-4, 0.1, 8)
_TAU_MEDIAN, _TAU_SD = 0.003, 1.5  # of its lognormal prior
_LENGTHS = (1.5, 3.0, 6.0)  # in logs of the inputs
_NOISES = np.array([0.3, 0.6, 1.0])  # times the robust scatter
_SHARED = (0.3, 0.7, 0.95)  # of the noise, by rows of one cluster
_KEPT = 10


def krige(
    fit: BaseFit, z_In: Array, y_n: Array, label_n: NDArray[np.int64], at_Iq: Array
) -> tuple[Array, Array]:
    """Mean and variance of the log loss of a new run at ``at_Iq``, each of shape (q,).

    Averaged over tau, l and sigma, each choice weighing as its marginal likelihood times the prior of tau.
    Rows of one label share a part of their noise, weighed in the same way; a new run shares none.
    """
    law_n, slope_np = fit.value(z_In)
    law_q, slope_qp = fit.value(at_Iq)
    same_nn = label_n[:, None] == label_n
    several = bool(np.any(same_nn.sum(axis=1) > 1))
    parts = []
    for length, share in product(_LENGTHS, _SHARED if several else (0.0,)):
        noise_nn = (1 - share) * np.diag(1 / fit.w_n) + share * same_nn
        near = _near(z_In, z_In, length), _near(z_In, at_Iq, length)
        parts.append(_by_length(fit, noise_nn, *near, y_n - law_n, slope_np, slope_qp))
    evidence_g, mean_gq, variance_gq = (np.concatenate(column) for column in zip(*parts, strict=True))
    kept = np.argsort(-evidence_g, kind="stable")[:_KEPT]
    weight_g = np.exp(evidence_g[kept] - evidence_g[kept[0]])
    weight_g /= weight_g.sum()
    mean_q = weight_g @ mean_gq[kept]
    return law_q + mean_q, weight_g @ (variance_gq[kept] + (mean_gq[kept] - mean_q) ** 2)


def _near(z_In: Array, at_Iq: Array, length: float) -> Array:
    """exp(-distance^2 / 2 l^2), shape (n, q)."""
    return np.exp(-((z_In[:, :, None] - at_Iq[:, None, :]) ** 2).sum(axis=0) / (2 * length**2))


def _by_length(
    fit: BaseFit,
    noise_nn: Array,
    near_nn: Array,
    near_nq: Array,
    rest_n: Array,
    slope_np: Array,
    slope_qp: Array,
) -> tuple[Array, Array, Array]:
    """Log evidence (g,), mean (g, q) and variance (g, q) for each tau and sigma.

    In the axes where the smooth error and the noise are both diagonal, one choice costs n p^2.
    """
    root_nn = np.linalg.cholesky(noise_nn)
    half_nn = np.asarray(solve_triangular(root_nn, near_nn, lower=True))
    size_n, axes_nn = np.linalg.eigh(solve_triangular(root_nn, half_nn.T, lower=True))
    columns = np.column_stack([rest_n, slope_np, near_nq])
    columns = axes_nn.T @ solve_triangular(root_nn, columns, lower=True)
    r_n, J_np, k_nq = np.split(columns, [1, 1 + slope_np.shape[1]], axis=1)
    log_root = float(np.log(np.diag(root_nn)).sum())
    priors = np.diag(fit.prior_sd_p**-2)
    rows = []
    for tau, noise in product(_TAUS, _NOISES):
        sigma = noise * fit.scatter
        d_n = tau**2 * np.maximum(size_n, 0.0) + sigma**2
        Jd_np = J_np / d_n[:, None]
        inner_pp = priors + J_np.T @ Jd_np
        shift_p = np.linalg.solve(inner_pp, Jd_np.T @ r_n[:, 0])
        left_n = (r_n[:, 0] - J_np @ shift_p) / d_n
        evidence = -0.5 * (np.log(d_n).sum() + np.linalg.slogdet(inner_pp)[1] + r_n[:, 0] @ left_n) - log_root
        evidence -= 0.5 * (np.log(tau / _TAU_MEDIAN) / _TAU_SD) ** 2
        open_qp = slope_qp - tau**2 * k_nq.T @ Jd_np
        variance_q = (
            tau**2 - tau**4 * np.sum(k_nq**2 / d_n[:, None], axis=0)
            + np.einsum("qp,pq->q", open_qp, np.linalg.solve(inner_pp, open_qp.T))
            + sigma**2
        )  # fmt: skip
        rows.append((evidence, slope_qp @ shift_p + tau**2 * k_nq.T @ left_n, variance_q))
    evidence_g, mean_gq, variance_gq = zip(*rows, strict=True)
    return np.array(evidence_g), np.array(mean_gq), np.array(variance_gq)
