"""The picture of the reveal: loss by position."""

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, linear_axis, log_axis
from isoloss.teach.prose import figure
from isoloss.teach.result import Tables

WIDTH, HEIGHT = 560, 340
NAMES = {"transformer": "Transformer", "lstm": "LSTM"}
LOOKS: dict[str, marks.Look] = {
    "transformer": (FAMILY_COLOURS["transformer"], "circle", [1, 0]),
    "lstm": (FAMILY_COLOURS["lstm"], "square", [6, 3]),
}


def by_position(tables: Tables, *, judgement: str) -> Figure:
    table = pl.DataFrame(tables["positions"])
    about, seeds = tables["recorded"][0], min(row["n"] for row in tables["positions"])
    context = max(row["last"] for row in tables["positions"])
    rows = marks.with_looks(table, "family", LOOKS).with_columns(pl.col("label").replace_strict(NAMES))
    x = log_axis(alt.X, "position", "Token index in the window", 1, context, room=1.05)
    low, high = marks.span(table["low"], table["high"])
    y = linear_axis("value", "Held-out loss (nats per token)", low, high)
    layers = [
        marks.band(rows, x, y, opacity=0.18, by="label"),
        *[
            marks.line(rows.filter(pl.col("family") == family), x, y, dash=dash)
            for family, (_, _, dash) in LOOKS.items()
        ],
        marks.points(rows, x, y, shape=marks.SHAPE, size=34),
        marks.end_labels(rows.filter(pl.col("last") == context), marks.EDGE, y, HEIGHT),
    ]
    chart = marks.panel(layers, WIDTH, HEIGHT)
    verdict = judgement.rstrip(".").rsplit(": ", 1)[-1]
    words = {"verdict": verdict, "judgement": judgement, "seeds": seeds, "context": context}
    return figure("showdown", "loss-by-position", chart, table, **words, vocabulary=f"{about['vocab']:,}")
