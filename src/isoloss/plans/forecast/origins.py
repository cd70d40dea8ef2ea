"""The mean of kriged laws, and what hiding the table's own largest runs says about its interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoloss.distributions import t_quantile
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array
from isoloss.plans.forecast.bases import bases_of, fit_base
from isoloss.plans.forecast.kriging import Kriged, krige
from isoloss.plans.forecast.runs import LogRuns, with_product

_HIDDEN = (0.15, 0.4)  # of the log range of a size, from its top
_ON_THE_EDGE = 0.01  # of logs: rounded counts of one budget lie on one side
_LEVEL, _NORMAL_REACH = 0.9, 1.645  # what origins are read at: their 90 % quantile, in normal sd
TAILS = 3  # degrees of freedom: misses of hidden runs have tails as those of t, from few origins
_LEAST_RATE, _UNKNOWN_RATE = 0.001, 0.01
LEAST_FACTOR, _ENOUGH_ORIGINS = 0.4, 3
_MOST_REACH = 300.0  # in logs: a wider interval says as little, and its ends may be no floats
_LEAST_REACH = 0.25  # inside the runs the error rate counts as a quarter of a natural logarithm outside


@dataclass(frozen=True)
class KrigedMean:
    """``mean_q`` and ``sd_q`` of the log loss of a new run; by law ``mean_bq``, ``sd_bq`` and ``share_b``."""

    mean_bq: Array
    sd_bq: Array
    share_b: Array

    @property
    def mean_q(self) -> Array:
        return self.share_b @ self.mean_bq

    @property
    def sd_q(self) -> Array:
        return np.sqrt(self.share_b @ (self.sd_bq**2 + (self.mean_bq - self.mean_q) ** 2))


@dataclass(frozen=True)
class Miss:
    """Of runs hidden at one origin: |error| and sd of log losses, and how far outside the rest, in logs."""

    error_q: Array
    sd_q: Array
    away_q: Array


@dataclass(frozen=True)
class ErrorRate:
    """``rate``: log loss by which hidden runs were missed beyond the interval, for each factor e outside.

    ``width_factor`` of the laws' own interval, below 1 where hidden runs lay well inside it. ``misses``: one
    an origin; ``whole``: no rows of one label stood on both sides; ``tails``: degrees of freedom of t.
    """

    rate: float
    width_factor: float
    misses: tuple[Miss, ...] = ()
    whole: bool = True
    tails: int = TAILS

    @property
    def origins(self) -> int:
        """How often runs were hidden."""
        return len(self.misses)

    @property
    def farthest(self) -> float:
        """In logs, how far hidden runs lay outside the rest."""
        return max((float(miss.away_q.max()) for miss in self.misses), default=0.0)

    def law_reach(self, sd: Array, level: float) -> Array:
        """Half of the laws' interval at ``level``, in logs."""
        return np.minimum(self.width_factor * _NORMAL_REACH * sd * self._quantiles(level), _MOST_REACH)

    def reach(self, sd_q: Array, away_q: Array, level: float) -> Array:
        """Half of the whole interval, ``away_q`` outside the runs: (f z sd + rate away) t(level) / t(0.9)."""
        wide_q = self.width_factor * _NORMAL_REACH * sd_q + self.rate * np.maximum(away_q, _LEAST_REACH)
        return np.minimum(wide_q * self._quantiles(level), _MOST_REACH)

    def outside(self, away_q: Array, level: float) -> Array:
        """What the error rate alone adds to that, 0 inside the runs."""
        return self.rate * away_q * self._quantiles(level)

    def _quantiles(self, level: float) -> float:
        return t_quantile(level, self.tails) / t_quantile(_LEVEL, self.tails)


def kriged_laws(runs: LogRuns) -> tuple[Kriged, ...]:
    """The laws of so many inputs, each with its residuals. Raises Refusal for runs that allow no forecast."""
    runs.check()
    fits = (fit_base(base, runs.z_In, runs.y_n) for base in bases_of(runs.names))
    return tuple(krige(fit, runs.z_In, runs.y_n, runs.label_n) for fit in fits)


def kriged_mean(laws: tuple[Kriged, ...], at_Iq: Array) -> KrigedMean:
    moments = [law.moments(at_Iq) for law in laws]
    mean_bq, variance_bq = (np.array(part) for part in zip(*moments, strict=True))
    return KrigedMean(mean_bq, np.sqrt(variance_bq), shares(laws))


def shares(laws: tuple[Kriged, ...]) -> Array:
    """Of the laws of one size, by the root of their likelihood; of several sizes, equal.

    The laws of one size part by a floor, which runs may plainly show. Those of several are nearly one curve,
    and there shares by likelihood predict worse. The root, as rows are not quite independent.
    """
    likely = [law.log_likelihood for law in laws if law.log_likelihood is not None]
    if len(likely) < len(laws):
        return np.full(len(laws), 1 / len(laws))
    log_b = np.array(likely) / 2
    share_b = np.exp(log_b - log_b.max())
    return share_b / share_b.sum()


def error_rate(runs: LogRuns) -> ErrorRate:
    """By hiding the top of the FLOPs and of each input in turn, and predicting it from the rest.

    Rows of one label share noise: what is left has none of the hidden ones', where that leaves anything.

    With e the errors and sd, h of the hidden runs, f = mean over origins of the 90 % quantile of |e| / z sd,
    at most 1, and the rate is the mean of the 90 % quantiles of (|e| - f z sd) / h, where positive.
    """
    every = list(_origins(runs))
    if misses := _misses(runs, every, whole=True):
        return rate_of(misses)
    return rate_of(_misses(runs, every, whole=False), whole=False)


def rate_of(
    misses: Sequence[Miss],
    *,
    whole: bool = True,
    least_factor: float = LEAST_FACTOR,
    tails: int = TAILS,
) -> ErrorRate:
    """What origins say of an interval; the constants may be given to see what others would have done."""
    if not misses:
        return ErrorRate(_UNKNOWN_RATE, 1.0, tails=tails)
    factor = 1.0
    if len(misses) >= _ENOUGH_ORIGINS:
        factor = float(np.mean([_top(miss.error_q / (_NORMAL_REACH * miss.sd_q)) for miss in misses]))
        factor = min(max(factor, least_factor), 1.0)
    beyond = [
        _top(
            np.maximum(miss.error_q - factor * _NORMAL_REACH * miss.sd_q, 0.0)
            / np.maximum(miss.away_q, _LEAST_REACH)
        )
        for miss in misses
    ]
    rate = max(float(np.mean(beyond)), _LEAST_RATE)
    return ErrorRate(rate, factor, tuple(misses), whole, tails)


def _misses(runs: LogRuns, every: Sequence[NDArray[np.bool_]], *, whole: bool) -> list[Miss]:
    """Of each origin whose rest allows a forecast; ``whole``: all rows of a label go with a hidden one."""
    if not whole and len(np.unique(runs.label_n)) == len(runs.label_n):
        return []
    out: list[Miss] = []
    for hidden_n in every:
        gone_n = np.isin(runs.label_n, runs.label_n[hidden_n]) if whole else hidden_n
        if (miss := _hidden(runs, hidden_n, gone_n)) is not None:
            out.append(miss)
    return out


def _hidden(runs: LogRuns, hidden_n: NDArray[np.bool_], gone_n: NDArray[np.bool_]) -> Miss | None:
    """None where the rest allows no forecast."""
    if gone_n.all():
        return None
    seen, at_Iq = runs.take(~gone_n), runs.z_In[:, hidden_n]
    laws = attempt(kriged_laws, seen)
    if isinstance(laws, Refusal):
        return None
    kriged = kriged_mean(laws, at_Iq)
    return Miss(np.abs(runs.y_n[hidden_n] - kriged.mean_q), kriged.sd_q, distance(seen, at_Iq))


def _top(values_q: Array) -> float:
    return float(np.quantile(values_q, _LEVEL))


def distance(runs: LogRuns, at_Iq: Array) -> Array:
    """How far outside the runs in the farthest size, in logs; 0 inside."""
    return runs.outside(at_Iq).max(axis=0)


def _origins(runs: LogRuns) -> Iterator[NDArray[np.bool_]]:
    """Which rows to hide: each set once."""
    seen: set[bytes] = set()
    for size_n in with_product(runs.z_In):
        for share in _HIDDEN:
            hidden_n = size_n > size_n.max() - share * np.ptp(size_n) + _ON_THE_EDGE
            if hidden_n.any() and hidden_n.tobytes() not in seen:  # one budget has no top
                seen.add(hidden_n.tobytes())
                yield hidden_n
