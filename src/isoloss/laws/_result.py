"""What a fit returns: the law, its intervals, and every reason to doubt them."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError, Refusal
from isoloss.face import FitFace
from isoloss.laws._predict import Prediction, log_variance, predict, scale_inputs
from isoloss.laws._scaled import Interval, Units
from isoloss.laws._support import Seeds
from isoloss.laws.forms import Array, Form, form
from isoloss.plain import json_values
from isoloss.stats import check_level


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
    delta: float | None = None
    value: float | None = None


@dataclass(frozen=True)
class Starts:
    tried: int
    agreeing: int


@dataclass(frozen=True)
class FitData:
    """The rows behind a fit, of positive weight, in their own order and units.

    ``rows`` are their numbers in the table, counted from 1, where there is one.
    """

    inputs: dict[str, tuple[float, ...]]
    loss: tuple[float, ...]
    weights: tuple[float, ...]
    cluster: tuple[str, ...] | None
    rows: tuple[int, ...] | None = None

    @property
    def even(self) -> bool:
        """Whether all columns are of one length."""
        columns = (*self.inputs.values(), self.weights, self.cluster, self.rows)
        return all(column is None or len(column) == len(self.loss) for column in columns)


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


@dataclass(frozen=True, kw_only=True)
class Fit(FitFace):
    """A law with data.

    ``intervals[name]`` is (low, high) at ``level``, an end being None where it exceeds every float or where
    a profile does not close, or None as a whole for held parameters and when the data support no interval;
    ``intervals_by`` says how they were made. ``residuals`` are observed minus fitted: losses for the squared
    objective, log losses otherwise; one per point. ``sigma`` is the standard deviation of one run on that
    scale, the law's own error included where ``seeds`` shows one. ``n`` counts rows, ``clusters`` what the
    intervals count, where that is not rows. ``theta`` and ``covariance`` are the coordinates of the
    parameters in ``units`` (see ``isoloss.laws.forms``), zeros standing for held ones. ``gradient`` is the
    largest cosine left between the residuals' pull and a column of the Jacobian. Defaults are those of a law
    that was not fitted here.
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
    tied: tuple[tuple[str, ...], ...] = ()
    n: int
    clusters: int | None = None
    df: int = 0
    starts: Starts = Starts(0, 0)
    gradient: float = 0.0
    condition: float = 0.0
    warnings: tuple[str, ...]
    residuals: tuple[float, ...] = ()
    sigma: float | None = None
    seeds: Seeds | None = None
    theta: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...] | None = None
    units: Units
    ranges: dict[str, tuple[float, float]]
    signed_floor: bool = False
    bootstrap: Bootstrap | None = None
    data: FitData | None = None
    source: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.law}: {self.formula()} ({self.status.value})"

    @property
    def form(self) -> Form:
        """The law's form, its floor free to be negative where the fit allowed that."""
        law = form(self.law)
        return law.with_signed_floor() if self.signed_floor else law

    @property
    def loss_unit(self) -> str:
        """The unit of its losses, as their column was named."""
        return self.source.get("loss_unit", "nats per token")

    @property
    def widening(self) -> float:
        """sqrt(n / df): resampled residuals are too small by the degrees of freedom that the fit used up."""
        return math.sqrt((self.clusters or len(self.residuals)) / max(self.df, 1))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Its warnings, and its status where that is not converged."""
        return self.warnings if self.status is FitStatus.CONVERGED else (*self.warnings, self.status.value)

    def predict(self, *, level: float | None = None, **inputs: ArrayLike) -> Prediction:
        """Loss at new inputs, named as the law names them; arrays broadcast.

        By the law alone, which doubts what lies ten times outside the data: ``isoloss.predict`` goes by the
        error rate of the fit's own runs.

        Raises InputError for missing, unknown, non-finite or non-positive inputs.
        """
        return predict(self, self.level if level is None else check_level(level), inputs)

    def losses(self, theta_Sp: Array, **inputs: ArrayLike) -> Array:
        """Losses of S parameter vectors, shape (S, n), at n inputs."""
        law = self.form
        return self.units.loss * law.value(theta_Sp, scale_inputs(self, law, inputs)[0])

    def log_variance(self, **inputs: ArrayLike) -> Array:
        """Variance of the law's mean log loss at n inputs; zeros where there is no covariance."""
        law = self.form
        return log_variance(self, law, scale_inputs(self, law, inputs)[0])

    def plain_covariance(self) -> Array:
        """Covariance of the plain parameters' coordinates: logarithms, or themselves where they are signed.

        Shape (p, p), by complex steps through the units. Raises Refusal for a fit without covariance.
        """
        if self.covariance is None:
            raise Refusal("the fit has no covariance", mend="; ".join(self.warnings) or self.reason)
        law, loss = self.form, float(np.log(self.units.loss))
        log_scale_I = np.log([self.units.inputs[name] for name in law.inputs])
        slopes = law.slopes(np.array(self.theta), log_scale_I, loss)
        return slopes @ np.array(self.covariance) @ slopes.T

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
        shown: dict[str, str] = {}
        for digits in range(2, 18):
            shown = {name: _spell(value, digits) for name, value in self.params.items()}
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
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return json_values(fields | {"status": self.status.name, "allocation": self.allocation()})

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Fit":
        """Raises InputError if ``data`` is not what ``to_json`` wrote."""
        from isoloss.laws._read import read  # loads what checks types, of which a new fit has no need

        return read(data)


def _spell(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:#.{digits}g}".partition("e")
    return mantissa.rstrip(".") + (f"e{int(exponent)}" if exponent else "")
