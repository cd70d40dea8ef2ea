"""The pictures of the reveal: loss by position, and what the texts share with the training text."""

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, QUIET, linear_axis, log_axis
from isoloss.teach.prose import figure
from isoloss.teach.result import Tables

WIDTH, HEIGHT = 560, 340
NAMES = {"transformer": "Transformer", "lstm": "LSTM", "held-out text": "Held-out text, by people"}
LOOKS: dict[str, marks.Look] = {
    "transformer": (FAMILY_COLOURS["transformer"], "circle", [1, 0]),
    "lstm": (FAMILY_COLOURS["lstm"], "square", [6, 3]),
    "held-out text": (QUIET, "diamond", [2, 2]),
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
    words = {"verdict": verdict_of(judgement), "judgement": judgement, "seeds": seeds, "context": context}
    return figure("showdown", "loss-by-position", chart, table, **words, vocabulary=f"{about['vocab']:,}")


def by_copies(tables: Tables, *, judgement: str) -> Figure:
    table = pl.DataFrame(tables["novelty"]).filter(pl.col("measure").is_in(["copied_4", "copied_8"]))
    runs = {"copied_4": "runs of 4 words", "copied_8": "runs of 8 words"}
    rows = marks.with_looks(table, "side", LOOKS).with_columns(
        pl.col("label").replace_strict(NAMES), pl.col("measure").replace_strict(runs).alias("run")
    )
    x = alt.X("value:Q", title="Share of a text's runs that the training text holds").axis(format=".0%")
    y = alt.Y("label:N", title=None, sort=list(NAMES.values()))
    row = alt.Row("run:N", title=None).header(labelAngle=0, labelAlign="left", labelOrient="top")
    base = marks.chart_of(rows)
    chart = (
        alt.layer(
            base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=marks.COLOUR),
            base.mark_point(filled=True, size=90, opacity=1).encode(
                x, y, color=marks.COLOUR, shape=marks.SHAPE
            ),
        )
        .properties(width=WIDTH - 120, height=90)
        .facet(row=row)
    )
    verdict = verdict_of(judgement.split(". ")[0])
    words = {"verdict": verdict, "judgement": judgement, "texts": table["n"].min()}
    return figure("showdown", "copied-runs", chart, table, **words)


def verdict_of(judgement: str) -> str:
    """The end of a sentence, for a title."""
    return judgement.rstrip(".").rsplit(": ", 1)[-1]
