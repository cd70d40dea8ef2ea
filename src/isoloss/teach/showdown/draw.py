"""The pictures of the reveal: loss by position, and what the texts share with the training text."""

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import QUIET, family_colour, linear_axis, log_axis
from isoloss.teach.result import Tables

WIDTH, HEIGHT = 560, 340
LOOKS = {
    "transformer": ("Transformer", "circle", [1, 0]),
    "lstm": ("LSTM", "square", [6, 3]),
    "held-out text": ("Held-out text, by people", "diamond", [2, 2]),
}


def by_position(tables: Tables, *, judgement: str) -> Figure:
    table = pl.DataFrame(tables["positions"])
    about, seeds = tables["recorded"][0], int(table["n"].min())
    context = int(table["last"].max())
    drawn = looking(table, "family")
    x = log_axis(alt.X, "position", "Token index in the window", 1, context, room=1.05)
    low, high = marks.span(table["low"], table["high"])
    y = linear_axis("value", "Held-out loss (nats per token)", low, high)
    ends = drawn.filter(pl.col("last") == context).with_columns(pl.col("name").alias("label"))
    layers = [
        marks.band(drawn, x, y, opacity=0.18, by="name"),
        *[
            marks.line(drawn.filter(pl.col("family") == family), x, y, dash=LOOKS[family][2])
            for family in table["family"].unique(maintain_order=True)
        ],
        marks.points(drawn, x, y, shape=marks.SHAPE, size=34),
        marks.end_labels(ends, marks.EDGE, y, HEIGHT),
    ]
    chart = marks.panel(layers, WIDTH, HEIGHT)
    title = finding("Loss by position", judgement)
    subtitle = (
        f"RECORDED. Mean of {seeds} seeds of each family; shade: 95% t interval over seeds, noise pooled. "
        f"{about['vocab']:,}-token vocabulary, windows of {context}; a bin an octave."
    )
    return Figure(
        name="loss-by-position",
        chart=chart,
        title=title,
        subtitle=subtitle,
        description="Held-out loss against token index on a log axis, a curve with a band for each family.",
        shows=judgement,
        would_change="Longer windows, more training, larger models. Both read the same windows: wiggles that "
        "they share are the text's.",
        table=table,
    )


def by_copies(tables: Tables, *, judgement: str) -> Figure:
    table = pl.DataFrame(tables["novelty"]).filter(pl.col("measure").is_in(["copied_4", "copied_8"]))
    runs = {"copied_4": "runs of 4 words", "copied_8": "runs of 8 words"}
    drawn = looking(table, "side").with_columns(pl.col("measure").replace_strict(runs).alias("run"))
    order = [LOOKS[side][0] for side in LOOKS]
    x = alt.X("value:Q", title="Share of a text's runs that the training text holds").axis(format=".0%")
    y = alt.Y("name:N", title=None, sort=order)
    row = alt.Row("run:N", title=None).header(labelAngle=0, labelAlign="left", labelOrient="top")
    base = marks.chart_of(drawn)
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
    title = finding("Runs of words also found in the training text", judgement.split(". ")[0])
    subtitle = f"Mean over {table['n'].min()} texts a side, 95% interval over texts (t; Wilson if all are 0)."
    return Figure(
        name="copied-runs",
        chart=chart,
        title=title,
        subtitle=subtitle,
        description="A point with its interval for each side, for runs of 4 and of 8 words.",
        shows=judgement,
        would_change="Longer texts, lower temperature, and training that reads its text many times.",
        table=table,
    )


def looking(table: pl.DataFrame, column: str) -> pl.DataFrame:
    """With each side's name, colour and marker."""
    looks = [LOOKS[side] for side in table[column]]
    colours = [family_colour(side) if side != "held-out text" else QUIET for side in table[column]]
    return table.with_columns(
        pl.Series("name", [look[0] for look in looks]),
        pl.Series("shape", [look[1] for look in looks]),
        pl.Series("colour", colours),
    )


def finding(subject: str, judgement: str) -> str:
    """The verdict at the end of a sentence, as a title."""
    return f"{subject}: {judgement.rstrip('.').rsplit(': ', 1)[-1]}"
