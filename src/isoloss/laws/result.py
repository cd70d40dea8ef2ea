"""What a fit returns: the law, its intervals, and every reason to doubt them."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from isoloss.errors import InputError
from isoloss.laws.forms import Array, Form, form

Interval = tuple[float | None, float | None]

FAR = 10.0  # an extrapolation beyond this factor is warned about


class FitStatus(Enum):
    CONVERGED = "converged: the gradient vanishes and the best starts agree"
    STARTS_DISAGREE = "not trusted: only one start reached the best optimum"
    CURVE_ONLY = "a curve through the data: they do not determine its parameters"
    GRADIENT_REMAINS = "not converged: the gradient does not vanish at the best point found"


@dataclass(frozen=True)
class Objective:
    """What was summed and its value: squared residuals, or Huber's function with ``delta``."""

    name: str
    delta: float | None
    value: float


@dataclass(frozen=True)
class Starts:
    tried: int
    agreeing: int


@dataclass(frozen=True)
class Units:
    """The middle of the data: inputs and losses were divided by these before the fit."""

    inputs: dict[str, float]
    loss: float


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


@dataclass(frozen=True)
class Fit:
    """A law with data.

    ``intervals[name]`` is (low, high) at ``level``, an end being None where it exceeds every float, or None
    as a whole when the data support no interval. ``residuals`` are observed minus fitted: losses for the
    squared objective, log losses otherwise; one per row, or per cluster. ``sigma`` is the standard deviation
    of one run on that scale. ``n`` counts rows, ``clusters`` what the intervals count, if given.
    ``theta`` and ``covariance`` are the logarithms of the parameters in ``units``.
    """

    law: str
    status: FitStatus
    reason: str
    params: dict[str, float]
    standard_errors: dict[str, float | None]
    intervals: dict[str, Interval | None]
    level: float
    objective: Objective
    n: int
    clusters: int | None
    df: int
    starts: Starts
    condition: float
    warnings: tuple[str, ...]
    residuals: tuple[float, ...]
    sigma: float | None
    theta: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...] | None
    units: Units
    ranges: dict[str, tuple[float, float]]
    source: dict[str, Any]

    def predict(self, *, level: float | None = None, **inputs: ArrayLike) -> Prediction:
        """Loss at new inputs, named as the law names them; arrays broadcast.

        Raises InputError for missing, unknown, non-finite or non-positive inputs.
        """
        return _predict(self, self.level if level is None else check_level(level), inputs)

    def losses(self, theta_Sp: Array, **inputs: ArrayLike) -> Array:
        """Losses of S parameter vectors, shape (S, n), at n inputs."""
        law = form(self.law)
        return self.units.loss * law.value(theta_Sp, _scaled(self, law, inputs)[0])

    def log_variance(self, **inputs: ArrayLike) -> Array:
        """Variance of the law's mean log loss at n inputs; zeros where there is no covariance."""
        law = form(self.law)
        return _log_variance(self, law, _scaled(self, law, inputs)[0])

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        """``count`` vectors from the multivariate t around theta, shape (count, p)."""
        if self.covariance is None:
            raise InputError(
                "this fit has no covariance to draw from", where=self.law, mend="; ".join(self.warnings)
            )
        values, vectors = np.linalg.eigh(np.array(self.covariance))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal = rng.standard_normal((count, len(self.theta))) @ root.T
        return np.array(self.theta) + normal / np.sqrt(rng.chisquare(self.df, (count, 1)) / self.df)

    def formula(self) -> str:
        """The law with its numbers, with just enough digits to predict within 0.05% over the data."""
        law = form(self.law)
        x = {
            name: np.geomspace(low, high, 33) if len(law.inputs) == 1 else np.array([low, high])
            for name, (low, high) in self.ranges.items()
        }
        grid = dict(zip(x, (axis.ravel() for axis in np.meshgrid(*x.values())), strict=True))
        exact = law.loss(self.params, grid)
        for digits in range(2, 18):
            shown = {name: _written(value, digits) for name, value in self.params.items()}
            rounded = law.loss({name: float(text) for name, text in shown.items()}, grid)
            if np.max(np.abs(rounded / exact - 1)) < 5e-4:
                break
        return law.text.format(**shown)

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON; ``Fit.from_json`` gives the same fit back."""
        out = dataclasses.asdict(self)
        out["status"] = self.status.name
        out["allocation"] = None  # no law here splits a compute budget between parameters and tokens
        return _lists(out)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Fit":
        """Raises InputError if ``data`` is not what ``to_json`` wrote."""
        try:
            return _from_json(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"is not a fit ({error!r})", mend="write it with Fit.to_json") from None


def check_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}", mend="give a share between 0 and 1, such as 0.9")
    return float(level)


def quantile(level: float, df: int) -> float:
    """Half-width of a two-sided t interval in standard errors."""
    return float(stdtrit(df, 0.5 + level / 2))


def _written(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:#.{digits}g}".partition("e")
    return mantissa.rstrip(".") + (f"e{int(exponent)}" if exponent else "")


def _scaled(fit: Fit, law: Form, inputs: Mapping[str, ArrayLike]) -> tuple[Array, tuple[int, ...]]:
    """Log inputs in units of the fit, shape (I, n), and the shape of the broadcast inputs."""
    if set(inputs) != set(law.inputs):
        raise InputError(
            f"the law takes {', '.join(law.inputs)}, not {', '.join(sorted(inputs)) or 'nothing'}",
            where=law.name,
            mend="name each input once",
        )
    try:
        x = np.broadcast_arrays(*(np.asarray(inputs[name], dtype=np.float64) for name in law.inputs))
    except (TypeError, ValueError) as error:
        raise InputError(f"inputs are not numbers of one shape ({error})", where=law.name) from None
    for name, values in zip(law.inputs, x, strict=True):
        if not np.all(np.isfinite(values) & (values > 0)):
            raise InputError(f"{name} holds a value that is not positive and finite", where=law.name)
    scale = [np.log(fit.units.inputs[name]) for name in law.inputs]
    return np.stack([np.log(a.ravel()) - s for a, s in zip(x, scale, strict=True)]), x[0].shape


def _log_variance(fit: Fit, law: Form, z_In: Array) -> Array:
    if fit.covariance is None:
        return np.zeros(z_In.shape[1])
    theta = np.array(fit.theta)
    slope_np = law.gradient(theta, z_In) / law.value(theta, z_In)[:, None]
    return np.einsum("np,pq,nq->n", slope_np, np.array(fit.covariance), slope_np)


def _predict(fit: Fit, level: float, inputs: Mapping[str, ArrayLike]) -> Prediction:
    law = form(fit.law)
    z_In, shape = _scaled(fit, law, inputs)
    theta = np.array(fit.theta)
    scaled_n = law.value(theta, z_In)

    def shaped(values_n: Array) -> float | Array:
        return values_n.reshape(shape) if shape else float(values_n[0])

    band = interval = None
    if fit.covariance is not None:
        var_n = _log_variance(fit, law, z_In)
        # Residuals of the squared objective are losses: at this point they are a share sigma / loss of it.
        noise_n = fit.sigma / (fit.units.loss * scaled_n) if fit.objective.name == "squared" else fit.sigma
        t = quantile(level, fit.df)
        ends = []
        for width_n in (t * np.sqrt(var_n), t * np.sqrt(var_n + noise_n**2)):
            width_n = np.minimum(width_n, 600.0)
            ends.append(tuple(shaped(fit.units.loss * scaled_n * np.exp(s * width_n)) for s in (-1, 1)))
        band, interval = ends
    outside, warnings = {}, list(fit.warnings)
    for name, z_n in zip(law.inputs, z_In, strict=True):
        low, high = fit.ranges[name]
        x_n = np.exp(z_n) * fit.units.inputs[name]
        # The rounding of log and exp must not make an end of the data an extrapolation.
        ratio_n = np.maximum(np.maximum(x_n / high, low / x_n), 1.0)
        ratio_n = np.where(ratio_n < 1 + 1e-12, 1.0, ratio_n)
        outside[name] = shaped(ratio_n)
        if (worst := float(ratio_n.max(initial=1.0))) > FAR:
            warnings.append(
                f"{name} lies a factor {worst:.3g} outside the data: no interval covers a wrong law"
            )
    if fit.status is not FitStatus.CONVERGED:
        warnings.append(fit.status.value)
    return Prediction(shaped(fit.units.loss * scaled_n), interval, band, level, outside, tuple(warnings))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value


def _pairs(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if pair is None else (pair[0], pair[1]) for name, pair in data.items()}


def _from_json(data: Mapping[str, Any]) -> Fit:
    names = {field.name for field in dataclasses.fields(Fit)}
    if missing := names - set(data):
        raise KeyError(f"without {', '.join(sorted(missing))}")
    covariance = data["covariance"]
    fit = Fit(
        **{name: data[name] for name in names}
        | {
            "status": FitStatus[data["status"]],
            "intervals": _pairs(data["intervals"]),
            "objective": Objective(**data["objective"]),
            "starts": Starts(**data["starts"]),
            "warnings": tuple(data["warnings"]),
            "residuals": tuple(data["residuals"]),
            "theta": tuple(data["theta"]),
            "covariance": None if covariance is None else tuple(tuple(row) for row in covariance),
            "units": Units(**data["units"]),
            "ranges": _pairs(data["ranges"]),
        }
    )
    size = len(form(fit.law).parameters)
    numbers = [*fit.theta, *fit.params.values(), fit.units.loss, *fit.units.inputs.values()]
    square = fit.covariance is None or [len(row) for row in fit.covariance] == [size] * size
    if len(fit.theta) != size or not square or not all(math.isfinite(number) for number in numbers):
        raise ValueError("theta, params, units or covariance do not match the law")
    return fit
