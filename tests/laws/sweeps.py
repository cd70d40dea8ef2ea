"""A sweep of sizes over compute budgets of which the optimum is known: Hoffmann's law, exactly."""

import numpy as np

from isoloss.laws import from_constants

LAW = {"E": 1.69, "A": 406.4, "B": 410.7, "alpha": 0.34, "beta": 0.28}  # Hoffmann et al., as printed
EXPONENT = 0.28 / 0.62
BUDGETS = np.geomspace(1e18, 1e21, 7)


def chinchilla_optimum(law, flops):
    """N* = G (C/6)^(beta/(alpha+beta)), G = (alpha A/(beta B))^(1/(alpha+beta)): Hoffmann et al., eq. 4."""
    both = law["alpha"] + law["beta"]
    G = (law["alpha"] * law["A"] / (law["beta"] * law["B"])) ** (1 / both)
    return G * (np.asarray(flops) / 6) ** (law["beta"] / both)


def known(law, params):
    """A fit of these constants alone."""
    return from_constants(
        law,
        params,
        standard_errors={},
        intervals={},
        level=0.9,
        ranges={},
        objective="",
        n=0,
        warnings=[],
        source={},
    )


def grid(budgets=BUDGETS, width=8.0, sizes=9, shift=1.0):
    """C and N of a grid that reaches ``width`` times to each side of ``shift`` times the optimum."""
    C = np.repeat(budgets, sizes)
    return C, chinchilla_optimum(LAW, C) * shift * np.tile(
        np.geomspace(1 / width, width, sizes), len(budgets)
    )


def noisy(largest=np.inf):
    """C, N and loss of nine budgets with 0.1 % of noise, of sizes up to ``largest``."""
    rng = np.random.default_rng(1)
    C = np.repeat(np.geomspace(1e18, 1e22, 9), 15)
    N = chinchilla_optimum(LAW, C) * np.tile(np.geomspace(1 / 40, 40, 15), 9)
    kept = largest >= N
    C, N = C[kept], N[kept]
    return C, N, chinchilla(C, N) * np.exp(0.001 * rng.standard_normal(len(C)))


def chinchilla(C, N):
    return LAW["E"] + LAW["A"] * N ** -LAW["alpha"] + LAW["B"] * (C / 6 / N) ** -LAW["beta"]
