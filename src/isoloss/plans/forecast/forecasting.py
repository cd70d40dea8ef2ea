"""A forecast: the loss of runs that nobody has made, by several laws and the table's own record of misses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.errors import InputError
from isoloss.face import Shown
from isoloss.laws import Array, FitData, Prediction
from isoloss.plain import json_values
from isoloss.plans.checks import MOST
from isoloss.plans.forecast.kriging import Kriged
from isoloss.plans.forecast.origins import (
    ErrorRate,
    distance,
    error_rate,
    kriged_laws,
    kriged_mean,
    shares,
)
from isoloss.plans.forecast.outliers import ForecastOutliers, outliers
from isoloss.plans.forecast.runs import LogRuns, log_columns, log_runs, no_sizes
from isoloss.plans.forecast.surface import forecast_surface
from isoloss.plans.forecast.warnings import forecast_warnings, sizes_of
from isoloss.plans.loss_surface import LossSurface
from isoloss.stats import check_level

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class LawForecast:
    """What one law with its kriged residuals says: ``loss`` (n,), ``interval`` (n, 2) without the error rate.

    ``share``: its part of the forecast.
    """

    loss: Array
    interval: Array
    status: str
    share: float


@dataclass(frozen=True)
class Forecast(Shown):
    """Losses of new runs at ``inputs``, in ``loss_unit``: ``loss`` (n,), ``interval`` (n, 2) at ``level``.

    ``data`` are the runs behind it, from which another can be made.

    ``error_rate`` is by how much of the loss, for each factor e outside the runs, the table's own runs were
    missed beyond the laws' interval when they were hidden, ``origins`` times; ``error_outside`` (n,) is what
    that adds to half of the interval. ``width_factor`` narrows the laws' interval where hidden runs lay well
    inside. ``extrapolation`` holds the factor by which each input, and the FLOPs, lie outside the runs, shape
    (n,), 1 inside.
    """

    inputs: dict[str, Array]
    loss: Array
    interval: Array
    level: float
    laws: dict[str, LawForecast]
    error_rate: float
    error_outside: Array
    width_factor: float
    origins: int
    extrapolation: dict[str, Array]
    warnings: tuple[str, ...]
    data: FitData
    source: dict[str, Any] = field(default_factory=dict)

    @property
    def loss_unit(self) -> str:
        return unit_of(self.source)

    @property
    def outside(self) -> Array:
        """The factor by which each point lies outside the runs, in its farthest size; 1 inside."""
        return np.max(list(self.extrapolation.values()), axis=0)

    @property
    def rate_from(self) -> str:
        """Where the error rate comes from, in words."""
        if not self.origins:
            return "assumed: none can be hidden"
        return f"from hiding runs of this table {text.plural(self.origins, 'time')}"

    def sizes(self, index: int) -> str:
        """Of one point, such as 'params 7B, tokens 140B'."""
        return sizes_of(self.inputs, index)

    def disagrees(self, law: Prediction) -> NDArray[np.bool_]:
        """Where a law at the same points, or this, lies outside the other's interval; False without one."""
        if law.interval is None:
            return np.zeros(len(self.loss), dtype=bool)
        low, high = (np.ravel(end) for end in law.interval)
        law_loss, (least, most) = np.ravel(law.loss), self.interval.T
        return (law_loss < least) | (law_loss > most) | (self.loss < low) | (self.loss > high)

    def table(self) -> "pl.DataFrame":
        """One row a point: its inputs, loss, low and high."""
        import polars as pl

        low, high = self.interval.T
        return pl.DataFrame({**self.inputs, "loss": self.loss, "low": low, "high": high})

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON: numbers for one point, lists for several."""

        def plain(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return (value[0] if len(value) == 1 else value).tolist()
            if isinstance(value, dict):
                return {name: plain(each) for name, each in value.items()}
            return plain(vars(value)) if isinstance(value, LawForecast) else json_values(value)

        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Forecaster:
    """Runs, their kriged laws, and the record of how far hidden ones were missed: asked of any new runs."""

    runs: LogRuns
    laws: tuple[Kriged, ...]
    rate: ErrorRate
    source: Mapping[str, Any]
    doubts: tuple[str, ...]
    outliers: ForecastOutliers | None = None

    @property
    def law(self) -> str:
        return "forecast"

    @property
    def loss_unit(self) -> str:
        return unit_of(self.source)

    @property
    def data(self) -> FitData:
        return self.runs.data()

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        return {name: (min(column), max(column)) for name, column in self.data.inputs.items()}

    def check_inputs(self, inputs: Mapping[str, ArrayLike]) -> Array:
        """Logs (I, q) of new sizes, about the middles of the runs. Raises InputError for what cannot be."""
        runs = self.runs
        if set(inputs) != set(runs.names):
            raise InputError("runs and points differ in inputs", mend=f"give {text.listed(runs.names)}")
        log_at_Iq = log_columns({name: inputs[name] for name in runs.names})
        if not log_at_Iq.size:
            raise no_sizes()
        if np.abs(log_at_Iq).max(initial=0.0) > np.log(MOST):
            raise InputError(f"a size lies beyond {text.power(MOST)}", mend="give raw counts, such as 7e9")
        return log_at_Iq - runs.middle_I[:, None]

    def covariance(self, inputs: Mapping[str, ArrayLike]) -> tuple[Array, float]:
        """Of the log losses at ``inputs``, the spread of the laws included, (q, q); the variance of a run."""
        at_Iq = self.check_inputs(inputs)
        mean_bq, cov_bqq = map(np.array, zip(*(law.covariance(at_Iq) for law in self.laws), strict=True))
        share_b = shares(self.laws)
        away_bq = mean_bq - share_b @ mean_bq
        cov_qq = np.einsum("b,bqr->qr", share_b, cov_bqq + away_bq[:, :, None] * away_bq[:, None, :])
        return cov_qq, float(share_b @ [law.noise for law in self.laws])

    def point(self, target: Mapping[str, ArrayLike]) -> "ForecastPoint":
        """One new run, to be asked what others would tell of it."""
        at_Iq = self.check_inputs(target)
        cov_qq, noise = self.covariance(target)
        mean_q = kriged_mean(self.laws, at_Iq).mean_q + self.runs.middle_loss
        return ForecastPoint(self, at_Iq, float(np.exp(mean_q[0])), float(np.ravel(cov_qq)[0]), noise)

    def surface(self, draws: int, seed: int) -> LossSurface:
        """The loss over N and D, and ``draws`` of it. Raises InputError for runs of other inputs."""
        if self.runs.names != ("params", "tokens"):
            raise InputError("a plan needs runs of params and tokens", mend="give a table of both")
        return forecast_surface(self.runs, self.laws, draws, seed)

    def at(self, inputs: Mapping[str, ArrayLike], level: float = 0.9) -> Forecast:
        """The losses of new runs at ``inputs``. Raises InputError for what is not positive."""
        level, runs, rate = check_level(level), self.runs, self.rate
        at_Iq = self.check_inputs(inputs)
        kriged = kriged_mean(self.laws, at_Iq)
        away_q = distance(runs, at_Iq)
        reach_q = rate.reach(kriged.sd_q, away_q, level)
        laws = {
            law.fit.base.name: LawForecast(
                np.exp(mean_q + runs.middle_loss),
                _ends(mean_q + runs.middle_loss, rate.law_reach(sd_q, level)),
                "converged" if law.fit.converged else "not converged",
                float(share),
            )
            for law, mean_q, sd_q, share in zip(
                self.laws, kriged.mean_bq, kriged.sd_bq, kriged.share_b, strict=True
            )
        }
        return Forecast(
            inputs={name: np.atleast_1d(np.asarray(inputs[name], dtype=np.float64)) for name in runs.names},
            loss=np.exp(kriged.mean_q + runs.middle_loss),
            interval=_ends(kriged.mean_q + runs.middle_loss, reach_q),
            level=level,
            laws=laws,
            error_rate=rate.rate,
            error_outside=rate.outside(away_q, level),
            width_factor=rate.width_factor,
            origins=rate.origins,
            extrapolation=dict(zip(runs.outside_names, np.exp(runs.outside(at_Iq)), strict=True)),
            warnings=(*forecast_warnings(self, at_Iq, kriged, reach_q, level), *self.doubts),
            data=runs.data(),
            source=dict(self.source),
        )


@dataclass(frozen=True)
class ForecastPoint:
    """One new run: its loss, the variance of its mean and that of its own noise, of log losses."""

    known: Forecaster
    at_Iq: Array
    loss: float
    variance: float
    noise: float

    def half_width(self, share_left: float, more: Mapping[str, Array], level: float) -> float:
        """Of the interval, in nats, once runs at ``more`` leave a share of the variance of the mean."""
        runs = self.known.runs
        if len(next(iter(more.values()))):
            runs = replace(runs, z_In=np.concatenate([runs.z_In, self.known.check_inputs(more)], axis=1))
        sd_q = np.sqrt(np.array([self.variance * max(share_left, 0.0) + self.noise]))
        reach_q = self.known.rate.reach(sd_q, distance(runs, self.at_Iq), level)
        return float(self.loss * np.sinh(reach_q[0]))


def forecaster(
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    source: Mapping[str, Any] | None = None,
    doubts: tuple[str, ...] = (),
    rows: Sequence[int] | None = None,
) -> Forecaster:
    """What runs at ``inputs`` with ``loss`` say of others; no law to choose.

    ``inputs`` are sizes that the loss falls in, such as params and tokens, or one of them. Four laws, each
    with its kriged residuals, are averaged, or two of one size: mu and sd of the log loss. Hiding the table's
    largest runs gives a factor f <= 1 and a rate: exp(mu -+ (f z sd + rate max(h, 1/4)) t(level) / t(0.9)),
    h the distance outside the runs in logs, z = 1.645, t of 3 degrees of freedom. ``cluster`` names rows
    that share noise, such as the checkpoints of one run; ``rows`` are their numbers in a table, by which
    outliers are named.

    Raises InputError for what is not positive, Refusal for fewer than eight designs or a size without range.
    """
    runs, source = log_runs(inputs, loss, cluster), dict(source or {})
    source["given"] = max(source.get("given", 0), runs.given)
    if (given := source["given"]) > (used := len(runs.y_n)):
        note = f"{used} of {given:,} runs were used: the ends of each size and a random part"
        source["notes"] = list(dict.fromkeys([*source.get("notes", ()), note]))
    laws = kriged_laws(runs)
    far = outliers(runs, laws, {**inputs, "loss": loss}, rows)
    return Forecaster(runs, laws, error_rate(runs), source, doubts, far)


def forecast(
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    at: Mapping[str, ArrayLike],
    *,
    level: float = 0.9,
    cluster: ArrayLike | None = None,
) -> Forecast:
    """The losses of new runs ``at`` inputs, from runs at ``inputs``: see ``forecaster`` and its ``at``."""
    check_level(level)
    return forecaster(inputs, loss, cluster=cluster).at(at, level)


def unit_of(source: Mapping[str, Any]) -> str:
    """Of the losses of a table, as their column was named."""
    return source.get("loss_unit", "nats per token")


def _ends(mean_q: Array, reach_q: Array) -> Array:
    return np.exp(np.stack([mean_q - reach_q, mean_q + reach_q], axis=1))
