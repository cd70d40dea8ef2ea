"""Kriging around a law: what its residuals say between and beyond the runs.

The residuals of a fitted law have covariance J S J' + tau^2 exp(-|z - z'|^2 / 2 l^2) + sigma^2 N: the law's
own parameters linearised (J its slopes, S their priors), a smooth error of its form, and the noise N of runs.
This is universal kriging (Matheron 1969), the smooth error the discrepancy of Kennedy and O'Hagan 2001.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from threading import Lock

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from isoloss.laws import Array
from isoloss.plans.forecast.bases import BaseFit

_TAUS = np.geomspace(2e-4, 0.1, 8)
_TAU_MEDIAN, _TAU_SD = 0.02, 1.5  # of its lognormal prior
_LENGTHS = (1.5, 3.0, 6.0)  # in logs of the inputs
_NOISES = np.array([0.3, 0.6, 1.0])  # times the robust scatter
_SHARED = (0.3, 0.7, 0.95)  # of the noise, by rows of one cluster
_KEPT = 10


@dataclass(frozen=True)
class Choice:
    """One size ``tau`` and reach ``length`` of the smooth error, a noise, and their ``share`` by likelihood.

    Of the law's parameters, ``move_p`` is the mean and ``root_pp`` a root of the covariance of what the
    residuals add to them. ``white_nn`` whitens residuals whose parameters are known; whitened are ``left_n``,
    the residuals after ``move_p``, ``slope_np``, the slopes of the law, and ``noise_n``, the noise's sd.
    """

    share: float
    tau: float
    length: float
    sigma: float
    move_p: Array
    root_pp: Array
    white_nn: Array
    left_n: Array
    slope_np: Array
    noise_n: Array

    def pull(self, left_n: Array) -> Array:
        """What multiplies exp(-distance^2 / 2 l^2) to each run in the smooth error that ``left_n`` tells."""
        return self.tau**2 * self.white_nn.T @ left_n


@dataclass(frozen=True)
class Kriged:
    """A law with its kriged residuals, averaged over choices of how smooth its error is.

    ``log_likelihood``: of the losses, over its parameters and these choices, up to what all laws share;
    None of several sizes.
    """

    fit: BaseFit
    z_In: Array
    choices: tuple[Choice, ...]
    log_likelihood: float | None

    @property
    def noise(self) -> float:
        """Variance of one run about its mean, of log losses."""
        return sum(choice.share * choice.sigma**2 for choice in self.choices)

    def moments(self, at_Iq: Array) -> tuple[Array, Array]:
        """Mean and variance (q,) of the log loss of a new run."""
        parts = self._parts(at_Iq)
        mean_q = np.sum([choice.share * each_q for choice, each_q, *_ in parts], axis=0)
        variance_q = np.zeros_like(mean_q)
        for choice, each_q, known_nq, open_qp in parts:
            within_q = choice.tau**2 - np.sum(known_nq**2, axis=0) + np.sum(open_qp**2, axis=1)
            variance_q += choice.share * (within_q + choice.sigma**2 + (each_q - mean_q) ** 2)
        return mean_q, variance_q

    def covariance(self, at_Iq: Array) -> tuple[Array, Array]:
        """Mean (q,) and covariance (q, q) of the log loss at several points, without the noise of runs."""
        parts = self._parts(at_Iq)
        mean_q = np.sum([choice.share * each_q for choice, each_q, *_ in parts], axis=0)
        out_qq = np.zeros((len(mean_q), len(mean_q)))
        for choice, each_q, known_nq, open_qp in parts:
            within_qq = choice.tau**2 * near(at_Iq, at_Iq, choice.length) - known_nq.T @ known_nq
            away_q = each_q - mean_q
            out_qq += choice.share * (within_qq + open_qp @ open_qp.T + np.outer(away_q, away_q))
        return mean_q, out_qq

    def error(self, at_Iq: Array) -> Array:
        """What the residuals add to the law in the mean, (q,)."""
        slope_qp, near_lnq = self.fit.value(at_Iq)[1], self._near(at_Iq)
        each_cq = [
            choice.share * (slope_qp @ choice.move_p + choice.pull(choice.left_n) @ near_lnq[choice.length])
            for choice in self.choices
        ]
        return np.sum(each_cq, axis=0)

    def _near(self, at_Iq: Array) -> dict[float, Array]:
        """By length, how near the points are to the runs."""
        lengths = dict.fromkeys(choice.length for choice in self.choices)
        return {length: near(self.z_In, at_Iq, length) for length in lengths}

    def _parts(self, at_Iq: Array) -> list[tuple[Choice, Array, Array, Array]]:
        """Of each choice: the mean; what the runs tell of the smooth error, a root (n, q); what parameters
        leave (q, p)."""
        law_q, slope_qp = self.fit.value(at_Iq)
        near_lnq = self._near(at_Iq)
        parts: list[tuple[Choice, Array, Array, Array]] = []
        for choice in self.choices:
            known_nq = choice.tau**2 * choice.white_nn @ near_lnq[choice.length]
            mean_q = law_q + slope_qp @ choice.move_p + known_nq.T @ choice.left_n
            open_qp = (slope_qp - known_nq.T @ choice.slope_np) @ choice.root_pp
            parts.append((choice, mean_q, known_nq, open_qp))
        return parts


def krige(fit: BaseFit, z_In: Array, y_n: Array, label_n: NDArray[np.int64]) -> Kriged:
    """Averaged over tau, l and sigma, each choice weighing as its marginal likelihood times the prior of tau.

    Rows of one label share a part of their noise, weighed in the same way; a new run shares none.
    """
    with _ALONE, _linear_algebra().limit(limits=1):
        return _krige(fit, z_In, y_n, label_n)


_ALONE = Lock()  # two threads of one process would restore each other's limit


@cache
def _linear_algebra() -> ThreadpoolController:
    """The threads of NumPy's and SciPy's BLAS: with some hundred rows two are slower than one."""
    return ThreadpoolController().select(user_api="blas")


def _krige(fit: BaseFit, z_In: Array, y_n: Array, label_n: NDArray[np.int64]) -> Kriged:
    law_n, slope_np = fit.value(z_In)
    same_nn = label_n[:, None] == label_n
    several = bool(np.any(same_nn.sum(axis=1) > 1))
    scored: list[tuple[float, _Axes, float, float]] = []
    prior_sd_p, (tau_g, noise_g) = fit.prior_sd_p, _grid()
    for length, shared in product(_LENGTHS, _SHARED if several else (0.0,)):
        noise_nn = (1 - shared) * np.diag(1 / fit.w_n) + shared * same_nn
        axes = _axes(noise_nn, near(z_In, z_In, length), length, y_n - law_n, slope_np)
        sigma_g = noise_g * fit.scatter
        each = (part_g.tolist() for part_g in (_evidence(axes, prior_sd_p, tau_g, sigma_g), tau_g, sigma_g))
        scored += [(score, axes, tau, sigma) for score, tau, sigma in zip(*each, strict=True)]
    kept = np.argsort([-score for score, *_ in scored], kind="stable")[:_KEPT]
    weight_g = np.exp([scored[g][0] - scored[kept[0]][0] for g in kept])
    shares = weight_g / weight_g.sum()
    best = zip(shares.tolist(), kept, strict=True)
    choices = tuple(_choice(share, fit, *scored[g][1:]) for share, g in best)
    return Kriged(fit, z_In, choices, _log_likelihood(fit, z_In, y_n) if len(z_In) == 1 else None)


def _log_likelihood(fit: BaseFit, z_In: Array, y_n: Array) -> float:
    """Over the choices, with noise sigma^2 / w^2: so one row far off costs a law little, however far."""
    law_n, slope_np = fit.value(z_In)
    scores: list[Array] = []
    tau_g, noise_g = _grid()
    for length in _LENGTHS:
        axes = _axes(np.diag(fit.w_n**-2), near(z_In, z_In, length), length, y_n - law_n, slope_np)
        scores.append(_evidence(axes, fit.prior_sd_p, tau_g, noise_g * fit.scatter))
    return float(np.logaddexp.reduce(np.concatenate(scores))) + fit.log_prior


def _grid() -> Array:
    """Every pair of a tau and a noise, shape (2, g)."""
    return np.array(list(product(_TAUS, _NOISES))).T


def near(z_In: Array, at_Iq: Array, length: float | Array) -> Array:
    """exp(-distance^2 / 2 l^2), shape (n, q), with one l or one for each n, as a column."""
    away_nq = np.zeros((z_In.shape[1], at_Iq.shape[1]))
    for z_n, at_q in zip(z_In, at_Iq, strict=True):
        apart_nq = np.subtract.outer(z_n, at_q)
        away_nq += np.square(apart_nq, out=apart_nq)
    away_nq /= -2 * np.square(length)
    return np.exp(away_nq, out=away_nq)


@dataclass(frozen=True)
class _Axes:
    """Axes ``axes_nn`` in which smooth error, of sizes ``size_n``, and noise are both diagonal.

    There one choice of tau and sigma costs n p^2; all of them are tried at once.
    """

    length: float
    axes_nn: Array
    size_n: Array
    log_root: float
    rest_n: Array
    slope_np: Array

    def posterior(self, prior_sd_p: Array, tau_g: Array, sigma_g: Array) -> tuple[Array, Array, Array]:
        """Of each choice: variances in these axes, the curvature of the parameters, and their mean."""
        d_gn = np.square(tau_g)[:, None] * np.maximum(self.size_n, 0.0) + np.square(sigma_g)[:, None]
        over_gnp = self.slope_np / d_gn[..., None]
        inner_gpp = np.diag(prior_sd_p**-2) + self.slope_np.T @ over_gnp
        pull_gp = over_gnp.transpose(0, 2, 1) @ self.rest_n
        return d_gn, inner_gpp, np.linalg.solve(inner_gpp, pull_gp[..., None])[..., 0]


def _axes(noise_nn: Array, near_nn: Array, length: float, rest_n: Array, slope_np: Array) -> _Axes:
    root_nn = np.linalg.cholesky(noise_nn)
    half_nn = np.asarray(scipy.linalg.solve_triangular(root_nn, near_nn, lower=True))
    size_n, turn_nn = np.linalg.eigh(scipy.linalg.solve_triangular(root_nn, half_nn.T, lower=True))
    axes_nn = np.asarray(scipy.linalg.solve_triangular(root_nn, turn_nn, lower=True, trans="T")).T
    log_root = float(np.log(np.diag(root_nn)).sum())
    return _Axes(length, axes_nn, size_n, log_root, axes_nn @ rest_n, axes_nn @ slope_np)


def _evidence(axes: _Axes, prior_sd_p: Array, tau_g: Array, sigma_g: Array) -> Array:
    d_gn, inner_gpp, move_gp = axes.posterior(prior_sd_p, tau_g, sigma_g)
    left_gn = (axes.rest_n - move_gp @ axes.slope_np.T) / d_gn
    log_size_g = np.log(d_gn).sum(axis=1) + np.linalg.slogdet(inner_gpp)[1]
    by_prior_g = 0.5 * (np.log(tau_g / _TAU_MEDIAN) / _TAU_SD) ** 2
    return -0.5 * (log_size_g + left_gn @ axes.rest_n) - axes.log_root - by_prior_g


def _choice(share: float, fit: BaseFit, axes: _Axes, tau: float, sigma: float) -> Choice:
    one = axes.posterior(fit.prior_sd_p, np.array([tau]), np.array([sigma]))
    d_n, inner_pp, move_p = (part_g[0] for part_g in one)
    root_pp = np.linalg.inv(np.linalg.cholesky(inner_pp)).T
    sd_n = np.sqrt(d_n)
    left_n = (axes.rest_n - axes.slope_np @ move_p) / sd_n
    white_nn, slope_np = axes.axes_nn / sd_n[:, None], axes.slope_np / sd_n[:, None]
    return Choice(share, tau, axes.length, sigma, move_p, root_pp, white_nn, left_n, slope_np, sigma / sd_n)
