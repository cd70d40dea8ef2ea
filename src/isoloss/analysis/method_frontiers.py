"""N*(C) by every method that reads it off runs: IsoFLOP budgets, the envelope, a law."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit
from isoloss.laws.envelope import Envelope
from isoloss.laws.frontier import Frontier
from isoloss.laws.isoflop import IsoFlop
from isoloss.plans.curve import ALLOCATION_DRAWS, allocation_exponent, optima
from isoloss.plans.methods import ExponentsByMethod

GRID = 25
POINTS = pl.Schema({"flops": pl.Float64, "params": pl.Float64, "used": pl.Boolean})


@dataclass(frozen=True)
class MethodFrontier:
    """One method's frontier: its optima, what it left out, and its law with a band over ``flops``."""

    name: str
    exponent: float
    interval: tuple[float, float] | None
    level: float
    points: pl.DataFrame  # POINTS
    law: pl.DataFrame  # flops, params, low, high

    @property
    def label(self) -> str:
        ends = "" if self.interval is None else f" ({text.interval(self.interval, text.loss)})"
        return f"{self.name}: a = {self.exponent:.3f}{ends}"


def all_frontiers(exponents: ExponentsByMethod) -> list[MethodFrontier]:
    """The budgets' reading, the envelope and the law, as far as there are any, for one picture."""
    frontiers = [] if exponents.isoflop is None else [budget_frontier(exponents.isoflop)]
    if exponents.envelope is not None:
        frontiers.append(envelope_frontier(exponents.envelope))
    if exponents.law is not None and frontiers:
        low, high = _ends(pl.concat(frontier.points for frontier in frontiers))
        with suppress(Refusal):
            frontiers.append(law_frontier(exponents.law, low, high, level=exponents.level))
    return frontiers


def budget_frontier(isoflop: IsoFlop) -> MethodFrontier:
    rows = [(budget.flops, budget.params, budget.used) for budget in isoflop.budgets]
    law = isoflop.params
    return _through_optima(f"IsoFLOP, {isoflop.method.value}", rows, law, law.interval, isoflop.level)


def envelope_frontier(envelope: Envelope) -> MethodFrontier:
    rows = [(handover.flops, handover.params, handover.cut is None) for handover in envelope.handovers]
    name = f"envelope, {envelope.choice.value}"
    return _through_optima(name, rows, envelope.params, envelope.params_interval, envelope.level)


def _through_optima(
    name: str,
    rows: Sequence[tuple[float, float, bool]],
    law: Frontier,
    interval: tuple[float, float] | None,
    level: float,
) -> MethodFrontier:
    """A power law through optima that were read off the runs; a row is its flops, params and used."""
    points = pl.DataFrame(rows, schema=POINTS, orient="row")
    C = np.geomspace(*_ends(points), GRID)
    middle, low, high = law.band(C)
    band = pl.DataFrame({"flops": C, "params": middle, "low": low, "high": high})
    return MethodFrontier(name, law.exponent, interval, level, points, band)


def law_frontier(fit: Fit, low: float, high: float, *, level: float = 0.9) -> MethodFrontier:
    """N* of a law of params and tokens at C = 6 N D; its band from draws of its parameters.

    Raises InputError for a law of other inputs or a range that is none, and Refusal where there is no
    optimum that grows with C.
    """
    if set(fit.ranges) != {"params", "tokens"}:
        raise InputError(
            f"{fit.law} takes {', '.join(fit.ranges)}, not params and tokens", mend="fit another"
        )
    if not 0 < low < high < np.inf:
        raise InputError(f"compute runs from {low} to {high}", mend="give 0 < low < high")
    C = np.geomspace(low, high, GRID)
    best = optima(fit, C, level=level, draws=ALLOCATION_DRAWS)
    allocation = allocation_exponent(fit, C, level=level)
    if allocation is None or not np.all(np.diff(best.params_F) > 0):
        raise Refusal(
            f"N* of {fit.law} does not grow with C everywhere from {text.counts(low, high)} FLOP",
            mend="choose compute nearer to the data",
        )
    ends = best.params_ends or (best.params_F, best.params_F)
    law = pl.DataFrame({"flops": C, "params": best.params_F, "low": ends[0], "high": ends[1]})
    exponent, interval = allocation
    return MethodFrontier(f"law, {fit.law}", exponent, interval, level, POINTS.to_frame(), law)


def _ends(points: pl.DataFrame) -> tuple[float, float]:
    """The least and the most compute."""
    C = points["flops"].to_numpy()
    return float(C.min()), float(C.max())
