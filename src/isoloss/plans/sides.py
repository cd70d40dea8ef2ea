"""Whether the runs of an IsoFLOP table lie on both sides of its best sizes."""

import numpy as np
from numpy.typing import ArrayLike

ONE_BUDGET = 0.03
"""Of log compute, from run to run of a budget."""
LEAST_SIZES, LEAST_BUDGETS, ONE_SIDE = 4, 3, 2 / 3
"""Of an IsoFLOP table: sizes of a budget, budgets, and the share of them that is told."""


def one_sided(params: ArrayLike, tokens: ArrayLike, loss: ArrayLike) -> str:
    """Of an IsoFLOP table whose budgets have their lowest loss at one and the same end of their sizes."""
    log_n, log_d, loss_n = np.log(params), np.log(tokens), np.asarray(loss)
    order = np.argsort(log_n + log_d, kind="stable")
    gaps = np.flatnonzero(np.diff((log_n + log_d)[order]) > ONE_BUDGET) + 1
    budgets = [rows for rows in np.split(order, gaps) if len(np.unique(log_n[rows])) >= LEAST_SIZES]
    if len(budgets) < LEAST_BUDGETS or sum(map(len, budgets)) < 0.5 * len(order):
        return ""
    best = [(log_n[rows], log_n[rows[np.argmin(loss_n[rows])]]) for rows in budgets]
    for end, side in (("smallest", np.min), ("largest", np.max)):
        count = sum(bool(lowest == side(sizes)) for sizes, lowest in best)
        if count >= ONE_SIDE * len(budgets):
            return (
                f"in {count} of {len(budgets)} budgets the loss is lowest at the {end} size: all runs lie on "
                "one side of the best sizes, and the exponents rest on that side"
            )
    return ""
