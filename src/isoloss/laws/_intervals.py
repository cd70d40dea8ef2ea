"""Intervals of plain parameters from a covariance of the scaled ones."""

import numpy as np

from isoloss.errors import InputError
from isoloss.laws._scaled import ScaledForm
from isoloss.laws.forms import Array
from isoloss.stats import t_quantile

Interval = tuple[float | None, float | None]


def check_seed(seed: int) -> int:
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is {seed}", mend="give a whole number, 0 or larger")
    return seed


def kappa_errors(scaled: ScaledForm, theta: Array, covariance: Array) -> tuple[Array, Array]:
    """Coordinates of the plain parameters and their standard errors; 0 for held ones."""
    slopes = scaled.slopes(theta)
    variances = np.einsum("...ij,...jk,...ik->...i", slopes, covariance, slopes)
    return scaled.unscale(theta), np.sqrt(np.maximum(variances, 0.0))


def t_intervals(
    scaled: ScaledForm, theta: Array, covariance: Array | None, df: int, level: float
) -> tuple[dict[str, float | None], dict[str, Interval | None]]:
    """Standard errors of the plain parameters, and t intervals on their own scale; None for held ones."""
    law = scaled.form
    errors: dict[str, float | None] = dict.fromkeys(law.parameters)
    intervals: dict[str, Interval | None] = dict.fromkeys(law.parameters)
    if covariance is None:
        return errors, intervals
    held = {law.parameters[place] for place in scaled.held_K}
    reach = t_quantile(level, df)
    for name, middle, error in zip(law.parameters, *kappa_errors(scaled, theta, covariance), strict=True):
        if name in held:
            continue
        signed = name in law.signed
        errors[name] = float(error if signed else np.exp(middle) * error)
        low, high = (plain_end(middle + side * reach * error, signed) for side in (-1, 1))
        intervals[name] = (low, high)
    return errors, intervals


def plain_values(kappa_S: Array, signed: bool) -> Array:
    """In plain units, kept within what a float holds."""
    return kappa_S if signed else np.exp(np.clip(kappa_S, -700, 700))


def plain_end(kappa: float, signed: bool) -> float | None:
    """An end of an interval in plain units; None where it exceeds every float or is not there."""
    if signed:
        return float(kappa) if np.isfinite(kappa) else None
    return float(np.exp(kappa)) if -700 < kappa < 700 else None
