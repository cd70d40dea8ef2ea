"""Has a run diverged, whatever its status says? One answer for training, tables and reports.

    ends above a guess   the last held-out loss is above ln V by more than ABOVE standard errors over text
    rises and stays      nine of ten of the last steps lie above  best + SHARE (ln V - best),
                         where best is the lowest median training loss of as many steps before them

Of a run's paths (the trunk up to a branch, then the branch) each is judged; the last steps are a tenth of it,
at least STEPS. The training loss is judged, not the held-out one: a run that overfits has not diverged. Of
the 49 shipped runs, cut off at 11,025 places, none rises by more than 0.02 of what it had gained.
"""

from collections.abc import Iterator
from math import log

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss.records.schema import Evaluation, Record

ABOVE = 2.0
"""The loss of an untrained model is ln V: chance alone must not make it diverged."""
SHARE = 0.1
STEPS = 8


def mark_divergence(record: Record, curve: pl.DataFrame) -> Record:
    """The record, as ``diverged`` and with the reason where its losses or its training ``curve`` show it."""
    if record.status == "diverged":
        return record
    guess = log(record.data.vocab)
    reason = worse_than_guessing(record.evaluations, guess) or lost(curve, guess)
    return record if reason is None else record.model_copy(update={"status": "diverged", "reason": reason})


def worse_than_guessing(evaluations: list[Evaluation], guess: float) -> str | None:
    last = max(evaluations, key=lambda e: (e.tokens, e.cooled), default=None)
    if last is None or last.loss - ABOVE * last.loss_se <= guess:
        return None
    return f"its loss ends at {last.loss:.4g} nats, above ln V = {guess:.3g}, that of a guess"


def lost(curve: pl.DataFrame, guess: float) -> str | None:
    """Why a training curve says that what was learned was lost for good, or None."""
    for losses_S in paths(curve):
        steps = max(STEPS, len(losses_S) // 10)
        if len(losses_S) < 4 * steps:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(losses_S[:-steps], steps)[:: steps // STEPS]
        best, end_S = float(np.median(windows, axis=1).min()), losses_S[-steps:]
        if np.quantile(end_S, 0.1) > best + SHARE * abs(guess - best):
            return f"its training loss rose from {best:.4g} to {np.median(end_S):.4g} nats and stayed there"
    return None


def paths(curve: pl.DataFrame) -> Iterator[NDArray[np.float64]]:
    """Training loss by step of every path, or of the trunk where there is no branch yet."""
    branch_S, step_S, total_S = (curve[name].to_numpy() for name in ("branch", "step", "total"))
    on_trunk_S, branches = branch_S == 0, np.unique(branch_S[branch_S > 0])
    if not len(branches):
        yield total_S[on_trunk_S]
    for branch in branches:
        in_branch_S = branch_S == branch
        before_S = on_trunk_S & (step_S < step_S[in_branch_S].min())
        yield np.concatenate([total_S[before_S], total_S[in_branch_S]])
