"""What a fit says about new inputs: the law, its band, the interval of a new run, how far outside."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from isoloss.distributions import t_quantile
from isoloss.errors import InputError
from isoloss.laws.forms import Array, Form

if TYPE_CHECKING:
    from isoloss.laws._result import Fit

_FAR = 10.0  # beyond this factor a point is doubted where nobody asked for an error rate
_UNASKED = "a warning by the factor alone; isoloss.predict goes by the table's error rate"
_UNKNOWN = "no interval covers a wrong law, and no error rate is known"


@dataclass(frozen=True)
class Prediction:
    """Losses in nats per token, floats if every input was one.

    ``band`` holds the law's mean, ``interval`` one new run; None when the fit supports no interval.
    ``extrapolation`` is, per input, the factor by which it lies outside the data, 1 inside.
    """

    loss: float | Array
    interval: tuple[float | Array, float | Array] | None
    band: tuple[float | Array, float | Array] | None
    level: float
    extrapolation: dict[str, float | Array]
    warnings: tuple[str, ...]


def scale_inputs(fit: "Fit", law: Form, inputs: Mapping[str, ArrayLike]) -> tuple[Array, tuple[int, ...]]:
    """Log inputs in units of the fit, shape (I, n), and the shape of the broadcast inputs."""
    law.check_inputs(inputs, "name each input once")
    try:
        x = np.broadcast_arrays(*(np.asarray(inputs[name], dtype=np.float64) for name in law.inputs))
    except (TypeError, ValueError) as error:
        raise InputError(f"inputs are not numbers of one shape ({error})", where=law.name) from None
    for name, values in zip(law.inputs, x, strict=True):
        if not np.all(np.isfinite(values) & ((values > 0) | ((values == 0) & (name in law.zeros)))):
            raise InputError(
                f"{name} holds a value that is not positive and finite",
                where=law.name,
                mend="give raw counts, such as 7e9",
            )
    scale = [np.log(fit.units.inputs[name]) for name in law.inputs]
    with np.errstate(divide="ignore"):
        logs = [np.maximum(np.log(a.ravel()), -700.0) - s for a, s in zip(x, scale, strict=True)]
    return np.stack(logs), x[0].shape


def log_variance(fit: "Fit", law: Form, z_In: Array) -> Array:
    """Of the mean log loss; of the mean loss in units of the fit where losses may be negative."""
    if fit.covariance is None:
        return np.zeros(z_In.shape[1])
    theta = np.array(fit.theta)
    slope_np = law.gradient(theta, z_In)
    if not fit.signed_floor:
        slope_np = slope_np / law.value(theta, z_In)[:, None]
    return np.einsum("np,pq,nq->n", slope_np, np.array(fit.covariance), slope_np)


def far_warnings(outside: Mapping[str, ArrayLike], *, unasked: bool) -> list[str]:
    """Of inputs a factor beyond ``_FAR`` outside the data, where no error rate says how far is too far.

    ``unasked``: the fit carries rows that would tell one.
    """
    worst = {name: float(np.max(factor, initial=1.0)) for name, factor in outside.items()}
    return [
        f"{name} lies a factor {factor:.3g} outside the data: {_UNASKED if unasked else _UNKNOWN}"
        for name, factor in worst.items()
        if factor > _FAR
    ]


def predict(fit: "Fit", level: float, inputs: Mapping[str, ArrayLike]) -> Prediction:
    law = fit.form
    z_In, shape = scale_inputs(fit, law, inputs)
    scaled_n = law.value(np.array(fit.theta), z_In)

    def reshape(values_n: Array) -> float | Array:
        return values_n.reshape(shape) if shape else float(values_n[0])

    band = interval = None
    if fit.covariance is not None:
        noise_n = np.full(z_In.shape[1], fit.sigma if fit.sigma is not None else np.nan)
        if fit.objective.name == "squared":
            noise_n = noise_n / fit.units.loss / (1.0 if fit.signed_floor else scaled_n)
        reach_KEn = _reach(fit, law, z_In, scaled_n, noise_n, level)
        if fit.signed_floor:
            ends_KEn = fit.units.loss * (scaled_n + reach_KEn)
        else:
            ends_KEn = fit.units.loss * (scaled_n * np.exp(np.clip(reach_KEn, -600.0, 600.0)))
        band, new_run = ((reshape(low_n), reshape(high_n)) for low_n, high_n in ends_KEn)
        interval = None if fit.sigma is None else new_run
    outside: dict[str, float | Array] = {}
    for name, (low, high) in fit.ranges.items():
        x_n = np.exp(z_In[law.inputs.index(name)]) * fit.units.inputs[name]
        # The rounding of log and exp must not make an end of the data an extrapolation.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio_n = np.maximum(np.maximum(x_n / high, low / x_n), 1.0)
        ratio_n = np.where((ratio_n < 1 + 1e-12) | ~np.isfinite(ratio_n), 1.0, ratio_n)
        outside[name] = reshape(ratio_n)
    warnings = (*fit.doubts, *far_warnings(outside, unasked=fit.data is not None))
    return Prediction(reshape(fit.units.loss * scaled_n), interval, band, level, outside, warnings)


def _reach(fit: "Fit", law: Form, z_In: Array, scaled_n: Array, noise_n: Array, level: float) -> Array:
    """Both ends of the law's mean and of one new run, as distances from it (of logs), shape (2, 2, n).

    By t, or by bootstrap refits.
    """
    if fit.bootstrap is None:
        var_n, t = log_variance(fit, law, z_In), t_quantile(level, fit.df)
        reach_Kn = t * np.sqrt([var_n, var_n + noise_n**2])
        return np.stack([-reach_Kn, reach_Kn], axis=1)
    refits_Sn = law.value(np.array(fit.bootstrap.theta), z_In)
    away_Sn = refits_Sn - scaled_n if fit.signed_floor else np.log(refits_Sn / scaled_n)
    away_Sn = away_Sn * fit.widening
    drawn_S = np.random.default_rng(fit.bootstrap.seed).standard_t(fit.df, len(away_Sn))
    ends = (0.5 - level / 2, 0.5 + level / 2)
    samples = (away_Sn, away_Sn + drawn_S[:, None] * noise_n)
    return np.nan_to_num([np.quantile(sample_Sn, ends, axis=0) for sample_Sn in samples])
