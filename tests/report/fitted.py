"""Fits of every form to runs simulated from it: what figures and reports of a fit are tested on."""

from functools import cache

import numpy as np

from isoloss.laws import fit, form

SEEN = {"params": (1e6, 1e9, 6), "tokens": (1e8, 1e11, 5)}
"""Low, high and number of values of each input of the simulated grid."""

TRUTH = {
    "power": ({"Nc": 8.8e13, "a": 0.076}, {"params": (1e6, 1e9, 14)}),
    "power-floor": ({"E": 1.7, "A": 400.0, "a": 0.34}, {"params": (1e6, 1e9, 14)}),
    "kaplan-nd": ({"Nc": 6.4e13, "aN": 0.076, "Dc": 1.8e13, "aD": 0.103}, SEEN),
    "kaplan-ns": (
        {"Nc": 6.5e13, "aN": 0.077, "Sc": 2.1e3, "aS": 0.76, "B_star": 2.1e8, "aB": 0.21},
        {"params": (1e6, 1e9, 4), "steps": (3e2, 1e5, 4), "batch_tokens": (1e4, 3e6, 4)},
    ),
    "chinchilla": ({"E": 1.8172, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658}, SEEN),
    "outer-exponent": (
        {"E": 1.5, "A": 3e3, "alpha": 0.5, "B": 3e4, "beta": 0.6, "gamma": 0.6},
        {"params": (1e6, 1e9, 8), "tokens": (1e8, 1e11, 8)},
    ),
    "data-constrained": (
        {"E": 1.87, "A": 521.0, "alpha": 0.353, "B": 1488.0, "beta": 0.353, "R_D": 15.4, "R_N": 5.3},
        {"params": (1e7, 3e9, 5), "tokens": (1e9, 1e11, 5), "unique_tokens": (1e8, 3e10, 4)},
    ),
    "pearce-song": (
        {"E": 1.8172, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658, "g": 47491.0},
        SEEN,
    ),
    "optimal-params": ({"G": 0.1, "a": 0.5}, {"flops": (1e18, 1e22, 9)}),
    "loop-total": (
        {"E": 1.5, "A": 300.0, "alpha": 0.33, "B": 1500.0, "beta": 0.35, "C": 0.2, "gamma": 0.7,
         "t1": 0.0, "t2": 0.0, "t3": 0.0},
        {"params": (1e6, 1e9, 5), "tokens": (1e8, 1e11, 4), "recurrence": (1, 8, 4)},
    ),
    "loop-equivalence": (
        {"E": 1.57, "A": 20.0, "alpha": 0.199, "B": 900.0, "beta": 0.369, "phi": 0.459},
        {"params_once": (1e6, 1e7, 2), "params_recurrent": (1e7, 1e9, 5), "recurrence": (1, 8, 4),
         "tokens": (1e9, 1e11, 4)},
    ),
    "context": ({"a": 4.0, "b": 3.2, "p": 0.47}, {"position": (1, 1024, 40)}),
    "context-params": (
        {"E": 1.0, "A": 60.0, "alpha": 0.25, "B": 8.0, "eta": 0.05, "p": 0.45, "q": 0.0},
        {"params": (1e6, 1e9, 5), "position": (1, 1024, 12)},
    ),
    "shape": ({"least": 3.0, "best": 4.0, "curvature": 0.02}, {"ratio": (0.5, 64, 12)}),
    "width-depth": (
        {"E": 1.5, "A": 20.0, "a": 0.5, "B": 1.0, "b": 0.8, "C": 1500.0, "c": 0.35},
        {"d_model": (64, 2048, 5), "n_layer": (2, 32, 4), "tokens": (1e8, 1e11, 4)},
    ),
}  # fmt: skip
TRUTH["loop-step"] = TRUTH["loop-total"]


def runs_of(law, *, noise=0.002, seed=0, seeds=1):
    """Inputs and losses on the whole grid of the law's inputs, with noise on log losses."""
    truth, grid = TRUTH[law]
    axes = [np.geomspace(low, high, count) for low, high, count in grid.values()]
    columns = np.meshgrid(*axes, indexing="ij")
    x = {name: np.tile(column.ravel(), seeds) for name, column in zip(grid, columns, strict=True)}
    if "unique_tokens" in x:
        possible = x["unique_tokens"] <= x["tokens"]
        x = {name: column[possible] for name, column in x.items()}
    loss = form(law).loss(truth, x)
    return x, loss * np.exp(noise * np.random.default_rng(seed).standard_normal(len(loss)))


@cache
def fitted(law):
    """The form fitted to its own runs; eight seeds where rows along an input share their noise."""
    if form(law).correlated is None:
        x, loss = runs_of(law)
        return fit(law, x, loss, objective="squared-log")
    x, loss = runs_of(law, seeds=8)
    return fit(law, x, loss, cluster=np.repeat(np.arange(8), len(loss) // 8), objective="squared-log",
               curve_only=True)  # fmt: skip
