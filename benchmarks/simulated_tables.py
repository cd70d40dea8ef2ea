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
        "without a floor": lambda N, D: (inside(N, D) - floor) ** 0.4,
    }


def simulated(rng: np.random.Generator, runs: int, noise: float, truth: Truth) -> tuple[Table, np.ndarray]:
    """``runs`` over two decades of N and D, and twelve new ones around ten times the largest of both."""
    N, D = sizes(rng, runs)
    loss = truth(N, D) * np.exp(noise * rng.standard_normal(len(N)))
    return Table("simulated", "", N, D, loss), np.arange(len(N)) >= runs


def sizes(rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    """N and D, those of the new runs last."""
    N = np.concatenate([10 ** rng.uniform(7, 9, runs), 10 ** rng.uniform(8.5, 10, NEW)])
    return N, np.concatenate([10 ** rng.uniform(9, 11, runs), 10 ** rng.uniform(10.5, 12, NEW)])


REPEATS_LAST = 15.4
"""Epochs after which repeated tokens are worth little (Muennighoff et al., arXiv 2305.16264)."""


def of_three_sizes(rng: np.random.Generator, runs: int, noise: float) -> dict[str, Table]:
    """Runs of 1 to 8 loops, or of 1 to 16 epochs, and new ones of larger N and D, to 16 loops or epochs.

    Losses with loops are of laws in the forecast's set. With repeated tokens they are not.
    """
    N, D = sizes(rng, runs)
    laws, c, gamma = truths(rng), rng.uniform(0.2, 0.6), rng.uniform(0.25, 0.75)
    loops = np.concatenate([rng.choice([1.0, 2.0, 4.0, 8.0], runs), rng.choice([4.0, 8.0, 16.0], NEW)])
    unique = D / np.concatenate([16 ** rng.uniform(0, 1, runs), 16 ** rng.uniform(0.5, 1, NEW)])
    worth = unique * (1 + REPEATS_LAST * -np.expm1(-(D / unique - 1) / REPEATS_LAST))
    floor = laws["chinchilla"](np.array(np.inf), np.array(np.inf))
    by_loops = c * loops**-gamma
    truth = {
        "loops, loop-total": ("recurrence", loops, laws["chinchilla"](N, D) + by_loops),
        "loops, with an outer exponent": (
            "recurrence",
            loops,
            floor + (laws["chinchilla"](N, D) - floor + by_loops) ** 0.6,
        ),
        "repeated tokens": ("unique_tokens", unique, laws["chinchilla"](N, worth)),
    }
    luck = np.exp(noise * rng.standard_normal(len(N)))
    return {
        name: Table("simulated", name, N, D, loss * luck, more={size: column})
        for name, (size, column, loss) in truth.items()
    }
