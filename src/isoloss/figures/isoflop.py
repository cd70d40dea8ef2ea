"""The compute frontier N*(C) as several methods see it: IsoFLOP budgets, the envelope, a law."""

from collections.abc import Sequence
from itertools import cycle

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.frontier import printed_sizes
from isoloss.analysis.method_frontiers import GRID, MethodFrontier, all_frontiers
from isoloss.errors import InputError
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.isoflop_curves import curves_figure
from isoloss.figures.plan import printed_marks
from isoloss.figures.style import POWERS, log_axis
from isoloss.plans.methods import ExponentsByMethod

WIDTH, HEIGHT = 560, 400
COLOURS = ("#0072B2", "#CC5500", "#00845f", "#3f3f3f")


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


def pictures(exponents: ExponentsByMethod, loss_unit: str = "nats per token") -> list[Figure]:
    """The curves by budget, and the compute frontier by every method that gives one."""
    curves = [] if exponents.isoflop is None else [curves_figure(exponents.isoflop, loss_unit=loss_unit)]
    frontiers = all_frontiers(exponents)
    return [*curves, frontier_figure(frontiers)] if frontiers else curves


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
    rules = printed_sizes(np.geomspace(*ends, GRID)).filter(size="params").rename({"value": "params"})
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
