"""Lines of equal loss over training compute and parameters, with the size that reaches each for the least.

After Hoffmann et al. 2022 (arXiv 2203.15556), Fig. 4 left.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl
from scipy.interpolate import RectBivariateSpline

from isoloss import text
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.plan import Source, fixed_inputs, name_of, optimal_sizes, runs_of
from isoloss.figures.style import INK, POWERS, REAL, log_axis
from isoloss.laws import Array
from isoloss.plans import Optima, Plan, surface_of
from isoloss.plans.loss_surface import LEAST_DRAWS

WIDTH, HEIGHT = 560, 420
LINES = 8
SIZES, BUDGETS = 49, 64
FINE = 8
"""Between these points of the law a cubic spline has so many: the loss is smooth over logs."""
REACH = 8.0
"""Lines are drawn over sizes within this factor of the best ones."""
DASH = [5, 3]


def figure(source: Source, plan: Plan, beside: Source | None = None) -> Figure:
    """Contours of the loss by a law or a forecast, the frontier, the runs and a plan on it.

    Those of ``beside``, another law or the forecast of the same runs, are dashed.
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
    names = names.with_columns(pl.Series("label", [f"{loss:g}" for loss in names["loss"]]))
    planned = pl.DataFrame({"flops": [plan.flops], "params": [plan.params]})
    layers: list[alt.Chart] = []
    if runs is not None:
        layers.append(marks.points(runs, x, y, colour=REAL, size=16, opacity=0.35, clip=True))
    layers += _lines(lines, best, x, y)
    if beside is not None:
        other = optimal_sizes(beside, plan)
        layers += _lines(contours(beside, plan, best, losses), other, x, y, dash=DASH)
    layers += [
        marks.points(planned, x, y, colour=INK, shape="diamond", size=90),
        marks.chart_of(names)
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
        unit=source.loss_unit,
        points="" if runs is None else f"; dots: the {runs.height} runs used",
        beside="" if beside is None else f"; dashed: {name_of(beside)}",
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
    flops = text.power(plan.flops)
    return f"At {flops} FLOPs, sizes from {sizes} cost at most 10% more compute than the best"


def contours(source: Source, plan: Plan, best: Optima, losses: Array) -> pl.DataFrame:
    """loss, params, flops: the compute at which each size reaches each loss, where it does in the picture."""
    there = np.isfinite(best.params_F) & np.isfinite(best.loss_F)
    low, high = marks.span(best.params_F[there])
    least, most = marks.span(best.flops_F[there])
    log_n_N = np.log(np.geomspace(low / REACH, high * REACH, SIZES))
    log_flops_B = np.log(np.geomspace(least / 100, most, BUDGETS))
    log_d_NB = log_flops_B - log_n_N[:, None] - np.log(plan.flops_per_token)
    surface = surface_of(source, fixed_inputs(plan), LEAST_DRAWS)
    smooth = RectBivariateSpline(log_n_N, log_flops_B, surface.loss(0, log_n_N[:, None], log_d_NB))
    log_n_N = np.linspace(log_n_N[0], log_n_N[-1], FINE * SIZES)
    log_flops_B = np.linspace(log_flops_B[0], log_flops_B[-1], FINE * BUDGETS)
    loss_NB = smooth(log_n_N, log_flops_B)
    parts = []
    for loss in losses:
        reached_N = [np.interp(-loss, -row_B, log_flops_B, np.nan, np.nan) for row_B in loss_NB]
        parts.append(pl.DataFrame({"loss": loss, "params": np.exp(log_n_N), "flops": np.exp(reached_N)}))
    return pl.concat(parts).filter(pl.col("flops").is_finite() & (pl.col("flops") >= least))


def levels(low: float, high: float) -> Array:
    """About ``LINES`` round losses strictly between two."""
    step = 10.0 ** np.floor(np.log10((high - low) / LINES))
    step *= min((1, 2, 5, 10), key=lambda k: abs(np.log((high - low) / (LINES * step * k))))
    return np.round(np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step, 9)
