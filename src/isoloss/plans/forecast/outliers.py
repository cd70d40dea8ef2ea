"""Runs that lie far from the rest, and what a forecast says without them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isoloss import text
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array
from isoloss.plans.forecast.kriging import Kriged
from isoloss.plans.forecast.origins import kriged_laws, kriged_mean
from isoloss.plans.forecast.runs import LogRuns, log_columns
from isoloss.plans.outlying import FEWEST, MOST_OFF, OFF
from isoloss.sources.table import row_words

_SAME = 1e-9  # of logs


@dataclass(frozen=True)
class Outliers:
    """``rows``: their numbers in the table, or how many there are; ``laws``: kriged without them."""

    rows: tuple[int, ...] | int
    laws: tuple[Kriged, ...]

    def words(self, runs: LogRuns, at_Iq: Array, loss_q: Array) -> str:
        """What the loss at new runs is without them; of several by how much it changes at most."""
        count = self.rows if isinstance(self.rows, int) else len(self.rows)
        what = text.plural(self.rows, "run") if isinstance(self.rows, int) else row_words(self.rows)
        without_q = np.exp(kriged_mean(self.laws, at_Iq).mean_q + runs.middle_loss)
        says = f"losses change by up to {text.percent(np.abs(without_q / loss_q - 1).max())}"
        if len(without_q) == 1:
            says = f"the loss is {without_q[0]:{'.4f' if without_q[0] >= 0.1 else '.4g'}}"
        far, them = ("lies", "it") if count == 1 else ("lie", "them")
        return f"{what} {far} far from the rest: without {them} {says}"


def outliers(
    runs: LogRuns, laws: tuple[Kriged, ...], columns: Mapping[str, ArrayLike], rows: Sequence[int] | None
) -> Outliers | None:
    """The runs more than ``OFF`` standard deviations off their kriged ``laws``; None where there are none.

    ``columns`` are the inputs and losses of the table, ``rows`` the numbers of its rows. Kriging follows
    where a law bends, and outliers hardly, since they weigh less.
    """
    away_n = np.abs(runs.y_n - kriged_mean(laws, runs.z_In).mean_q)
    noise = np.sqrt(np.mean([law.noise for law in laws]))
    out_n = away_n > OFF * max(1.4826 * float(np.median(away_n)), float(noise))
    if len(out_n) < FEWEST or not out_n.any() or out_n.mean() > MOST_OFF:
        return None
    without = attempt(kriged_laws, runs.take(~out_n))
    if isinstance(without, Refusal):
        return None
    if rows is None:
        return Outliers(int(out_n.sum()), without)
    middles = np.append(runs.middle_I, runs.middle_loss)[:, None]
    off = np.vstack([runs.z_In, runs.y_n])[:, out_n]
    apart = np.abs((log_columns(columns) - middles)[:, :, None] - off[:, None, :]).max(axis=0)
    named = np.asarray(rows)[(apart < _SAME).any(axis=1)]
    return Outliers(tuple(sorted(named.tolist())), without)
