"""The compute frontier: a power law through optimal sizes, y = G C^a, fitted in log-log."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss.distributions import t_quantile
from isoloss.errors import InputError, Refusal
from isoloss.laws.forms import Array

LEAST = 3  # optima for a power law with an interval
LEAST_DECADES = 0.5  # of compute
SMALLEST, LARGEST = 1e-100, 1e100  # products and ratios of columns stay finite


class TokenRule(Enum):
    OBEYED = "the rows obey D = C/(6 N) within 1%, so D* is C/(6 N*) and a + b is near 1 by construction"
    FROM_ROWS = "the rows do not obey D = C/(6 N), so D* is read from their tokens and a + b need not be 1"
    ASSUMED = "no tokens were given: D = C/(6 N) is assumed, and a + b = 1 follows from that"


@dataclass(frozen=True)
class Frontier:
    """y = coefficient * C^exponent, C in FLOP.

    ``interval`` of the exponent is a t interval over budgets with ``df`` degrees of freedom. ``pivot`` is the
    compute at which value and slope are uncorrelated; ``value`` and ``value_se`` (of its logarithm) belong
    to it. ``sigma`` is the scatter of log y about the line.
    """

    exponent: float
    coefficient: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    df: int
    pivot: float
    value: float
    value_se: float
    sigma: float

    def band(self, flops: ArrayLike) -> tuple[Array, Array, Array]:
        """The line and its t band at ``flops``: (y, low, high)."""
        away = np.log(np.asarray(flops, dtype=np.float64) / self.pivot)
        middle = np.log(self.value) + self.exponent * away
        reach = t_quantile(self.level, self.df) * np.hypot(self.value_se, self.standard_error * away)
        return np.exp(middle), np.exp(middle - reach), np.exp(middle + reach)


@dataclass(frozen=True)
class Third:
    """The slope over one third of the compute budgets, from ``low`` to ``high``, and its standard error."""

    low: float
    high: float
    exponent: float
    standard_error: float


def frontier(
    flops: ArrayLike, optimum: ArrayLike, *, variance: ArrayLike | None = None, level: float
) -> Frontier:
    """Least squares of log optimum on log flops, weighted by 1/variance of log optimum if given.

    The variances count as relative: the scatter about the line sets the scale, as t intervals need.
    Raises InputError for columns that are not positive finite numbers of one length, and Refusal for fewer
    than 3 optima or under half a decade of compute.
    """
    table = columns({"flops": flops, "optimum": optimum, "variance": variance})
    x, y = np.log(table["flops"]), np.log(table["optimum"])
    weights = 1 / table.get("variance", np.ones(len(x)))
    if len(x) < LEAST:
        raise Refusal(
            f"{len(x)} usable optima are too few for a power law",
            mend=f"measure at {LEAST} or more compute budgets",
        )
    if np.ptp(x) < LEAST_DECADES * np.log(10):
        raise Refusal(
            f"the usable budgets span a factor of {np.exp(np.ptp(x)):.2g}, under half a decade of compute",
            mend="add budgets further apart",
        )
    centre, height = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = float(np.sum(weights * (x - centre) ** 2))
    slope = float(np.sum(weights * (x - centre) * (y - height)) / spread)
    df = len(x) - 2
    scale = float(np.sum(weights * (y - height - slope * (x - centre)) ** 2) / df)
    error = np.sqrt(scale / spread)
    reach = t_quantile(level, df) * error
    return Frontier(
        exponent=slope,
        coefficient=float(np.exp(height - slope * centre)),
        standard_error=float(error),
        interval=(float(slope - reach), float(slope + reach)),
        level=level,
        df=df,
        pivot=float(np.exp(centre)),
        value=float(np.exp(height)),
        value_se=float(np.sqrt(scale / np.sum(weights))),
        sigma=float(np.sqrt(scale / np.mean(weights))),
    )


def thirds(flops: ArrayLike, optimum: ArrayLike, sigma: float) -> tuple[Third, ...]:
    """Plain slopes over the first, middle and last third of the budgets; a bend of the frontier shows here.

    Neighbouring thirds share the budget between them, so that 4 optima suffice; fewer give no thirds.
    ``sigma``, the scatter about the whole line, sets the standard errors.
    """
    order = np.argsort(flops)
    x, y = np.log(np.asarray(flops)[order]), np.log(np.asarray(optimum)[order])
    if len(x) < LEAST + 1:
        return ()
    ends = np.round(np.linspace(0, len(x) - 1, 4)).astype(int)
    out = []
    for first, last in pairwise(ends):
        part = slice(first, last + 1)
        away = x[part] - x[part].mean()
        spread = float(away @ away)
        out.append(
            Third(
                float(np.exp(x[first])),
                float(np.exp(x[last])),
                float(away @ y[part]) / spread,
                sigma / spread**0.5,
            )
        )
    return tuple(out)


def sweep(
    flops: ArrayLike, params: ArrayLike, loss: ArrayLike, tokens: ArrayLike | None
) -> tuple[dict[str, Array], TokenRule]:
    """The columns of a sweep, tokens added where none are given, and how D follows from C and N."""
    table = columns({"flops": flops, "params": params, "loss": loss, "tokens": tokens})
    by_rule = table["flops"] / (6 * table["params"])
    if tokens is None:
        return table | {"tokens": by_rule}, TokenRule.ASSUMED
    obeyed = np.max(np.abs(by_rule / table["tokens"] - 1)) < 0.01
    return table, TokenRule.OBEYED if obeyed else TokenRule.FROM_ROWS


def columns(named: Mapping[str, Any]) -> dict[str, Array]:
    """The columns that are given as float arrays of one length. Raises InputError naming row and column."""
    out: dict[str, Array] = {}
    for name, values in named.items():
        if values is None:
            continue
        try:
            out[name] = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"is not an array of numbers ({error})", where=name) from None
        if out[name].ndim != 1 or not len(out[name]):
            raise InputError("is not a column of numbers", where=name, mend="give one number a row")
        good = (out[name] > SMALLEST) & (out[name] < LARGEST)
        if not good.all():
            row = int(np.argmin(good))
            raise InputError(
                f"is {out[name][row]}, not positive and finite (nor from {SMALLEST:g} to {LARGEST:g})",
                where=f"row {row + 1}, {name}",
                mend="correct or drop it",
            )
    if len({len(values) for values in out.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in out.items())
        raise InputError(f"the columns differ in length ({lengths})", mend="give one value a row in each")
    return out
