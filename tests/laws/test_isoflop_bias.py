"""The parabola's bias without noise, as arXiv 2603.22339 prints it: 15 sizes, loss over log N."""

import math

import numpy as np
import pytest
from sweeps import EXPONENT, LAW, chinchilla, chinchilla_optimum, grid, known

from isoloss.errors import InputError
from isoloss.laws.isoflop import isoflop
from isoloss.laws.isoflop_bias import grid_bias
from isoloss.laws.minima import Method, minima


def vertex_error(law, decades, *, flops=1e20, centre=1.0, log_loss=False):
    """Relative error of N* at the vertex of a parabola through noise-free losses, evenly in log N."""
    optimum = chinchilla_optimum(law, flops)
    N = optimum * centre * np.logspace(-decades, decades, 15)
    loss = law["E"] + law["A"] * N ** -law["alpha"] + law["B"] * (flops / 6 / N) ** -law["beta"]
    x = np.log(N)
    lowest, _, inside = minima(x, (np.log(loss) if log_loss else loss)[:, None], Method.PARABOLA)
    assert inside[0]
    return np.exp(lowest[0]) / optimum - 1


@pytest.mark.parametrize(("width", "percent"), [(2, -0.3), (8, -2.9), (16, -5.1)])
def test_the_published_bias_of_the_parabola(width, percent):
    assert 100 * (1 / (1 + vertex_error(LAW, math.log10(width))) - 1) == pytest.approx(percent, abs=0.05)


def test_the_bias_of_unequal_exponents_and_none_of_equal_ones():
    unequal = LAW | {"alpha": 0.465, "beta": 0.155}
    assert 1 / (1 + vertex_error(unequal, math.log10(16))) - 1 == pytest.approx(-0.2312, abs=5e-4)
    equal = LAW | {"alpha": 0.31, "beta": 0.31}
    assert vertex_error(equal, 1.0) == pytest.approx(0, abs=1e-12)
    assert abs(vertex_error(equal, 1.0, centre=3.0)) > 0.02


def test_the_bias_depends_on_neither_budget_nor_floor_for_plain_losses():
    bias = vertex_error(LAW, 0.9, flops=1e18)
    assert bias == pytest.approx(vertex_error(LAW | {"E": 0.0, "A": 10.0}, 0.9, flops=1e23), rel=1e-6)
    assert vertex_error(LAW, 0.9, log_loss=True) != pytest.approx(bias, rel=1e-3)


def test_a_grid_knows_its_own_bias():
    C, N = grid(sizes=15)
    law = known("chinchilla", LAW)
    by_parabola = grid_bias(isoflop(C, N, chinchilla(C, N), method="parabola"), law)
    by_akima = grid_bias(isoflop(C, N, chinchilla(C, N)), law)
    for bias in by_parabola.budgets:
        assert bias.optimum == pytest.approx(chinchilla_optimum(LAW, bias.flops), rel=1e-6)
        assert bias.params == pytest.approx(0.029, abs=0.001)
    assert max(abs(bias.params) for bias in by_akima.budgets) < 0.003
    assert by_parabola.exponent == pytest.approx(EXPONENT, abs=1e-6)
    assert by_parabola.read == pytest.approx(EXPONENT, abs=2e-4)
    drifting = N * (C / 1e18) ** 0.1  # the grid's centre leaves the optimum as C grows
    moved = grid_bias(isoflop(C, drifting, chinchilla(C, drifting), method="parabola"), law)
    assert abs(moved.read - EXPONENT) > 0.0015
    with pytest.raises(InputError, match="give a fit of chinchilla"):
        grid_bias(isoflop(C, N, chinchilla(C, N)), known("power", {"Nc": 1e13, "a": 0.08}))
