"""What reading a minimum off a grid of sizes gets wrong without any noise, given a Chinchilla law.

A loss curve E + A N^-alpha + B D^-beta is no parabola in log N at D = C/(6 N): a parabola through a wide or
off-centre grid has its vertex elsewhere. Source: Czech et al. 2026, arXiv 2603.22339.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from isoloss.errors import InputError
from isoloss.laws.forms import Array
from isoloss.laws.frontier import frontier
from isoloss.laws.isoflop import Budget, IsoFlop
from isoloss.laws.minima import Method, minima

PARAMETERS = ("E", "A", "B", "alpha", "beta")
BEYOND = 7.0  # natural log units outside the grid in which the exact optimum is looked for


@dataclass(frozen=True)
class Bias:
    """``optimum`` minimises the law at its budget, ``read`` is what the grid shows; in parameters.

    ``params`` = read/optimum - 1. ``inside`` is False where the grid shows no minimum inside its sizes.
    """

    flops: float
    optimum: float
    read: float
    params: float
    inside: bool


@dataclass(frozen=True)
class GridBias:
    """``exponent`` of N*(C) through the exact optima of the used budgets, and as their grids ``read`` it."""

    budgets: tuple[Bias, ...]
    exponent: float
    read: float


def grid_bias(found: IsoFlop, law: Mapping[str, float]) -> GridBias:
    """The bias of the used budgets' own grids, read by ``found.method``, if ``law`` were exact.

    ``law`` has the parameters of ``chinchilla`` (the ``params`` of a Fit). Raises InputError if one is
    missing or not positive, and Refusal as ``frontier`` does.
    """
    law = _law(law)
    each = tuple(_budget_bias(budget, law, found.method) for budget in found.used)
    flops = [one.flops for one in each]
    exact, read = (
        frontier(flops, [getattr(one, name) for one in each], level=found.level).exponent
        for name in ("optimum", "read")
    )
    return GridBias(each, exact, read)


def _budget_bias(budget: Budget, law: Mapping[str, float], method: Method) -> Bias:
    x = np.log(budget.sizes)
    log_ND = x + np.log(budget.size_tokens)

    def loss(log_N: NDArray[np.float64]) -> Array:
        log_D = np.interp(log_N, x, log_ND) - log_N
        return law["E"] + law["A"] * np.exp(-law["alpha"] * log_N) + law["B"] * np.exp(-law["beta"] * log_D)

    at, _, inside = minima(x, np.log(loss(x))[:, None], method)
    exact = minimize_scalar(
        loss, bounds=(x[0] - BEYOND, x[-1] + BEYOND), method="bounded", options={"xatol": 1e-9}
    )
    optimum, read = float(np.exp(exact.x)), float(np.exp(at[0]))
    return Bias(budget.flops, optimum, read, read / optimum - 1, bool(inside[0]))


def _law(law: Mapping[str, float]) -> dict[str, float]:
    out = {}
    for name in PARAMETERS:
        if name not in law:
            raise InputError(f"has no {name}", where="law", mend=f"give {', '.join(PARAMETERS)}")
        out[name] = float(law[name])
        if not np.isfinite(out[name]) or out[name] < 0 or (out[name] == 0 and name != "E"):
            raise InputError(f"{name} is {law[name]}", where="law", mend="give positive finite numbers")
    return out
