"""Lines of equal loss over training compute and parameters, with the size that reaches each for the least.

After Hoffmann et al. 2022 (arXiv 2203.15556), Fig. 4 left.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.frontier import Source, optimal_sizes, runs_of
from isoloss.analysis.iso_loss import contours, levels
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.plan import name_of
from isoloss.figures.style import INK, POWERS, log_axis
from isoloss.plans import Optima, Plan

WIDTH, HEIGHT = 560, 420
DASH = [5, 3]


def figure(source: Source, plan: Plan, other: Source | None = None) -> Figure:
    """Contours of the loss by a law or a forecast, the frontier, the runs and a plan on it.

    Those of ``other``, another law or the forecast of the same runs, are dashed.
    """
    best, runs = optimal_sizes(source, plan), runs_of(source, plan)
    there = np.isfinite(best.params_F) & np.isfinite(best.loss_F)
    losses = levels(float(best.loss_F[there].min()), float(best.loss_F[there].max()))
    lines = contours(source, plan, best, losses)
    sizes = lines["params"] if runs is None else pl.concat([lines["params"], runs["params"]])
    x = log_axis(alt.X, "flops", "Training compute C, FLOPs", *marks.span(best.flops_F), labels=POWERS)
    y = log_axis(alt.Y, "params", "Parameters N", *marks.span(sizes), room=1.1)
    # Where a line has its least compute it is named: no other line is near.
    names = _coloured(lines).sort("flops").group_by("loss", maintain_order=True).first()
    digits = max(len(f"{loss:g}".partition(".")[2]) for loss in names["loss"])
    names = names.with_columns(pl.Series("label", [f"{loss:.{digits}f}" for loss in names["loss"]]))
    planned = pl.DataFrame({"flops": [plan.flops], "params": [plan.params]})
    layers: list[alt.Chart] = []
    if runs is not None:
        ends = marks.span(lines["loss"])
        coloured = runs.with_columns(marks.on_ramp(runs["loss"].clip(*ends), *ends))
        layers.append(marks.points(coloured, x, y, size=20, opacity=0.8, clip=True))
    layers += _lines(lines, best, x, y)
    if other is not None:
        best_of_other = optimal_sizes(other, plan)
        layers += _lines(contours(other, plan, best, losses), best_of_other, x, y, dash=DASH)
    layers += [
        *_near_best(plan, x, y),
        marks.points(planned, x, y, colour=INK, shape="diamond", size=90),
        marks.chart_of(marks.in_letters(names))
        .mark_text(align="left", dx=5, dy=14, fontSize=11, fontWeight="bold", clip=True)
        .encode(x, y, text="label:N", color=marks.COLOUR),
    ]
    return captioned(
        "iso-loss",
        marks.panel(layers, WIDTH, HEIGHT),
        title_of(plan),
        lines,
        law=name_of(source),
        rule=f"{plan.flops_per_token:g}",
        flops=text.power(plan.flops),
        unit=source.loss_unit,
        points="" if runs is None else f"; dots: the {runs.height} runs used, coloured as the lines",
        other="" if other is None else f"; dashed: {name_of(other)}",
        lines=text.listed([f"{loss:g}" for loss in lines["loss"].unique().sort()]),
    )


def _coloured(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.with_columns(marks.on_ramp(lines["loss"], *marks.span(lines["loss"])))


def _lines(
    lines: pl.DataFrame, best: Optima, x: alt.X, y: alt.Y, dash: Sequence[int] | None = None
) -> list[alt.Chart]:
    """Contours and the frontier."""
    frontier = pl.DataFrame({"flops": best.flops_F, "params": best.params_F})
    frontier = frontier.filter(pl.col("params").is_finite())
    contour = marks.line(_coloured(lines), x, y, by="loss", width=1.6, clip=True, dash=dash)
    return [
        contour.encode(order="params:Q"),
        marks.line(frontier, x, y, colour=INK, width=2.5, clip=True, dash=dash),
    ]


def title_of(plan: Plan) -> str:
    """How far from the best size a model may be."""
    ends = None if plan.penalty is None else plan.penalty.within_10_percent
    if ends is None or None in ends:
        return f"The best model for {text.power(plan.flops)} FLOPs has {text.count(plan.params)} parameters"
    low, high = (plan.params * end for end in ends if end is not None)
    sizes = text.interval((low, high), text.count)
    return f"Sizes from {sizes} (bar) cost at most 10% more compute than the best"


def _near_best(plan: Plan, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A bar over the sizes at the plan's compute that reach its loss for at most 10% more."""
    ends = None if plan.penalty is None else plan.penalty.within_10_percent
    if ends is None or None in ends:
        return []
    low, high = (plan.params * end for end in ends if end is not None)
    bar = pl.DataFrame({"flops": [plan.flops], "low": [low], "high": [high]})
    return [marks.bars(bar, x, y, colour=INK, width=3, clip=True)]
