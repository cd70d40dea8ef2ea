"""N*(C) of a law as one method among others."""

import numpy as np
import pytest
from sweeps import EXPONENT, chinchilla_optimum, noisy

from isoloss.analysis.method_frontiers import law_frontier
from isoloss.errors import InputError
from isoloss.laws import fit


def test_the_frontier_of_a_law_finds_the_laws_own_optimum():
    C, N, loss = noisy()
    law = fit("chinchilla", {"params": N, "tokens": C / 6 / N}, loss, objective="squared-log")
    frontier = law_frontier(law, 1e18, 1e22)
    exact = law.params["beta"] / (law.params["alpha"] + law.params["beta"])
    assert frontier.exponent == pytest.approx(exact, abs=1e-4)
    assert frontier.law["params"].to_numpy() == pytest.approx(
        chinchilla_optimum(law.params, frontier.law["flops"].to_numpy()), rel=1e-3
    )
    low, high = frontier.interval
    assert low < EXPONENT < high
    assert high - low < 0.05


def test_laws_and_ranges_without_a_frontier_are_refused():
    N = np.geomspace(1e6, 1e9, 7)
    power = fit("power", {"params": N}, 5 * N**-0.07 * (1 + 0.001 * np.cos(np.arange(7))))
    with pytest.raises(InputError, match="params and tokens"):
        law_frontier(power, 1e18, 1e20)
