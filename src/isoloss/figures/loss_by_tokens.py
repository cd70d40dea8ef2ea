"""The comparison of families at every D that both reached, side by side."""

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.by_params import ByParams
from isoloss.analysis.by_tokens import ByTokens, verdict
from isoloss.analysis.points import LEVEL_WORDS, seeds_phrase
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.loss_by_params import ROOM, looks_of
from isoloss.figures.style import linear_axis, log_axis

PANEL = 230


def figure(data: ByTokens) -> Figure:
    """A panel for each D."""
    rows = pl.concat(
        curve.points.with_columns(*look, tokens=pl.lit(each.tokens), panel=pl.lit(panel_name(each)))
        for each in data
        for curve, look in looks_of(each.curves)
    )
    colour = marks.key(alt.Color, "curve", dict(rows.select("curve", "colour").iter_rows()))
    shape = marks.key(alt.Shape, "curve", dict(rows.select("curve", "shape").iter_rows()))
    x = log_axis(alt.X, "params", "Parameters N", *marks.span(rows["params"]), room=ROOM)
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(rows["loss"]))
    layers = [
        marks.line(rows, x, marks.renamed(y, "mean(loss)"), colour=colour, width=1.5),
        marks.points(rows, x, y, colour=colour, shape=shape, size=36, opacity=0.7),
    ]
    order = [panel_name(each) for each in data]
    faceted = marks.repeatable(rows, layers, PANEL, PANEL).facet(
        facet=alt.Facet("panel:N", sort=order, header=alt.Header(title=None, labelFontWeight="bold")),
        columns=3,
    )
    return captioned(
        "loss-by-params-each-d",
        faceted,
        text.capital(verdict(data)),
        rows.select("tokens", "curve", "params", "seed", "loss"),
        seeds=seeds_phrase(data[-1].points),
        level=LEVEL_WORDS,
    )


def panel_name(data: ByParams) -> str:
    return f"D = {text.count(data.tokens)}"
