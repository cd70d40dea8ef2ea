"""Learning curves (a thin line a seed, the median thick), a sweep over cells, accuracy by distance."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.style import INK, QUIET, log_axis
from isoloss.teach.amnesia.names import LOOKS
from isoloss.teach.amnesia.outcomes import cells
from isoloss.teach.amnesia.verdicts import bests
from isoloss.teach.result import Row

WIDTH, HEIGHT = 560, 330
TITLE_CHARACTERS = 78
DASH = alt.StrokeDash("side:N", legend=None).scale(
    domain=list(LOOKS), range=[dash for _, dash, _ in LOOKS.values()]
)


def looks(side: str) -> Row:
    colour, _, shape = LOOKS[side]
    return {"colour": colour, "shape": shape}


def at_best_rate(rows: Sequence[Row]) -> list[Row]:
    chosen = {side: one.rate for side, one in bests(rows).items()}
    return [row for row in rows if row["rate"] == chosen[row["side"]]]


def how_counted(rows: Sequence[Row]) -> str:
    return (
        f"Thin: a seed with its Wilson 95% interval; thick: the median of seeds; n = {rows[0]['n']:,} "
        "unseen strings a point; each side at its best rate, ended at 99% or the cap"
    )


def accuracy_axis() -> alt.Y:
    return (
        alt.Y("value:Q", title="Right answers, share of unseen strings")
        .scale(domain=[0, 1.03], nice=False)
        .axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1.0], format=".0%")
    )


def curves(
    rows: Sequence[Row], baselines: Sequence[tuple[float, str]]
) -> tuple[alt.LayerChart, pl.DataFrame]:
    """Accuracy against updates of one cell, each side at its best rate. ``baselines``: height and name."""
    drawn = [row | looks(row["side"]) for row in at_best_rate(rows)]
    last = max(row["update"] for row in drawn)
    x = alt.X("update:Q", title="Updates").scale(domain=[0, last], nice=False)
    return _chart(drawn, x, baselines)


def by_distance(
    rows: Sequence[Row], baselines: Sequence[tuple[float, str]]
) -> tuple[alt.LayerChart, pl.DataFrame]:
    """Accuracy against the distance from the answer to the question."""
    drawn = [row | looks(row["side"]) for row in rows]
    far = max(row["distance"] for row in drawn)
    ticks = sorted({row["distance"] for row in drawn})
    title = "Distance from the letter to the question, tokens"
    x = log_axis(alt.X, "distance", title, 1, far, room=1.05, ticks=ticks, labels="d")
    return _chart(drawn, x, baselines)


def _chart(
    drawn: list[Row], x: alt.X, baselines: Sequence[tuple[float, str]]
) -> tuple[alt.LayerChart, pl.DataFrame]:
    table, y, across = pl.DataFrame(drawn, infer_schema_length=None), accuracy_axis(), marks.column_of(x)
    middle = (
        pl.DataFrame(held(drawn, across))
        .group_by("side", "colour", "shape", across, maintain_order=True)
        .agg(pl.col("value").median())
        .sort(across, maintain_order=True)
    )
    levels = pl.DataFrame(
        [{"value": height, "label": name, "colour": INK} for height, name in baselines],
        schema={"value": pl.Float64, "label": pl.String, "colour": pl.String},
    )
    ends = middle.group_by("side", maintain_order=True).last().rename({"side": "label"})
    labels = pl.concat([ends.select(levels.columns), levels])
    layers = [
        marks.chart_of(levels).mark_rule(strokeDash=[3, 3], color=QUIET).encode(y),
        marks.bars(table, x, y, width=1, opacity=0.5),
        *marks.seeds_and_median(table, x, y, dash=DASH, shape=marks.SHAPE, by="side", middle=middle),
        marks.end_labels(labels, marks.EDGE, y, HEIGHT),
    ]
    return marks.panel(layers, WIDTH, HEIGHT), table.drop("colour", "shape")


def held(rows: Sequence[Row], across: str) -> list[Row]:
    """A row a seed wherever its side has any: a seed that has ended counts on with its last value.

    Else the median would be that of the slow seeds alone.
    """
    found: list[Row] = []
    for (_,), own in cells(rows, ("side",)).items():
        places = sorted({row[across] for row in own})
        for (_,), seed in cells(own, ("seed",)).items():
            last, there = None, {row[across]: row for row in seed}
            for place in places:
                last = there.get(place, last)
                if last is not None:
                    kept = {name: last[name] for name in ("side", "colour", "shape", "value")}
                    found.append(kept | {across: place})
    return found


def sweep(
    rows: Sequence[Row], names: Sequence[str], levels: Sequence[str]
) -> tuple[alt.LayerChart, pl.DataFrame]:
    """Where every seed ended, a row of points a side and cell, each side at its best rate in the cell."""
    ends: dict[tuple, Row] = {}
    for row in rows:
        key = (*(row[name] for name in names), row["side"], row["rate"], row["seed"])
        if key not in ends or ends[key]["update"] <= row["update"]:
            ends[key] = row
    chosen = {
        (key, side): one.rate for key, own in cells(rows, names).items() for side, one in bests(own).items()
    }
    drawn = [
        row | looks(row["side"]) | {"cell": ", ".join(f"{name} {row[name]}" for name in names)}
        for row in ends.values()
        if chosen[(tuple(row[name] for name in names), row["side"])] == row["rate"]
    ]
    table = pl.DataFrame(drawn, infer_schema_length=None)
    x = (
        alt.X("value:Q", title="Right answers at the end, share of unseen strings")
        .scale(domain=[0, 1.03], nice=False)
        .axis(format=".0%")
    )
    y = alt.Y("side:N", title=None, sort=list(LOOKS)).axis(labelLimit=200)
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
    columns = [name for name in table.columns if name not in ("colour", "shape")]
    return chart, table.select(columns)
