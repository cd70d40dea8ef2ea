"""Laws as the trend of a forecast: fitted in logs by re-weighted least squares, held by weak priors.

ln L = ln(e^E + (sum_i e^(A_i - alpha_i z_i))^gamma), z the logs of the inputs. The priors make a fit exist
where the runs leave a floor or a slope open: the curve may be known where its parameters are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoloss.laws import Array
from isoloss.laws.forms.coefficients import not_negative
from isoloss.stats import robust_sd

_EXPONENT, _TOKENS_EXPONENT = 0.35, 0.38  # prior medians
_FLOOR = 0.65  # of the middle loss, as in the runs of Hoffmann et al. (arXiv 2203.15556)
_SD_COEFFICIENT, _SD_EXPONENT, _SD_FLOOR = 10.0, 0.4, 0.6  # of logs
_HUBER = 1.345
_LEAST_SCATTER = 1e-5  # of log losses: what rounding leaves
_STARTS = (0.6, 1.0, 1.6)  # times the prior's exponents
_STEPS = 100
_SCALE_STEPS = 30  # then the scale stands still, so that the weights cannot go round in circles
_SMALL_STEP = 1e-7


@dataclass(frozen=True)
class Base:
    """``tied``: one exponent for all inputs; ``outer``: the sum of terms raised to an exponent."""

    name: str
    tied: bool = False
    outer: bool = False
    floor: bool = True


ONE_INPUT = (Base("power-floor"), Base("power", floor=False))
SEVERAL_INPUTS = (
    Base("chinchilla"),
    Base("outer-exponent", outer=True),
    Base("chinchilla, alpha = beta", tied=True),
    Base("outer-exponent, alpha = beta", outer=True, tied=True),
)


def bases_of(inputs: Sequence[str]) -> tuple[Base, ...]:
    """The laws of so many inputs."""
    return SEVERAL_INPUTS if len(inputs) > 1 else ONE_INPUT


@dataclass(frozen=True)
class BaseFit:
    """``theta_p``: E, A_i, log alpha_i, log gamma, as far as the base has them; ``w_n``: Huber's weights.

    ``scatter``: of log losses around the law, by the median of their sizes.
    """

    base: Base
    inputs: int
    theta_p: Array
    w_n: Array
    scatter: float
    converged: bool

    def value(self, z_In: Array) -> tuple[Array, Array]:
        """Log losses (n,) and their slopes (n, p)."""
        return _value(self.base, self.theta_p, z_In)

    @property
    def prior_sd_p(self) -> Array:
        return prior(self.base, self.inputs)[1]

    @property
    def log_prior(self) -> float:
        """Density of ``theta_p`` before the runs are seen, up to (2 pi)^(p/2)."""
        mean_p, sd_p = prior(self.base, self.inputs)
        return float(-np.log(sd_p).sum() - 0.5 * np.sum(((self.theta_p - mean_p) / sd_p) ** 2))


def prior(base: Base, inputs: int) -> tuple[Array, Array]:
    """Means and standard deviations of ``theta_p``."""
    exponents = [_EXPONENT] if base.tied else [_EXPONENT, _TOKENS_EXPONENT, *[_EXPONENT] * inputs][:inputs]
    mean = [*[np.log(_FLOOR)] * base.floor, *[0.0] * inputs, *np.log(exponents), *[0.0] * base.outer]
    sd = [_SD_FLOOR] * base.floor + [_SD_COEFFICIENT] * inputs
    sd += [_SD_EXPONENT] * (len(exponents) + base.outer)
    return np.array(mean), np.array(sd)


def fit_base(base: Base, z_In: Array, y_n: Array) -> BaseFit:
    """``base`` fitted to log losses ``y_n`` at log inputs ``z_In``, both about their middles."""
    mean_p, sd_p = prior(base, len(z_In))
    begun = [_start(base, z_In, y_n, factor) for factor in _STARTS]
    theta_p = min(begun, key=lambda start: float(np.abs(y_n - _value(base, start, z_In)[0]).sum()))
    (value_n, slope_np), held_pp = _value(base, theta_p, z_In), np.diag(sd_p**-2)
    damping, scatter, converged = 1e-3, _scatter(y_n - value_n), False
    for step in range(_STEPS):
        rest_n, pull_p = y_n - value_n, (mean_p - theta_p) / sd_p**2
        scatter = _scatter(rest_n) if step < _SCALE_STEPS else scatter
        w_n = _weights(rest_n, scatter)
        weighted = slope_np.T * (w_n / scatter**2)
        curvature, pull_p = weighted @ slope_np + held_pp, weighted @ rest_n + pull_p
        before = _objective(rest_n, w_n, scatter, (theta_p - mean_p) / sd_p)
        move_p = np.linalg.solve(curvature + np.diag(damping * curvature.diagonal()), pull_p)
        moved_p = theta_p + np.clip(move_p, -2.0, 2.0)
        moved = _value(base, moved_p, z_In)
        if _objective(y_n - moved[0], w_n, scatter, (moved_p - mean_p) / sd_p) > before:
            damping = min(10.0 * damping, 1e8)
            continue
        theta_p, damping, (value_n, slope_np) = moved_p, max(damping / 5.0, 1e-9), moved
        if step >= _SCALE_STEPS and np.abs(move_p).max() < _SMALL_STEP * (1.0 + np.abs(theta_p).max()):
            converged = True
            break
    rest_n = y_n - value_n
    scatter = _scatter(rest_n)
    return BaseFit(base, len(z_In), theta_p, _weights(rest_n, scatter), scatter, converged)


def _value(base: Base, theta_p: Array, z_In: Array) -> tuple[Array, Array]:
    inputs = len(z_In)
    floor = float(np.exp(theta_p[0])) if base.floor else 0.0
    log_a_I = theta_p[base.floor : base.floor + inputs]
    exponents = np.exp(theta_p[base.floor + inputs : len(theta_p) - base.outer])
    alpha_I = np.repeat(exponents, inputs) if base.tied else exponents
    log_t_In = np.minimum(log_a_I[:, None] - alpha_I[:, None] * z_In, 200.0)
    log_sum_n = np.logaddexp.reduce(log_t_In, axis=0)
    gamma = float(np.exp(theta_p[-1])) if base.outer else 1.0
    falling_n = np.exp(np.minimum(gamma * log_sum_n, 300.0))
    loss_n = floor + falling_n
    by_term_In = gamma * falling_n / loss_n * np.exp(log_t_In - log_sum_n)
    by_exponent_In = -by_term_In * alpha_I[:, None] * z_In
    slopes = [np.full_like(loss_n, floor) / loss_n] if base.floor else []
    slopes += [*by_term_In, *([by_exponent_In.sum(axis=0)] if base.tied else by_exponent_In)]
    slopes += [gamma * log_sum_n * falling_n / loss_n] if base.outer else []
    return np.log(loss_n), np.stack(slopes, axis=1)


def _start(base: Base, z_In: Array, y_n: Array, factor: float) -> Array:
    """Exponents of the prior times ``factor``; the coefficients are then linear and none is negative."""
    theta_p = prior(base, len(z_In))[0]
    first = base.floor + len(z_In)
    last = len(theta_p) - base.outer
    theta_p[first:last] += np.log(factor)
    alpha_I = np.broadcast_to(np.exp(theta_p[first:last]), (len(z_In),))
    terms = np.exp(-alpha_I[:, None] * z_In)
    columns = np.vstack([np.ones_like(y_n), terms]) if base.floor else terms
    coefficients = not_negative((columns / np.exp(y_n))[None], np.ones_like(y_n))[0]
    theta_p[:first] = np.log(np.maximum(coefficients, 1e-3))
    return theta_p


def _scatter(rest_n: Array) -> float:
    return max(float(robust_sd(rest_n)), _LEAST_SCATTER)


def _weights(rest_n: Array, scatter: float) -> NDArray[np.float64]:
    return np.minimum(1.0, _HUBER * scatter / np.maximum(np.abs(rest_n), 1e-300))


def _objective(rest_n: Array, w_n: Array, scatter: float, away_p: Array) -> float:
    return float(np.sum(w_n * (rest_n / scatter) ** 2) + np.sum(away_p**2))
