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
from isoloss.figures.plan import printed_lines, printed_marks
from isoloss.figures.style import POWERS, log_axis
from isoloss.laws import Fit
from isoloss.laws.envelope import Envelope
from isoloss.laws.frontier import Frontier
from isoloss.laws.isoflop import IsoFlop
from isoloss.plans.curve import ALLOCATION_DRAWS, allocation_exponent, optima
from isoloss.plans.methods import ExponentsByMethod

WIDTH, HEIGHT = 560, 400
GRID = 25
POINTS = pl.Schema({"flops": pl.Float64, "params": pl.Float64, "used": pl.Boolean})
COLOURS = ("#0072B2", "#CC5500", "#00845f", "#3f3f3f")


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


def frontier_figure(frontiers: Sequence[MethodFrontier]) -> Figure:
    """N*(C) of one or more methods on log-log axes, each with its band; laws that papers print in grey.

    Raises InputError for none.
    """
    if not frontiers:
        raise InputError("there is no frontier to draw", mend="give one opinion or more")
    methods = "; ".join(frontier.label for frontier in frontiers)
    return captioned(
        "compute-frontier",
        _frontier_chart(frontiers),
        _verdict(frontiers),
        pl.concat(
            frontier.points.select(pl.lit(frontier.name).alias("method"), pl.all()) for frontier in frontiers
        ),
        levels=text.listed(sorted({text.level(frontier.level) for frontier in frontiers})),
        methods=methods,
        at_the_end=_at_the_end(frontiers),
    )


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
    C = np.geomspace(*marks.span(points["flops"]), GRID)
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


def pictures(exponents: ExponentsByMethod, loss_unit: str = "nats per token") -> list[Figure]:
    """The curves by budget, and the compute frontier by every method that gives one."""
    curves = [] if exponents.isoflop is None else [curves_figure(exponents.isoflop, loss_unit=loss_unit)]
    frontiers = all_frontiers(exponents)
    return [*curves, frontier_figure(frontiers)] if frontiers else curves


def all_frontiers(exponents: ExponentsByMethod) -> list[MethodFrontier]:
    """The budgets' reading, the envelope and the law, as far as there are any, for one picture."""
    frontiers = [] if exponents.isoflop is None else [budget_frontier(exponents.isoflop)]
    if exponents.envelope is not None:
        frontiers.append(envelope_frontier(exponents.envelope))
    if exponents.law is not None and frontiers:
        low, high = marks.span(*(frontier.points["flops"] for frontier in frontiers))
        with suppress(Refusal):
            frontiers.append(law_frontier(exponents.law, low, high, level=exponents.level))
    return frontiers


def _verdict(frontiers: Sequence[MethodFrontier]) -> str:
    numbers = text.listed([f"{frontier.exponent:.3f}" for frontier in frontiers])
    if len(frontiers) == 1:
        return f"The optimal size grows as {frontiers[0].label.replace(': a = ', ', C to the power ')}"
    intervals = [frontier.interval for frontier in frontiers if frontier.interval is not None]
    if len(intervals) < len(frontiers):
        return f"The methods read the exponent of N*(C) as {numbers}; not all give an interval"
    shared = max(low for low, _ in intervals) <= min(high for _, high in intervals)
    words = "their intervals overlap" if shared else "their intervals do not all overlap"
    sizes = _sizes_at_the_end(frontiers)[1]
    apart = (
        f", but their sizes differ {max(sizes) / min(sizes):.2g}-fold"
        if max(sizes) > 1.2 * min(sizes)
        else ""
    )
    return f"The methods read the exponent of N*(C) as {numbers}; {words}{apart}"


def _sizes_at_the_end(frontiers: Sequence[MethodFrontier]) -> tuple[float, list[float]]:
    """The largest compute that all laws reach, and N* there."""
    laws = [frontier.law for frontier in frontiers]
    C = min(law["flops"][-1] for law in laws)
    return C, [
        float(np.exp(np.interp(np.log(C), np.log(law["flops"]), np.log(law["params"])))) for law in laws
    ]


def _at_the_end(frontiers: Sequence[MethodFrontier]) -> str:
    """N* at the largest compute that all laws reach: equal exponents may still differ in size."""
    C, sizes = _sizes_at_the_end(frontiers)
    return f"At C = {text.power(C)} N* is {text.listed([text.count(size) for size in sizes])}."


def _frontier_chart(frontiers: Sequence[MethodFrontier]) -> alt.LayerChart:
    laws = pl.concat(frontier.law for frontier in frontiers)
    optima = pl.concat(frontier.points for frontier in frontiers)
    ends = marks.span(laws["flops"], optima["flops"])
    x = log_axis(alt.X, "flops", "Training compute C, FLOP", *ends, room=1.3, labels=POWERS)
    rules = printed_lines(np.geomspace(*ends, GRID)).filter(panel="params").rename({"value": "params"})
    ends = marks.span(laws["params"], optima["params"], rules["params"])
    y = log_axis(alt.Y, "params", "Optimal parameters N*", *ends, room=1.3)
    layers: list[alt.Chart] = [printed_marks(rules, x, y)]
    labels: list[dict[str, float | str]] = []
    for frontier, colour, shape in zip(frontiers, cycle(COLOURS), cycle(marks.SHAPES)):
        layers.append(marks.band(frontier.law, x, y, colour=colour, opacity=0.14))
        layers.append(marks.line(frontier.law, x, y, colour=colour))
        for used, rows in frontier.points.group_by("used", maintain_order=True):
            mark = marks.chart_of(rows).mark_point(
                filled=used[0], shape=shape, size=60, color=colour, strokeWidth=1.6, opacity=1
            )
            layers.append(mark.encode(x, y))
        labels.append({"params": frontier.law["params"][-1], "label": frontier.label, "colour": colour})
    layers.append(marks.end_labels(pl.DataFrame(labels), marks.EDGE, y, HEIGHT))
    return marks.panel(layers, WIDTH, HEIGHT)
