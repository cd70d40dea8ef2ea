"""How the parameters of a fit hang together."""

import altair as alt
import numpy as np
import polars as pl

from isoloss.analysis.parameters import correlation_words, correlations, pair_verdict
from isoloss.errors import Refusal
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.marks import COLOUR, chart_of, panel
from isoloss.figures.style import INK
from isoloss.laws import Fit

CELL = 62
SCALE = ("#0072B2", "#f7f7f7", "#CC5500")
"""From -1 over 0 to 1: blue to orange, told apart with any colour vision."""


def figure(fit: Fit) -> Figure:
    """The matrix, its numbers written in. Raises Refusal for fewer than two free parameters."""
    names, matrix = correlations(fit)
    if len(names) < 2:
        raise Refusal("one free parameter has nothing to correlate with", mend="free another parameter")
    count = len(names)
    pairs = [
        (names[i], names[j], float(matrix[i, j]))
        for i in range(count)
        for j in range(i)
        if not any({names[i], names[j]} <= set(group) for group in fit.tied)
    ]
    table = pl.DataFrame(
        {"first": np.repeat(names, count), "second": np.tile(names, count), "correlation": matrix.ravel()}
    )
    correlation = pl.col("correlation")
    cells_table = table.with_columns(
        correlation.round(2).map_elements(correlation_words, return_dtype=pl.String).alias("words"),
        pl.when(correlation.abs() > 0.85).then(pl.lit("white")).otherwise(pl.lit(INK)).alias("colour"),
    )
    order = list(names)
    x = alt.X(
        "second:N",
        sort=order,
        title=None,
        axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False),
    )
    y = alt.Y("first:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
    colour = alt.Color(
        "correlation:Q",
        scale=alt.Scale(domain=[-1, 0, 1], range=list(SCALE)),
        legend=alt.Legend(title="Correlation", gradientLength=min(CELL * len(names), 200)),
    )
    cells = chart_of(cells_table).mark_rect(stroke="white", strokeWidth=2).encode(x, y, color=colour)
    numbers = chart_of(cells_table).mark_text(fontSize=13).encode(x, y, text="words:N", color=COLOUR)
    side = CELL * len(names)
    chart = panel([cells, numbers], side, side).resolve_scale(color="independent")
    return captioned("correlations", chart, pair_verdict(pairs), table)
