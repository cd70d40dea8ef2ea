"""Whether the runs of an IsoFLOP table lie on both sides of its best sizes."""

import numpy as np
import polars as pl

from isoloss.laws import Array
from isoloss.sources.sweeps import numbers_of
from isoloss.sources.table import Runs

ONE_BUDGET = 0.03
"""Of log compute, from run to run of a budget."""
LEAST_SIZES, LEAST_BUDGETS, ONE_SIDE = 4, 3, 2 / 3
"""Of an IsoFLOP table: sizes of a budget, budgets, and the share of them that is told."""


def one_sided(runs: Runs) -> str:
    """Of an IsoFLOP table whose budgets have their lowest loss at one and the same end of their sizes.

    Budgets are those of the table's own FLOPs, which may be no multiple of N D; of N D if it has none.
    """
    frame = runs.frame.filter(pl.col("weights") > 0) if "weights" in runs.frame.columns else runs.frame
    numbers = numbers_of(frame, (runs.count, "tokens", "flops", "loss"))
    flops_n = numbers["flops"] if runs.has("flops") else np.array([np.nan])
    if not np.all(flops_n > 0):  # or a cell is empty
        flops_n = numbers[runs.count] * numbers["tokens"]
    return side_words(flops_n, numbers[runs.count], numbers["loss"])


def side_words(flops_n: Array, params_n: Array, loss_n: Array) -> str:
    """That most budgets of these runs have their lowest loss at one end of their sizes, or ''."""
    log_c, log_n = np.log(flops_n), np.log(params_n)
    order = np.argsort(log_c, kind="stable")
    gaps = np.flatnonzero(np.diff(log_c[order]) > ONE_BUDGET) + 1
    budgets = [rows for rows in np.split(order, gaps) if len(np.unique(log_n[rows])) >= LEAST_SIZES]
    if len(budgets) < LEAST_BUDGETS or sum(map(len, budgets)) < 0.5 * len(order):
        return ""
    best = [(log_n[rows], log_n[rows[np.argmin(loss_n[rows])]]) for rows in budgets]
    for end, side in (("smallest", np.min), ("largest", np.max)):
        count = sum(bool(lowest == side(sizes)) for sizes, lowest in best)
        if count >= ONE_SIDE * len(budgets):
            return (
                f"in {count} of {len(budgets)} budgets the loss is lowest at the {end} size: all runs lie on "
                "one side of the best sizes. The exponents rest on that side"
            )
    return ""
