"""Simulated runs, of laws in and outside the forecast's set, for benchmarks of what lies beyond them."""

from collections.abc import Callable

import numpy as np
from public_tables import Table

from isoloss.laws import Array

NEW = 12
"""Runs to predict, of each table."""

Truth = Callable[[Array, Array], Array]


def truths(rng: np.random.Generator) -> dict[str, Truth]:
    """Laws to draw runs from: in the forecast's set, and outside of it."""
    (alpha, beta), (floor, a, b) = rng.uniform(0.25, 0.5, 2), rng.uniform(0.5, [2.0, 1.2, 1.2])

    def inside(N: Array, D: Array, outer: float = 1.0, slope: float = beta) -> Array:
        return floor + (a * (N / 1e8) ** -alpha + b * (D / 1e10) ** -slope) ** outer

    return {
        "chinchilla": inside,
        "outer-exponent": lambda N, D: inside(N, D, outer=0.6),
        "chinchilla, alpha = beta": lambda N, D: inside(N, D, slope=alpha),
        "with a product term": lambda N, D: inside(N, D) + 0.3 * (N / 1e8) ** -0.2 * (D / 1e10) ** -0.2,
        "with a bend of 1 %": lambda N, D: inside(N, D) * (1 + 0.01 * np.sin(np.log(N * D) / 3)),
    }


def simulated(rng: np.random.Generator, runs: int, noise: float, truth: Truth) -> tuple[Table, np.ndarray]:
    """``runs`` over two decades of N and D, and twelve new ones around ten times the largest of both."""
    N = np.concatenate([10 ** rng.uniform(7, 9, runs), 10 ** rng.uniform(8.5, 10, NEW)])
    D = np.concatenate([10 ** rng.uniform(9, 11, runs), 10 ** rng.uniform(10.5, 12, NEW)])
    loss = truth(N, D) * np.exp(noise * rng.standard_normal(len(N)))
    return Table("simulated", "", N, D, loss), np.arange(len(N)) >= runs
