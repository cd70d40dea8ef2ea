"""Runs that lie far from the rest, and what a forecast says without them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array
from isoloss.plans.forecast.kriging import Kriged
from isoloss.plans.forecast.origins import (
    ErrorRate,
    distance,
    error_rate,
    kriged_laws,
    kriged_mean,
    shares,
)
from isoloss.plans.forecast.runs import LogRuns, log_columns
from isoloss.plans.outlying import FEWEST, MOST_OFF, OFF
from isoloss.sources.table import row_words
from isoloss.stats import robust_sd

_AT_ONCE = 5_000  # runs, for memory


@dataclass(frozen=True)
class ForecastOutliers:
    """``rows``: their numbers in the table, or how many there are; ``laws`` and ``rate`` of the ``rest``."""

    rows: tuple[int, ...] | int
    rest: LogRuns
    laws: tuple[Kriged, ...]
    rate: ErrorRate

    def words(self, at_Iq: Array, loss_q: Array, level: float) -> str:
        """What a forecast of new runs is without them; of several by how much it changes at most."""
        count = self.rows if isinstance(self.rows, int) else len(self.rows)
        what = text.plural(self.rows, "run") if isinstance(self.rows, int) else row_words(self.rows)
        kriged = kriged_mean(self.laws, at_Iq)
        reach_q = self.rate.reach(kriged.sd_q, distance(self.rest, at_Iq), level)
        without_q = np.exp(kriged.mean_q + self.rest.middle_loss)
        says = f"losses change by up to {text.percent(np.abs(without_q / loss_q - 1).max())}"
        if len(without_q) == 1:
            ends = without_q * np.exp(np.array([0.0, -1.0, 1.0]) * reach_q)
            loss, low, high = (f"{each:{'.4f' if each >= 0.1 else '.4g'}}" for each in ends)
            says = f"the loss is {loss} ({low} to {high})"
        far, them = ("lies", "it") if count == 1 else ("lie", "them")
        return f"{what} {far} far from the rest: without {them} {says}"


def outliers(
    runs: LogRuns, laws: tuple[Kriged, ...], columns: Mapping[str, ArrayLike], rows: Sequence[int] | None
) -> ForecastOutliers | None:
    """The runs more than ``OFF`` standard deviations off their kriged ``laws``; None where there are none.

    ``columns`` are the inputs and losses of the whole table, ``rows`` the numbers of its rows. Kriging
    follows where a law bends, and outliers hardly, since they weigh less.
    """
    away_n = _away(laws, runs.z_In, runs.y_n)
    noise = np.sqrt(shares(laws) @ [law.noise for law in laws])
    far = OFF * max(float(robust_sd(away_n)), float(noise))
    out_n = away_n > far
    if len(out_n) < FEWEST or not out_n.any() or out_n.mean() > MOST_OFF:
        return None
    rest = runs.take(~out_n)
    without = attempt(kriged_laws, rest)
    if isinstance(without, Refusal):
        return None
    logs = log_columns(columns) - np.append(runs.middle_I, runs.middle_loss)[:, None]
    named = _far_rows(laws, logs, far)
    numbers = len(named) if rows is None else tuple(sorted(np.asarray(rows)[named].tolist()))
    return ForecastOutliers(numbers, rest, without, error_rate(rest))


def _away(laws: tuple[Kriged, ...], at_Iq: Array, y_q: Array) -> Array:
    return np.abs(y_q - kriged_mean(laws, at_Iq).mean_q)


def _far_rows(laws: tuple[Kriged, ...], logs: Array, far: float) -> NDArray[np.int64]:
    """Of all rows, used or not, those so far off; ``logs`` of inputs and, last, of losses."""
    starts = range(0, logs.shape[1], _AT_ONCE)
    parts = [logs[:, start : start + _AT_ONCE] for start in starts]
    return np.flatnonzero(np.concatenate([_away(laws, part[:-1], part[-1]) for part in parts]) > far)
