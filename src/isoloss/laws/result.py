"""What a fit returns: the law, its intervals, and every reason to doubt them."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from isoloss.errors import InputError
from isoloss.laws.forms import Array, Form, form
from isoloss.laws.seeds import Seeds

if TYPE_CHECKING:
    from isoloss.plans.plan import Plan

Interval = tuple[float | None, float | None]

FAR = 10.0  # an extrapolation beyond this factor is warned about


class FitStatus(Enum):
    CONVERGED = "converged: the gradient vanishes and the best starts agree"
    STARTS_DISAGREE = "not trusted: only one start reached the best optimum"
    CURVE_ONLY = "a curve through the data: they do not determine its parameters"
    GRADIENT_REMAINS = "not converged: the gradient does not vanish at the best point found"
    PUBLISHED = "published: the constants are the paper's, nothing was fitted here"


@dataclass(frozen=True)
class Objective:
    """What was summed and its value: squared residuals, or Huber's function with ``delta``."""

    name: str
    delta: float | None
    value: float | None


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
class Data:
    """The rows behind a fit, of positive weight, in their own order and units."""

    inputs: dict[str, tuple[float, ...]]
    loss: tuple[float, ...]
    weights: tuple[float, ...]
    cluster: tuple[str, ...] | None


@dataclass(frozen=True)
class Bootstrap:
    """Refits of resampled data. ``theta`` holds those that worked, ``failed`` counts the rest.

    ``unit`` is what was resampled. ``checked`` of them were solved again from a cold start and ``agreeing``
    came to the same objective.
    """

    count: int
    unit: str
    seed: int
    failed: int
    checked: int
    agreeing: int
    theta: tuple[tuple[float, ...], ...]


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

    ``intervals[name]`` is (low, high) at ``level``, an end being None where it exceeds every float or where
    a profile does not close, or None as a whole for held parameters and when the data support no interval;
    ``intervals_by`` says how they were made. ``residuals`` are observed minus fitted: losses for the squared
    objective, log losses otherwise; one per point. ``sigma`` is the standard deviation of one run on that
    scale, the law's own error included where ``seeds`` shows one. ``n`` counts rows, ``clusters`` what the
    intervals count, where that is not rows. ``theta`` and ``covariance`` are the coordinates of the
    parameters in ``units`` (see ``isoloss.laws.forms``), zeros standing for held ones. ``gradient`` is the
    largest cosine left between the residuals' pull and a column of the Jacobian.
    """

    law: str
    status: FitStatus
    reason: str
    params: dict[str, float]
    standard_errors: dict[str, float | None]
    intervals: dict[str, Interval | None]
    level: float
    intervals_by: str
    objective: Objective
    fixed: dict[str, float]
    tied: tuple[tuple[str, ...], ...]
    n: int
    clusters: int | None
    df: int
    starts: Starts
    gradient: float
    condition: float
    warnings: tuple[str, ...]
    residuals: tuple[float, ...]
    sigma: float | None
    seeds: Seeds | None
    theta: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...] | None
    units: Units
    ranges: dict[str, tuple[float, float]]
    signed_floor: bool
    bootstrap: Bootstrap | None
    data: Data | None
    source: dict[str, Any]

    @property
    def form(self) -> Form:
        """The law's form, its floor free to be negative where the fit allowed that."""
        law = form(self.law)
        return law.with_signed_floor() if self.signed_floor and law.with_signed_floor else law

    @property
    def widening(self) -> float:
        """sqrt(n / df): resampled residuals are too small by the degrees of freedom that the fit used up."""
        return math.sqrt((self.clusters or len(self.residuals)) / max(self.df, 1))

    def predict(self, *, level: float | None = None, **inputs: ArrayLike) -> Prediction:
        """Loss at new inputs, named as the law names them; arrays broadcast.

        Raises InputError for missing, unknown, non-finite or non-positive inputs.
        """
        return _predict(self, self.level if level is None else check_level(level), inputs)

    def plan(self, **question: Any) -> "Plan":
        """Which model for how many tokens: ``isoloss.plans.plan`` of this fit, with its options."""
        from isoloss.plans.plan import plan

        return plan(self, **question)

    def plot(self, *others: "Fit") -> Any:
        """The fit with its data, an altair chart; ``others`` are laws to draw beside it."""
        from isoloss.figures.fit import plot

        return plot(self, others)

    def losses(self, theta_Sp: Array, **inputs: ArrayLike) -> Array:
        """Losses of S parameter vectors, shape (S, n), at n inputs."""
        law = self.form
        return self.units.loss * law.value(theta_Sp, _scaled(self, law, inputs)[0])

    def log_variance(self, **inputs: ArrayLike) -> Array:
        """Variance of the law's mean log loss at n inputs; zeros where there is no covariance."""
        law = self.form
        return _log_variance(self, law, _scaled(self, law, inputs)[0])

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        """``count`` vectors, shape (count, p): widened bootstrap refits if there are any, else t draws."""
        if self.bootstrap is not None:
            away = self.widening * (np.array(self.bootstrap.theta) - np.array(self.theta))
            return np.array(self.theta) + away[rng.permutation(len(away))[np.arange(count) % len(away)]]
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
        law = self.form
        if set(self.ranges) != set(law.inputs):  # what the digits must serve is not known
            return law.text.format(**{name: f"{value:.6g}" for name, value in self.params.items()})
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

    def allocation(self) -> dict[str, float] | None:
        """a and b of N_opt ~ C^a, D_opt ~ C^b where C is proportional to N D; None for other laws.

        a = beta / (alpha + beta), Hoffmann et al. 2022, eq. 4; an outer exponent changes nothing.
        """
        if self.law in ("chinchilla", "outer-exponent"):
            alpha, beta = self.params["alpha"], self.params["beta"]
        elif self.law == "kaplan-nd":
            alpha, beta = self.params["aN"] / self.params["aD"], 1.0
        else:
            return None
        return {"a": beta / (alpha + beta), "b": alpha / (alpha + beta)}

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON; ``Fit.from_json`` gives the same fit back."""
        out = dataclasses.asdict(self)
        out["status"] = self.status.name
        out["allocation"] = self.allocation()
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
        if not np.all(np.isfinite(values) & ((values > 0) | ((values == 0) & (name in law.zeros)))):
            raise InputError(f"{name} holds a value that is not positive and finite", where=law.name)
    scale = [np.log(fit.units.inputs[name]) for name in law.inputs]
    with np.errstate(divide="ignore"):
        logs = [np.maximum(np.log(a.ravel()), -700.0) - s for a, s in zip(x, scale, strict=True)]
    return np.stack(logs), x[0].shape


def _log_variance(fit: Fit, law: Form, z_In: Array) -> Array:
    """Of the mean log loss; of the mean loss in units of the fit where losses may be negative."""
    if fit.covariance is None:
        return np.zeros(z_In.shape[1])
    theta = np.array(fit.theta)
    slope_np = law.gradient(theta, z_In)
    if not fit.signed_floor:
        slope_np = slope_np / law.value(theta, z_In)[:, None]
    return np.einsum("np,pq,nq->n", slope_np, np.array(fit.covariance), slope_np)


def _predict(fit: Fit, level: float, inputs: Mapping[str, ArrayLike]) -> Prediction:
    law = fit.form
    z_In, shape = _scaled(fit, law, inputs)
    scaled_n = law.value(np.array(fit.theta), z_In)

    def shaped(values_n: Array) -> float | Array:
        return values_n.reshape(shape) if shape else float(values_n[0])

    band = interval = None
    if fit.covariance is not None:
        noise_n = np.full(z_In.shape[1], fit.sigma if fit.sigma is not None else np.nan)
        if fit.objective.name == "squared":
            noise_n = noise_n / fit.units.loss / (1.0 if fit.signed_floor else scaled_n)
        band_n, interval_n = _reach(fit, law, z_In, scaled_n, noise_n, level)
        band, interval = (
            tuple(shaped(fit.units.loss * _moved(fit, scaled_n, reach)) for reach in reaches)
            for reaches in (band_n, interval_n)
        )
        if fit.sigma is None:
            interval = None
    outside, warnings = {}, list(fit.warnings)
    for name, z_n in zip(law.inputs, z_In, strict=True):
        if name not in fit.ranges:
            continue
        low, high = fit.ranges[name]
        x_n = np.exp(z_n) * fit.units.inputs[name]
        # The rounding of log and exp must not make an end of the data an extrapolation.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio_n = np.maximum(np.maximum(x_n / high, low / x_n), 1.0)
        ratio_n = np.where((ratio_n < 1 + 1e-12) | ~np.isfinite(ratio_n), 1.0, ratio_n)
        outside[name] = shaped(ratio_n)
        if (worst := float(ratio_n.max(initial=1.0))) > FAR:
            warnings.append(
                f"{name} lies a factor {worst:.3g} outside the data: no interval covers a wrong law"
            )
    if fit.status is not FitStatus.CONVERGED:
        warnings.append(fit.status.value)
    return Prediction(shaped(fit.units.loss * scaled_n), interval, band, level, outside, tuple(warnings))


def _moved(fit: Fit, scaled_n: Array, reach_n: Array) -> Array:
    return scaled_n + reach_n if fit.signed_floor else scaled_n * np.exp(np.clip(reach_n, -600.0, 600.0))


def _reach(
    fit: Fit, law: Form, z_In: Array, scaled_n: Array, noise_n: Array, level: float
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Ends of the law's mean and of one new run, as distances from it (of logs): t, or bootstrap refits."""
    if fit.bootstrap is None:
        var_n, t = _log_variance(fit, law, z_In), quantile(level, fit.df)
        mean_n, new_n = t * np.sqrt(var_n), t * np.sqrt(var_n + noise_n**2)
        return (-mean_n, mean_n), (-new_n, new_n)
    refits_Sn = law.value(np.array(fit.bootstrap.theta), z_In)
    away_Sn = refits_Sn - scaled_n if fit.signed_floor else np.log(refits_Sn / scaled_n)
    away_Sn = away_Sn * fit.widening
    drawn_S = np.random.default_rng(fit.bootstrap.seed).standard_t(fit.df, len(away_Sn))
    ends = (0.5 - level / 2, 0.5 + level / 2)
    return tuple(
        tuple(np.nan_to_num(np.quantile(sample, end, axis=0)) for end in ends)
        for sample in (away_Sn, away_Sn + drawn_S[:, None] * noise_n)
    )


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value


def _pairs(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if pair is None else (pair[0], pair[1]) for name, pair in data.items()}


def _bootstrap(data: Mapping[str, Any] | None) -> Bootstrap | None:
    return data and Bootstrap(**{**data, "theta": tuple(tuple(row) for row in data["theta"])})


def _data(data: Mapping[str, Any] | None) -> Data | None:
    return data and Data(
        {name: tuple(column) for name, column in data["inputs"].items()},
        tuple(data["loss"]),
        tuple(data["weights"]),
        None if data["cluster"] is None else tuple(data["cluster"]),
    )


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
            "tied": tuple(tuple(group) for group in data["tied"]),
            "seeds": None if data["seeds"] is None else Seeds(**data["seeds"]),
            "bootstrap": _bootstrap(data["bootstrap"]),
            "data": _data(data["data"]),
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
    if set(fit.params) != set(form(fit.law).parameters) or set(fit.units.inputs) != set(form(fit.law).inputs):
        raise ValueError("params or units do not name those of the law")
    if fit.bootstrap and any(len(row) != size for row in fit.bootstrap.theta):
        raise ValueError("bootstrap refits do not match the law")
    square = fit.covariance is None or [len(row) for row in fit.covariance] == [size] * size
    if len(fit.theta) != size or not square or not all(math.isfinite(number) for number in numbers):
        raise ValueError("theta, params, units or covariance do not match the law")
    return fit
