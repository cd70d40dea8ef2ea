"""Where the law misses: observed against law, and residuals along each input."""

from dataclasses import replace

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.fit_doubts import beyond_words, framed
from isoloss.analysis.fit_rows import (
    inside_words,
    median_miss,
    residual_words,
    row_words,
    rows,
    spread_words,
    value_words,
    varied_inputs,
    words,
)
from isoloss.analysis.residual_bins import drift, means
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.fit import PANEL, PANELS_A_ROW, in_rows, levels_of
from isoloss.figures.style import PREDICTED, QUIET, REAL, axis
from isoloss.laws import Fit

OUTSIDE = "#CC5500"


def real_against_predicted(fit: Fit) -> Figure:
    """Each row's loss over the law's, with the interval of one new run. Raises Refusal without rows."""
    points = rows(fit)
    known = points["low"].null_count() == 0
    inside = (points["low"] <= points["observed"]) & (points["observed"] <= points["high"])
    hit = inside | (not known)
    points = points.with_columns(
        inside.alias("inside"),
        # Two symbols besides two colours.
        pl.when(hit).then(pl.lit(REAL)).otherwise(pl.lit(OUTSIDE)).alias("colour"),
        pl.when(hit).then(pl.lit("circle")).otherwise(pl.lit("cross")).alias("shape"),
    )
    off = spread_words(fit, median_miss(fit, points))
    if known:
        title = inside_words("rows", int(inside.sum()), points.height, fit.level)
        how = f"bars: {text.level(fit.level)} interval of one new run; crosses: rows outside it"
    else:
        title = f"The median of {points.height} rows is {off} off the law"
        how = "the fit supports no interval"
    log = fit.form.gives != "loss"
    both = pl.concat([points["law"], points["observed"]])
    x = axis(alt.X, "law", f"{value_words(fit)}, by the law", both, log=log)
    y = axis(alt.Y, "observed", f"{value_words(fit)}, observed", both, log=log)
    # The scales show a little more than the rows; the identity runs through.
    low, high = marks.domain(x)
    ends = pl.DataFrame({"law": [low, high], "observed": [low, high]})
    layers = [marks.line(ends, x, y, colour=QUIET, dash=[5, 4], width=1.3)]
    if known:
        bars = points.select("law", "low", "high")
        layers.append(marks.bars(bars, x, y, colour=PREDICTED, opacity=0.45, width=2))
    shown = points.select("law", "observed", "colour", "shape")
    layers.append(marks.points(shown, x, y, shape=marks.SHAPE, size=34, opacity=0.85, clip=True))
    chart, table = marks.panel(layers, 440, 440), points.drop("colour", "shape", "label")
    return captioned(
        "real-against-predicted", chart, title, table, rows=row_words(fit), off=f"median {off} off", marks=how
    )


def residuals(fit: Fit) -> Figure:
    """Residuals along each input with the means of bins: a law of the wrong form leaves a bend in them.

    The interval of a bin's mean is t over what counts as independent in it (designs, or clusters), from the
    noise of one run. Raises Refusal for a fit without rows.
    """
    points, inputs = rows(fit), varied_inputs(fit)
    bins = means(fit, points)
    title = drift(fit, bins)
    charts = [_along(fit, points, bins, inputs, index) for index in range(len(inputs))]
    bars = f" with {text.level(fit.level)} t intervals" if bins["low"].null_count() == 0 else ""
    drawn = captioned(
        "residuals",
        in_rows(charts),
        title,
        bins,
        rows=row_words(fit),
        bars=bars,
        beyond=beyond_words(points),
        inputs=text.listed(list(map(words, inputs))),
    )
    return replace(drawn, characters=62) if len(inputs) < 3 else drawn


def _along(
    fit: Fit, points: pl.DataFrame, bins: pl.DataFrame, inputs: list[str], index: int
) -> alt.LayerChart:
    """The panel of one input: residuals, and over them the means of its bins."""
    name, narrow = inputs[index], len(inputs) > 1
    shown = points.filter(pl.col(name) > 0).select(name, "residual")
    x = axis(alt.X, name, words(name), shown[name], narrow=narrow)
    middles = bins.filter(pl.col("input") == name).select(pl.col("at").alias(name), "mean", "low", "high")
    y_title = residual_words(fit) if index % PANELS_A_ROW == 0 else ""
    y = axis(alt.Y, "residual", y_title, [*framed(points), *middles["mean"], 0.0], log=False)
    layers = [*levels_of(fit, y), marks.points(shown, x, y, colour=REAL, size=20, opacity=0.4, clip=True)]
    if middles["low"].null_count() == 0:
        layers.append(marks.bars(middles, x, y, colour=OUTSIDE, width=2, clip=True))
    mean = marks.renamed(y, "mean")
    layers.append(marks.points(middles, x, mean, colour=OUTSIDE, shape="diamond", size=60))
    return marks.panel(layers, PANEL if narrow else 2 * PANEL, PANEL - 30)
