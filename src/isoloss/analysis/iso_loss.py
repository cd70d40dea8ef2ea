"""Lines of equal loss over training compute and parameters, by a law or by the forecast of a table."""

import numpy as np
import polars as pl
from scipy.interpolate import RectBivariateSpline

from isoloss.laws import Array, Fit
from isoloss.plans import Optima, Plan, surface_of
from isoloss.plans.fixed_inputs import held_inputs
from isoloss.plans.forecast import Forecaster
from isoloss.plans.loss_surface import LEAST_DRAWS

LINES = 8
SIZES, BUDGETS = 49, 64
FINE = 8
"""Between these points of the law a cubic spline has so many: the loss is smooth over logs."""
REACH = 8.0
"""Lines go over sizes within this factor of the best ones."""


def contours(source: Fit | Forecaster, plan: Plan, best: Optima, losses: Array) -> pl.DataFrame:
    """loss, params, flops: the compute at which each size reaches each loss, where it does in the picture."""
    there = np.isfinite(best.params_F) & np.isfinite(best.loss_F)
    low, high = np.min(best.params_F[there]), np.max(best.params_F[there])
    least, most = np.min(best.flops_F[there]), np.max(best.flops_F[there])
    log_n_N = np.log(np.geomspace(low / REACH, high * REACH, SIZES))
    log_flops_B = np.log(np.geomspace(least / 100, most, BUDGETS))
    log_d_NB = log_flops_B - log_n_N[:, None] - np.log(plan.flops_per_token)
    surface = surface_of(source, held_inputs(plan.given), LEAST_DRAWS)
    smooth = RectBivariateSpline(log_n_N, log_flops_B, surface.loss(0, log_n_N[:, None], log_d_NB))
    log_n_N = np.linspace(log_n_N[0], log_n_N[-1], FINE * SIZES)
    log_flops_B = np.linspace(log_flops_B[0], log_flops_B[-1], FINE * BUDGETS)
    loss_NB = smooth(log_n_N, log_flops_B)
    parts = []
    for loss in losses:
        reached_N = [np.interp(-loss, -row_B, log_flops_B, np.nan, np.nan) for row_B in loss_NB]
        parts.append(pl.DataFrame({"loss": loss, "params": np.exp(log_n_N), "flops": np.exp(reached_N)}))
    return pl.concat(parts).filter(pl.col("flops").is_finite() & (pl.col("flops") >= float(least)))


def levels(low: float, high: float) -> Array:
    """About ``LINES`` round losses strictly between two."""
    step = 10.0 ** np.floor(np.log10((high - low) / LINES))
    step *= min((1, 2, 5, 10), key=lambda k: abs(np.log((high - low) / (LINES * step * k))))
    return np.round(np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step, 9)
