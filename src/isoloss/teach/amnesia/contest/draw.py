"""Learning curves (a thin line a seed, the median thick), a sweep over cells, accuracy by distance."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.style import INK, QUIET, log_axis
from isoloss.teach.amnesia.contest.outcomes import spoken
from isoloss.teach.amnesia.names import LOOKS

WIDTH, HEIGHT = 315, 245
DASH = alt.StrokeDash("side:N", legend=None).scale(
    domain=list(LOOKS), range=[dash for _, dash, _ in LOOKS.values()]
)

Drawing = tuple[alt.TopLevelMixin, pl.DataFrame]
"""A chart and the numbers in it."""


def with_looks(rows: pl.DataFrame) -> pl.DataFrame:
    """The colour, the shape and the name of each row's side beside it, as sentences call it."""
    looks = {side: (colour, shape, dash) for side, (colour, dash, shape) in LOOKS.items()}
    named = pl.col("side").map_elements(spoken, pl.String)
    return marks.with_looks(rows, "side", looks).with_columns(label=named)


def numbers_of(table: pl.DataFrame) -> pl.DataFrame:
    """The numbers behind a drawing, its sides by their names in it."""
    return table.with_columns(side="label").drop("colour", "shape", "label")


def curves(rows: pl.DataFrame, levels: Sequence[tuple[float, str]], last: int) -> Drawing:
    """Accuracy against updates of one cell, a rate a side. ``levels``: height and name of each baseline.

    ``last``: the update at which training ends, so that the axis stands still while it runs.
    """
    x = alt.X("update:Q", title="Updates").scale(domain=[0, last], nice=False).axis(tickCount=6)
    return _over(x, rows, levels)


def by_distance(rows: pl.DataFrame, levels: Sequence[tuple[float, str]]) -> Drawing:
    """Accuracy against the distance from the answer to the question."""
    ticks = rows["distance"].unique().sort().to_list()
    title = "Distance from the letter to the question, tokens"
    x = log_axis(alt.X, "distance", title, 1, ticks[-1], room=1.05, ticks=ticks, labels="d")
    return _over(x, rows, levels)


def _over(x: alt.X, rows: pl.DataFrame, levels: Sequence[tuple[float, str]]) -> Drawing:
    table, across = with_looks(rows), marks.column_of(x)
    y = (
        alt.Y("value:Q", title="Right answers, share of unseen strings")
        .scale(domain=[0, 1.03], nice=False)
        .axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1.0], format=".0%")
    )
    middle = (
        carry_on(table, across)
        .group_by("side", "label", "colour", "shape", across, maintain_order=True)
        .agg(pl.col("value").median())
        .sort(across, maintain_order=True)
    )
    baselines = pl.DataFrame(
        [{"value": height, "label": name, "colour": INK} for height, name in levels],
        schema={"value": pl.Float64, "label": pl.String, "colour": pl.String},
    )
    ends = middle.group_by("side", maintain_order=True).last()
    far = pl.lit(marks.domain(x)[1], pl.Float64).alias(across)
    labels = pl.concat(
        [ends.select(*baselines.columns, pl.col(across).cast(pl.Float64)), baselines.with_columns(far)]
    )
    layers = [
        marks.chart_of(baselines).mark_rule(strokeDash=[3, 3], color=QUIET).encode(y),
        marks.bars(table, x, y, width=1, opacity=0.5),
        *marks.seeds_and_median(table, x, y, dash=DASH, shape=marks.SHAPE, by="side", middle=middle),
        *marks.leaders(labels, x, y, HEIGHT),
        marks.end_labels(labels, marks.EDGE, y, HEIGHT),
    ]
    return marks.panel(layers, WIDTH, HEIGHT), numbers_of(table)


def carry_on(rows: pl.DataFrame, across: str) -> pl.DataFrame:
    """A row a seed wherever its side has any: a seed that has ended counts on with its last value.

    Else the median would be that of the slow seeds alone.
    """
    places = rows.select("side", "label", "colour", "shape", across).unique(maintain_order=True)
    seeds = rows.select("side", "seed").unique(maintain_order=True)
    return (
        places.join(seeds, on="side", maintain_order="left_right")
        .join(rows.select("side", "seed", across, "value"), on=["side", "seed", across], how="left")
        .sort(across, maintain_order=True)
        .with_columns(pl.col("value").forward_fill().over("side", "seed"))
        .drop_nulls("value")
    )


def sweep(rows: pl.DataFrame, names: Sequence[str], levels: Sequence[str]) -> Drawing:
    """Where every seed ended, a row of points a side and cell; ``levels``: columns of the baselines."""
    ends = rows.group_by(*names, "side", "rate", "seed", maintain_order=True).last().select(rows.columns)
    label = pl.format(", ".join(f"{name} {{}}" for name in names), *names).alias("cell")
    table = with_looks(ends).with_columns(label)
    x = (
        alt.X("value:Q", title="Right answers at the end, share of unseen strings")
        .scale(domain=[0, 1.03], nice=False)
        .axis(format=".0%")
    )
    y = alt.Y("label:N", title=None, sort=list(map(spoken, LOOKS))).axis(labelLimit=200)
    base = marks.chart_of(table)
    parts = [
        base.mark_rule(opacity=0.6).encode(alt.X("low:Q"), alt.X2("high:Q"), y, color=marks.COLOUR),
        base.mark_point(filled=True, size=60, opacity=0.9).encode(
            x, y, color=marks.COLOUR, shape=marks.SHAPE
        ),
        *(base.mark_tick(color=INK, thickness=1.5, size=22).encode(alt.X(f"{mark}:Q"), y) for mark in levels),
    ]
    inside = alt.layer(*parts).properties(width=WIDTH, height=26 * table["side"].n_unique())
    chart = inside.facet(
        spacing=4,
        row=alt.Row("cell:N", title=None, sort=None).header(
            labelAngle=0, labelOrient="top", labelAnchor="start", labelPadding=2
        ),
    )
    return chart, numbers_of(table)
