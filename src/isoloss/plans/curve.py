"""The best model over a range of budgets: N*(C), D*(C), the frontier L*(C), and the exponent of N*."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss.errors import InputError, Refusal
from isoloss.laws import Array, Fit
from isoloss.plans.allocate import AllocationQuestion, answer
from isoloss.plans.cost import Rates
from isoloss.plans.fixed_inputs import FixedInputs, law_inputs, passes
from isoloss.plans.loss_surface import LossSurface, loss_surface
from isoloss.stats import check_level

if TYPE_CHECKING:  # `isoloss fit` asks for an exponent and no forecast
    from isoloss.plans.forecast import Forecaster

Ends = tuple[Array, Array]

ALLOCATION_DRAWS = 4000
"""Ends of a 90% interval then move by 2% of its width from seed to seed."""


@dataclass(frozen=True)
class Optima:
    """Arrays over F budgets. Ends are quantiles of the draws, ``band`` the interval of the law's mean loss,
    of a forecast that of a new run.

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

    @property
    def exponent(self) -> float:
        """Of the power law through N* over all budgets; NaN where one has no optimum."""
        return float(np.polyfit(np.log(self.flops_F), np.log(self.params_F), 1)[0])


def surface_of(source: "Fit | Forecaster", fixed: FixedInputs, draws: int, seed: int = 0) -> LossSurface:
    """The loss over N and D of a fit, or of the forecast of a table. Raises InputError for other inputs."""
    return (
        loss_surface(source, fixed, draws, seed) if isinstance(source, Fit) else source.surface(draws, seed)
    )


def optima(
    source: "Fit | Forecaster",
    flops: ArrayLike,
    *,
    setting: FixedInputs | None = None,
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
    level, fixed = check_level(level), setting or FixedInputs()
    surface = surface_of(source, fixed, draws, seed)
    rates = Rates(flops_per_token, passes(source.form, fixed) if isinstance(source, Fit) else 1.0)
    log_n_FS, log_d_FS = _answers(surface, flops_F, rates)
    params_F, tokens_F = np.exp(log_n_FS[:, 0]), np.exp(log_d_FS[:, 0])
    loss_F = surface.loss(0, log_n_FS[:, 0], log_d_FS[:, 0])
    return Optima(
        flops_F,
        params_F,
        tokens_F,
        loss_F,
        _ends(log_n_FS[:, 1:], level),
        _ends(log_d_FS[:, 1:], level),
        _band(source, fixed, params_F, tokens_F, np.isfinite(loss_F), level),
        level,
    )


def _band(
    source: "Fit | Forecaster",
    fixed: FixedInputs,
    params_F: Array,
    tokens_F: Array,
    good_F: NDArray[np.bool_],
    level: float,
) -> Ends | None:
    if not good_F.any() or (isinstance(source, Fit) and source.covariance is None):
        return None
    band_2F = np.full((2, len(good_F)), np.nan)
    N, D = params_F[good_F], tokens_F[good_F]
    if isinstance(source, Fit):
        band_2F[:, good_F] = source.predict(level=level, **law_inputs(source.form, fixed, N, D)).band
    else:
        band_2F[:, good_F] = source.at({"params": N, "tokens": D}, level).interval.T
    return band_2F[0], band_2F[1]


class AllocationExponent(NamedTuple):
    """The exponent a of N* ~ C^a; ``interval`` is None where the fit knows no uncertainty."""

    exponent: float
    interval: tuple[float, float] | None


def allocation_exponent(
    fit: Fit,
    flops: ArrayLike | None = None,
    *,
    level: float | None = None,
    draws: int = ALLOCATION_DRAWS,
    seed: int = 0,
) -> AllocationExponent | None:
    """a = beta / (alpha + beta) of the law and, by quantiles over its draws, the interval at ``level``.

    C = k N D with any k. A law without such exponents, but with an optimum, has that of the power law through
    its N* at ``flops``; None if they are not given. ``level`` is the fit's own unless told otherwise.

    Raises InputError for a law without N or D, Refusal where the law has no optimum at some of ``flops``.
    """
    level = fit.level if level is None else check_level(level)
    if fit.allocation() is None and flops is None:
        return None
    surface = loss_surface(fit, FixedInputs(), draws, seed)
    terms = surface.terms
    if terms is not None:
        a_S = np.where(surface.broken_S, np.nan, terms.beta / (terms.alpha + terms.beta))
    else:
        flops_F = np.asarray(flops, dtype=np.float64)
        a_S = np.polyfit(np.log(flops_F), _answers(surface, flops_F, Rates(6.0))[0], 1)[0]
    if not np.isfinite(a_S[0]):
        raise Refusal(
            f"{fit.law} has no optimum at some of these budgets", mend="choose compute nearer to the data"
        )
    drawn_S = a_S[1:][np.isfinite(a_S[1:])]
    if not len(drawn_S):
        return AllocationExponent(float(a_S[0]), None)
    low, high = np.quantile(drawn_S, [(1 - level) / 2, (1 + level) / 2])
    return AllocationExponent(float(a_S[0]), (float(low), float(high)))


def _answers(surface: LossSurface, flops_F: Array, rates: Rates) -> tuple[Array, Array]:
    """log N and log D of the optimum at each budget and for each row of the surface, shape (F, S)."""
    answers = [answer(surface, AllocationQuestion(rates, flops=float(flops))) for flops in flops_F]
    return np.array([log_n_S for log_n_S, _ in answers]), np.array([log_d_S for _, log_d_S in answers])


def _ends(log_FS: Array, level: float) -> Ends | None:
    if not log_FS.shape[1]:
        return None
    tail = (1 - level) / 2
    low_F, high_F = np.exp(np.quantile(log_FS, [tail, 1 - tail], axis=1))
    return low_F, high_F
