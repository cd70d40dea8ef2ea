"""What reading a minimum off a grid of sizes gets wrong without any noise, given a Chinchilla law.

A loss curve E + A N^-alpha + B D^-beta is no parabola in log N at D = C/(6 N): a parabola through a wide or
off-centre grid has its vertex elsewhere. Source: Czech et al. 2026, arXiv 2603.22339.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from isoloss.errors import InputError
from isoloss.laws._result import Fit
from isoloss.laws.forms import Array
from isoloss.laws.frontier import frontier
from isoloss.laws.isoflop import Budget, IsoFlop
from isoloss.laws.minima import Method, minima

BEYOND = 7.0  # natural log units outside the grid in which the exact optimum is looked for


@dataclass(frozen=True)
class Bias:
    """``optimum`` minimises the law at its budget, ``read`` is what the grid shows; in parameters.

    ``params`` = read/optimum - 1.
    """

    flops: float
    optimum: float
    read: float
    params: float


@dataclass(frozen=True)
class GridBias:
    """``exponent`` of N*(C) through the exact optima of the used budgets, and as their grids ``read`` it."""

    budgets: tuple[Bias, ...]
    exponent: float
    read: float


def grid_bias(reading: IsoFlop, fit: Fit) -> GridBias:
    """The bias of the used budgets' own grids, read by ``reading.method``, if ``fit`` were exact.

    Raises InputError for another law than ``chinchilla``, and Refusal as ``frontier`` does.
    """
    if fit.law != "chinchilla":
        raise InputError(
            "is no sum E + A N^-alpha + B D^-beta", where=fit.law, mend="give a fit of chinchilla"
        )
    budgets = tuple(_budget_bias(budget, fit, reading.method) for budget in reading.used)
    flops = [bias.flops for bias in budgets]
    exact, read = (
        frontier(flops, [getattr(bias, name) for bias in budgets], level=reading.level).exponent
        for name in ("optimum", "read")
    )
    return GridBias(budgets, exact, read)


def _budget_bias(budget: Budget, fit: Fit, method: Method) -> Bias:
    law, x = fit.params, np.log(budget.sizes)
    log_ND = x + np.log(budget.size_tokens)

    def loss(log_N: NDArray[np.float64]) -> Array:
        log_D = np.interp(log_N, x, log_ND) - log_N
        return law["E"] + law["A"] * np.exp(-law["alpha"] * log_N) + law["B"] * np.exp(-law["beta"] * log_D)

    lowest, *_ = minima(x, np.log(loss(x))[:, None], method)
    exact = scipy.optimize.minimize_scalar(
        loss, bounds=(x[0] - BEYOND, x[-1] + BEYOND), method="bounded", options={"xatol": 1e-9}
    )
    optimum, read = float(np.exp(exact.x)), float(np.exp(lowest[0]))
    return Bias(budget.flops, optimum, read, read / optimum - 1)
