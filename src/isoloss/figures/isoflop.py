"""The compute frontier N*(C) as several methods see it: IsoFLOP budgets, the envelope, a law."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.isoflop_curves import curves_figure
from isoloss.figures.style import POWERS, log_axis
from isoloss.laws import Fit
from isoloss.laws.envelope import Envelope
from isoloss.laws.frontier import Frontier
from isoloss.laws.isoflop import IsoFlop
from isoloss.plans.curve import ALLOCATION_DRAWS, allocation_exponent, optima
from isoloss.plans.methods import ExponentsByMethod

WIDTH, HEIGHT = 560, 400
GRID = 25
COLOURS = ("#0072B2", "#CC5500", "#00845f", "#3f3f3f")


@dataclass(frozen=True)
class MethodFrontier:
    """One method's frontier: its optima, what it left out, and its law with a band over ``flops``."""

    name: str
    exponent: float
    interval: tuple[float, float] | None
    level: float
    points: pl.DataFrame  # flops, params, used
    law: pl.DataFrame  # flops, params, low, high

    @property
    def label(self) -> str:
        ends = "" if self.interval is None else f" ({text.interval(self.interval, text.loss)})"
        return f"{self.name}: a = {self.exponent:.3f}{ends}"


def frontier_figure(frontiers: Sequence[MethodFrontier]) -> Figure:
    """N*(C) of one or more methods on log-log axes, each with its band. Raises InputError for none."""
    if not frontiers:
        raise InputError("there is no frontier to draw", mend="give one opinion or more")
    methods = "; ".join(frontier.label for frontier in frontiers)
    return captioned(
        "compute-frontier",
        _frontier_chart(frontiers),
        _verdict(frontiers),
        pl.concat(each.points.select(pl.lit(each.name).alias("method"), pl.all()) for each in frontiers),
        levels=text.listed(sorted({text.level(each.level) for each in frontiers})),
        methods=methods,
        at_the_end=_at_the_end(frontiers),
    )


def budget_frontier(found: IsoFlop) -> MethodFrontier:
    rows = [(one.flops, one.params, one.used) for one in found.budgets]
    return MethodFrontier(
        f"IsoFLOP, {found.method.value}",
        found.params.exponent,
        found.params.interval,
        found.level,
        _points(rows),
        _band(found.params, rows),
    )


def envelope_frontier(found: Envelope) -> MethodFrontier:
    rows = [(one.flops, one.params, one.cut is None) for one in found.handovers]
    return MethodFrontier(
        f"envelope, {found.choice.value}",
        found.params.exponent,
        found.params_interval,
        found.level,
        _points(rows),
        _band(found.params, rows),
    )


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
    return MethodFrontier(f"law, {fit.law}", exponent, interval, level, _points([]), law)


def pictures(found: ExponentsByMethod) -> list[Figure]:
    """The curves by budget, and the compute frontier by every method that gives one."""
    curves = [] if found.isoflop is None else [curves_figure(found.isoflop)]
    frontiers = all_frontiers(found)
    return [*curves, frontier_figure(frontiers)] if frontiers else curves


def all_frontiers(found: ExponentsByMethod) -> list[MethodFrontier]:
    """The budgets' reading, the envelope and the law, as far as there are any, for one picture."""
    drawn = []
    if found.isoflop is not None:
        drawn.append(budget_frontier(found.isoflop))
    if found.envelope is not None:
        drawn.append(envelope_frontier(found.envelope))
    if found.law is not None and drawn:
        flops = np.concatenate([one.points["flops"].to_numpy() for one in drawn]).tolist()
        with suppress(Refusal):
            drawn.append(law_frontier(found.law, min(flops), max(flops), level=found.level))
    return drawn


def _points(rows: Sequence[tuple[float, float, bool]]) -> pl.DataFrame:
    kinds = {"flops": pl.Float64, "params": pl.Float64, "used": pl.Boolean}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _band(law: Frontier, rows: Sequence[tuple[float, float, bool]]) -> pl.DataFrame:
    C = np.geomspace(min(row[0] for row in rows), max(row[0] for row in rows), GRID)
    middle, low, high = law.band(C)
    return pl.DataFrame({"flops": C, "params": middle, "low": low, "high": high})


def _verdict(frontiers: Sequence[MethodFrontier]) -> str:
    numbers = text.listed([f"{one.exponent:.3f}" for one in frontiers])
    if len(frontiers) == 1:
        return f"The optimal size grows as {frontiers[0].label.replace(': a = ', ', C to the power ')}"
    known = [one.interval for one in frontiers if one.interval is not None]
    if len(known) < len(frontiers):
        return f"{len(frontiers)} methods read the exponent of N*(C) as {numbers}; not all give an interval"
    shared = max(low for low, _ in known) <= min(high for _, high in known)
    words = "their intervals share a value" if shared else "their intervals do not all overlap"
    return f"{len(frontiers)} methods read the exponent of N*(C) as {numbers}; {words}"


def _at_the_end(frontiers: Sequence[MethodFrontier]) -> str:
    """N* at the largest compute that all laws reach: equal exponents may still differ in size."""
    C = min(one.law["flops"][-1] for one in frontiers)
    sizes = [
        float(np.exp(np.interp(np.log(C), np.log(one.law["flops"]), np.log(one.law["params"]))))
        for one in frontiers
    ]
    return f"At C = {text.power(C)} N* is {text.listed([text.count(size) for size in sizes])}."


def _frontier_chart(frontiers: Sequence[MethodFrontier]) -> alt.LayerChart:
    laws, points = pl.concat(one.law for one in frontiers), pl.concat(one.points for one in frontiers)
    ends = marks.span(laws["flops"], points["flops"])
    x = log_axis(alt.X, "flops", "Training compute C, FLOP", *ends, room=1.3, labels=POWERS)
    ends = marks.span(laws["params"], points["params"])
    y = log_axis(alt.Y, "params", "Optimal parameters N*", *ends, room=1.3)
    layers: list[alt.Chart] = []
    for one, colour, shape in zip(frontiers, cycle(COLOURS), cycle(marks.SHAPES)):
        layers.append(marks.band(one.law, x, y, colour=colour, opacity=0.14))
        layers.append(marks.line(one.law, x, y, colour=colour))
        for used, rows in one.points.group_by("used", maintain_order=True):
            mark = marks.chart_of(rows).mark_point(
                filled=used[0], shape=shape, size=60, color=colour, strokeWidth=1.6, opacity=1
            )
            layers.append(mark.encode(x, y))
    labels = [
        {"params": one.law["params"][-1], "label": one.label, "colour": colour}
        for one, colour in zip(frontiers, cycle(COLOURS))
    ]
    layers.append(marks.end_labels(pl.DataFrame(labels), marks.EDGE, y, HEIGHT))
    return marks.panel(layers, WIDTH, HEIGHT)
