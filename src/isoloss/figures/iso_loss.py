"""Lines of equal loss over training compute and parameters, with the size that reaches each for the least.

After Hoffmann et al. 2022 (arXiv 2203.15556), Fig. 4 left.
"""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.plan import fixed_inputs, optimal_sizes, runs_of
from isoloss.figures.style import INK, POWERS, REAL, log_axis
from isoloss.laws import Array, Fit
from isoloss.plans import Plan
from isoloss.plans.curve import Optima
from isoloss.plans.fixed_inputs import law_inputs

WIDTH, HEIGHT = 560, 420
LINES = 8
SIZES, BUDGETS = 61, 400
REACH = 8.0
"""Lines are drawn over sizes within this factor of the best ones."""


def figure(fit: Fit, plan: Plan) -> Figure:
    """Contours of a law's loss, its frontier, its runs and a plan on it."""
    best, runs = optimal_sizes(fit, plan), runs_of(fit, plan)
    lines = contours(fit, plan, best)
    sizes = lines["params"] if runs is None else pl.concat([lines["params"], runs["params"]])
    x = log_axis(alt.X, "flops", "Training compute C, FLOPs", *marks.span(best.flops_F), labels=POWERS)
    y = log_axis(alt.Y, "params", "Parameters N", *marks.span(sizes), room=1.1)
    drawn = lines.with_columns(marks.on_ramp(lines["loss"], *marks.span(lines["loss"])))
    # Where a line has its least compute it is named: no other line is near.
    names = drawn.sort("flops").group_by("loss", maintain_order=True).first()
    names = names.with_columns(pl.Series("label", [f"{loss:g}" for loss in names["loss"]]))
    frontier = pl.DataFrame({"flops": best.flops_F, "params": best.params_F}).filter(
        pl.col("params").is_finite()
    )
    planned = pl.DataFrame({"flops": [plan.flops], "params": [plan.params]})
    layers: list[alt.Chart] = []
    if runs is not None:
        layers.append(marks.points(runs, x, y, colour=REAL, size=16, opacity=0.35, clip=True))
    layers += [
        marks.line(drawn, x, y, by="loss", width=1.6, clip=True).encode(order="params:Q"),
        marks.line(frontier, x, y, colour=INK, width=2.5, clip=True),
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
        law=fit.law,
        rule=f"{plan.flops_per_token:g}",
        unit=fit.loss_unit,
        points="" if runs is None else f"; dots: the {runs.height} runs fitted",
        lines=text.listed([f"{loss:g}" for loss in lines["loss"].unique().sort()]),
    )


def title_of(plan: Plan) -> str:
    """How far from the best size a model may be."""
    ends = None if plan.penalty is None else plan.penalty.within_10_percent
    if ends is None or None in ends:
        return f"The best model for {text.power(plan.flops)} FLOPs has {text.count(plan.params)} parameters"
    low, high = (plan.params * end for end in ends if end is not None)
    sizes = text.interval((low, high), text.count)
    flops = text.power(plan.flops)
    return f"At {flops} FLOPs, sizes from {sizes} cost at most 10% more compute than the best"


def contours(fit: Fit, plan: Plan, best: Optima) -> pl.DataFrame:
    """loss, params, flops: the compute at which each size reaches each loss, where it does in the picture."""
    there = np.isfinite(best.params_F) & np.isfinite(best.loss_F)
    low, high = marks.span(best.params_F[there])
    params_N = np.geomspace(low / REACH, high * REACH, SIZES)
    flops_B = np.geomspace(best.flops_F[there].min() / 100, best.flops_F[there].max(), BUDGETS)
    params_NB, flops_NB = np.meshgrid(params_N, flops_B, indexing="ij")
    tokens_NB = flops_NB / (plan.flops_per_token * params_NB)
    inputs = law_inputs(fit.form, fixed_inputs(plan), params_NB.ravel(), tokens_NB.ravel())
    loss_NB = np.asarray(fit.predict(level=None, **inputs).loss).reshape(params_NB.shape)
    parts = []
    for loss in levels(float(best.loss_F[there].min()), float(best.loss_F[there].max())):
        log_flops_N = [np.interp(-loss, -row_B, np.log(flops_B), np.nan, np.nan) for row_B in loss_NB]
        parts.append(pl.DataFrame({"loss": loss, "params": params_N, "flops": np.exp(log_flops_N)}))
    rows = pl.concat(parts).filter(pl.col("flops").is_finite())
    return rows.filter(pl.col("flops") >= float(best.flops_F[there].min()))


def levels(low: float, high: float) -> Array:
    """About ``LINES`` round losses strictly between two."""
    step = 10.0 ** np.floor(np.log10((high - low) / LINES))
    step *= min((1, 2, 5, 10), key=lambda k: abs(np.log((high - low) / (LINES * step * k))))
    return np.round(np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step, 9)
