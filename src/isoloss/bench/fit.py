"""One Chinchilla fit timed beside the usual recipe: a grid of starts, L-BFGS-B, finite differences."""

import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import huber

from isoloss.bench.rows import Row
from isoloss.laws import Array, fit
from isoloss.sources.fitting import columns_for

DELTA = 1e-3


def time_fit(table: Path | None, *, where: str | None, starts: int, refits: int) -> Iterator[Row]:
    """Our fit, our bootstrap and the plain grid on the same runs, in one process.

    The objective is the summed Huber of log losses at the parameters that were found.
    """
    N, D, y = _runs(table, where)
    inputs = {"params": N, "tokens": D}
    options = {"objective": "huber-log", "delta": DELTA}
    fit("chinchilla", inputs, y, **options)  # imports and caches
    ours, seconds = _with_cpu_seconds(lambda: fit("chinchilla", inputs, y, **options))
    _, whole = _with_cpu_seconds(lambda: fit("chinchilla", inputs, y, bootstrap=refits, **options))
    what = f"isoloss fit of {len(y)} runs"
    yield Row(f"{what}, {refits} bootstrap refits", whole, "CPU-s", "one fit", seconds)
    (least, best), theirs = _with_cpu_seconds(lambda: plain_grid(N, D, y, starts))
    peer = f"L-BFGS-B, grid of {starts} starts"
    yield Row(what, seconds, "CPU-s", peer, theirs)
    yield Row(what, ours.objective.value, "as objective", peer, least)
    for name, value in (("alpha", best[3]), ("beta", best[4])):
        yield Row(what, ours.params[name], f"as {name}", peer, float(value))


def plain_grid(N: Array, D: Array, y: Array, starts: int) -> tuple[float, Array]:
    """The least of L-BFGS-B over the grid of Hoffmann et al. 2022: (objective, (a, b, e, alpha, beta)).

    Fewer starts than the grid's 4,500 are spread evenly over it.
    """
    log_N, log_D, log_y = np.log(N), np.log(D), np.log(y)

    def objective(p: Array) -> float:
        a, b, e, alpha, beta = p
        log_loss = np.logaddexp(np.logaddexp(a - alpha * log_N, b - beta * log_D), e)
        return float(huber(DELTA, log_loss - log_y).sum())

    axes = (range(0, 30, 5), range(0, 30, 5), (-1, -0.5, 0, 0.5, 1), (0, 0.5, 1, 1.5, 2), (0, 0.5, 1, 1.5, 2))
    grid = np.array(list(product(*axes)), dtype=float)
    chosen = grid[np.unique(np.linspace(0, len(grid) - 1, starts).astype(int))]
    results = [minimize(objective, start, method="L-BFGS-B") for start in chosen]
    best = min(results, key=lambda result: result.fun)
    return float(best.fun), best.x


def _with_cpu_seconds(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    value = call()
    return value, time.process_time() - start


def _runs(table: Path | None, where: str | None) -> tuple[Array, Array, Array]:
    """The table's runs, or 240 synthetic ones over the sizes and budgets of Hoffmann et al. 2022."""
    if table is not None:
        read = columns_for("chinchilla", table, where=where)
        return read.inputs["params"], read.inputs["tokens"], read.loss
    rng = np.random.default_rng(240)
    N = np.exp(rng.uniform(np.log(6e7), np.log(1.6e10), 240))
    D = np.exp(rng.uniform(np.log(1e18), np.log(1e22), 240)) / (6 * N)
    loss = 1.82 + 482 * N**-0.348 + 2085 * D**-0.366
    return N, D, loss * np.exp(0.005 * rng.laplace(size=240))
