"""The best model over a range of budgets: N*(C), D*(C) and the compute frontier L*(C)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError
from isoloss.laws.forms import Array
from isoloss.laws.level import check_level
from isoloss.laws.result import Fit
from isoloss.plans.allocate import Question, answer
from isoloss.plans.cost import Rates
from isoloss.plans.setting import Setting, law_inputs, passes
from isoloss.plans.surface import surface

Ends = tuple[Array, Array]


@dataclass(frozen=True)
class Optima:
    """Arrays over F budgets. Ends are quantiles of the draws, ``band`` the interval of the law's mean loss.

    NaN where a budget has no optimum; ends and band are None for a fit without covariance.
    """

    flops_F: Array
    params_F: Array
    tokens_F: Array
    loss_F: Array
    params_ends: Ends | None
    tokens_ends: Ends | None
    band: Ends | None
    level: float


def optima(
    fit: Fit,
    flops: ArrayLike,
    *,
    setting: Setting | None = None,
    flops_per_token: float = 6.0,
    level: float = 0.9,
    draws: int = 1000,
    seed: int = 0,
) -> Optima:
    """Plan every budget of training FLOPs, as ``plan`` does one. ``setting`` holds loops and unique tokens.

    Raises InputError as ``plan`` does.
    """
    flops_F = np.atleast_1d(np.asarray(flops, dtype=np.float64))
    if not (np.all(np.isfinite(flops_F)) and np.all(flops_F > 0)):
        raise InputError("a budget is not positive and finite", mend="give FLOPs")
    level, setting = check_level(level), setting or Setting()
    of = surface(fit, setting, draws, seed)
    rates = Rates(flops_per_token, passes(of.law, setting))
    found_F = [answer(of, Question(rates, flops=float(one))) for one in flops_F]
    log_n_FS, log_d_FS = (np.array([pair[i] for pair in found_F]) for i in (0, 1))
    params_F, tokens_F = np.exp(log_n_FS[:, 0]), np.exp(log_d_FS[:, 0])
    loss_F = of.loss(0, log_n_FS[:, 0], log_d_FS[:, 0])
    band = None
    good_F = np.isfinite(loss_F)
    if fit.covariance is not None and good_F.any():
        predicted = fit.predict(
            level=level, **law_inputs(of.law, setting, params_F[good_F], tokens_F[good_F])
        )
        band = tuple(_spread(end, good_F) for end in predicted.band)
    return Optima(
        flops_F,
        params_F,
        tokens_F,
        loss_F,
        _ends(log_n_FS[:, 1:], level),
        _ends(log_d_FS[:, 1:], level),
        band,
        level,
    )


def _ends(log_FS: Array, level: float) -> Ends | None:
    if not log_FS.shape[1]:
        return None
    tail = (1 - level) / 2
    return tuple(np.exp(np.quantile(log_FS, share, axis=1)) for share in (tail, 1 - tail))


def _spread(values: Array, good_F: Array) -> Array:
    out = np.full(len(good_F), np.nan)
    out[good_F] = values
    return out
