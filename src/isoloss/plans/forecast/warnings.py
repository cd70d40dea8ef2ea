"""Reasons to doubt a forecast: where the table's own record does not reach, and where the laws part."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from isoloss import text
from isoloss.laws import Array
from isoloss.plans.forecast.kriging import Kriged
from isoloss.plans.forecast.origins import ErrorRate, KrigedMean, distance
from isoloss.plans.forecast.outliers import ForecastOutliers
from isoloss.plans.forecast.runs import LogRuns

_FEW_ORIGINS = 2
_NO_LAW = 0.05  # of log losses: runs that a law follows scatter by less
_APART = 2.0  # laws that differ by more than so many standard deviations
_GUESS = 18 * np.log(2)  # nats a token of a guess among 262,144 tokens, the largest vocabulary in use
_USELESS = 2.0  # an interval of a larger factor says nothing of models, whose losses differ by less
_HEARD = 0.05  # a law of a smaller share moves no forecast


class Known(Protocol):
    """What a forecast rests on."""

    @property
    def runs(self) -> LogRuns: ...

    @property
    def laws(self) -> Sequence[Kriged]: ...

    @property
    def rate(self) -> ErrorRate: ...

    @property
    def outliers(self) -> ForecastOutliers | None: ...

    @property
    def loss_unit(self) -> str: ...


def forecast_warnings(
    known: Known, at_Iq: Array, kriged: KrigedMean, reach_q: Array, level: float
) -> list[str]:
    """Of new runs at ``at_Iq``, half-widths ``reach_q`` in logs; of several points the worst is named."""
    sizes = dict(zip(known.runs.names, np.exp(at_Iq + known.runs.middle_I[:, None]), strict=True))
    loss_q = np.exp(kriged.mean_q + known.runs.middle_loss)
    out = _of_the_record(known.rate, distance(known.runs, at_Iq), sizes)
    scatter = min(law.fit.scatter for law in known.laws)
    if scatter > _NO_LAW:
        out.append(f"no law follows the runs: they scatter by {text.percent(scatter)} about the best")
    if known.outliers:
        out.append(known.outliers.words(at_Iq, loss_q, level))
    if rising := known.runs.rising():
        out.append(f"the loss rises with {text.listed(rising)}: is it an accuracy, or are runs unfinished?")
    if together := known.runs.on_one_line:
        out.append(f"{text.listed(together)} rise together: the forecast holds only near their line")
    if known.loss_unit == "nats per token" and (worst := float(loss_q.max())) > _GUESS:
        point = worst_of(sizes, loss_q)
        out.append(f"{text.loss(worst)} nats{point} are more than a guess costs: no model loses so much")
    return out + _of_the_points(kriged, reach_q, sizes)


def _of_the_record(rate: ErrorRate, away_q: Array, sizes: Mapping[str, Array]) -> list[str]:
    """Where hiding the table's own runs does not reach, ``away_q`` outside them in logs."""
    out: list[str] = []
    farthest = float(away_q.max())
    if rate.origins < _FEW_ORIGINS:
        out.append(f"the error rate rests on {text.plural(rate.origins, 'origin')}: the runs are few")
    if not rate.whole:
        out.append("rows of one cluster stood on both sides of every hiding: the error rate is too small")
    if rate.origins and farthest > rate.farthest:
        out.append(
            f"the point{worst_of(sizes, away_q)} lies {text.number(np.exp(farthest), 3)} times outside the "
            f"runs. Hiding runs of this table tested up to {text.number(np.exp(rate.farthest), 3)} times"
        )
    return out


def _of_the_points(kriged: KrigedMean, reach_q: Array, sizes: Mapping[str, Array]) -> list[str]:
    """Where the interval is too wide to say anything, and where the laws part."""
    out: list[str] = []
    if (spans := np.exp(2 * reach_q.max())) > _USELESS:
        out.append(
            f"the interval spans a factor of {text.number(spans, 3)}: the runs hardly tell the loss there"
            f"{worst_of(sizes, reach_q)}"
        )
    heard = kriged.share_b > _HEARD
    apart_q = np.ptp(kriged.mean_bq[heard], axis=0) - _APART * kriged.sd_bq[heard].mean(axis=0)
    if (apart_q > 0).any():
        out.append(f"the laws disagree there{worst_of(sizes, apart_q)} by more than their intervals")
    return out


def sizes_of(inputs: Mapping[str, Array], index: int) -> str:
    """Of one point, such as 'params 7B, tokens 140B'."""
    return ", ".join(f"{name} {text.count(size_q[index])}" for name, size_q in inputs.items())


def worst_of(inputs: Mapping[str, Array], badness_q: Array) -> str:
    """Of several points the worst, ' (params 7B, tokens 140B)'; one alone needs no name."""
    return f" ({sizes_of(inputs, int(np.argmax(badness_q)))})" if len(badness_q) > 1 else ""
