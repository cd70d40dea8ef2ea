"""Two pictures of a race: every runner's time, and the whole block against the LSTM layer everywhere."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, INK, OTHER_COLOURS, QUIET, log_axis, shades
from isoloss.teach.prose import figure
from isoloss.teach.race.counts import ALONE, BLOCK, FUSED, LSTM, NAIVE
from isoloss.teach.race.ratios import compared
from isoloss.teach.race.timing import BOTH, FORWARD, MODES
from isoloss.teach.result import Row, Tables
from isoloss.text import capital, plural

WIDTH, HEIGHT = 290, 300
LSTM_SHADES, ATTENTION_SHADES = (shades(FAMILY_COLOURS[name], 3) for name in ("lstm", "transformer"))
Look = tuple[str, str, list[int]]
LOOKS: dict[str, Look] = {
    NAIVE.name: (LSTM_SHADES[2], "triangle-up", [2, 3]),
    FUSED.name: (LSTM_SHADES[1], "diamond", [7, 4]),
    LSTM.name: (LSTM_SHADES[0], "circle", [1, 0]),
    ALONE.name: (ATTENTION_SHADES[2], "square", [7, 4]),
    BLOCK.name: (ATTENTION_SHADES[0], "cross", [1, 0]),
}
"""Colour, point and dash: vermilion for what computes an LSTM, blue for attention."""


def times(tables: Tables, setup: str, mode: str, layers: Sequence[Row]) -> Figure:
    """Time against length on one set-up, a panel a mode. ``layers``: block against LSTM layer in ``mode``."""
    columns = ("mode", "runner", "length", "value", "low", "high", "n")
    rows = [row for row in tables["times"] if row["setup"] == setup]
    table = pl.DataFrame([{column: row[column] for column in columns} | look(row) for row in rows])
    clock = rows[0]["clock"]
    axes = _axes(table, f"{clock}, ms")
    panels = [_panel(table.filter(pl.col("mode") == mode), mode, axes, dashes=LOOKS) for mode in MODES]
    verdict = compared(layers, BLOCK.name, LSTM.name, "length", numbers=False)
    return figure(
        "race",
        "race-times",
        alt.hconcat(*panels, spacing=8),
        table.drop("colour", "shape", "label"),
        title=f"{setup}, {mode}: {verdict}." if verdict else f"Times so far on {setup}",
        clock=clock,
        n=rows[0]["n"],
    )


def look(row: Row) -> Row:
    colour, shape, _ = LOOKS[row["runner"]]
    return {"colour": colour, "shape": shape, "label": row["runner"]}


def referee(rows: Sequence[Row], set_ups: int) -> Figure:
    """Block over LSTM layer with intervals, a line a set-up: above 1 the LSTM layer is faster."""
    names = list(dict.fromkeys(row["setup"] for row in rows))
    colours = (INK, OTHER_COLOURS[0], OTHER_COLOURS[1], QUIET)
    dashes = ([1, 0], [7, 4], [2, 3], [9, 3, 2, 3])
    looks = {name: (colours[i % 4], marks.SHAPES[i % 4], dashes[i % 4]) for i, name in enumerate(names)}
    columns = ("mode", "setup", "clock", "length", "value", "low", "high", "n")
    table = pl.DataFrame(
        [
            {column: row[column] for column in columns}
            | {"runner": row["setup"], "label": row["setup"]}
            | {"colour": looks[row["setup"]][0], "shape": looks[row["setup"]][1]}
            # Set-ups stand side by side, or their bars would hide each other.
            | {"place": row["length"] * 1.08 ** (names.index(row["setup"]) - (len(names) - 1) / 2)}
            for row in rows
        ]
    )
    axes = _axes(table, "Block's time / LSTM layer's", column="place", also=[1.0])
    panels = [_panel(table.filter(pl.col("mode") == m), m, axes, dashes=looks, even=True) for m in MODES]
    return figure(
        "race",
        "race-referee",
        alt.hconcat(*panels, spacing=8),
        table.select(columns),
        title=_verdicts(rows),
        n=rows[0]["n"],
        set_ups=plural(set_ups, "set-up"),
    )


def _verdicts(rows: Sequence[Row]) -> str:
    """Who is faster on each set-up, with backward if both ran it."""
    parts = []
    for setup in dict.fromkeys(row["setup"] for row in rows):
        mode = BOTH if any((row["setup"], row["mode"]) == (setup, BOTH) for row in rows) else FORWARD
        layers = [row for row in rows if (row["setup"], row["mode"]) == (setup, mode)]
        parts.append(f"{setup}, {mode}: {compared(layers, BLOCK.name, LSTM.name, 'length', numbers=False)}")
    return capital(". ".join(parts)) + "."


def _axes(
    table: pl.DataFrame, y_title: str, column: str = "length", also: Sequence[float] = ()
) -> tuple[alt.X, alt.Y]:
    """``also``: values that the second axis must show."""
    lengths = sorted(set(table["length"]))
    x = log_axis(alt.X, column, "Tokens T", lengths[0], lengths[-1], room=1.3, ticks=lengths, labels=",d")
    low, high = marks.span(table["low"], table["high"], also)
    return x, log_axis(alt.Y, "value", y_title, low, high, room=1.3, labels="~g")


def _panel(
    rows: pl.DataFrame,
    mode: str,
    axes: tuple[alt.X, alt.Y],
    *,
    dashes: Mapping[str, Look],
    even: bool = False,
) -> alt.LayerChart:
    """The lines of one mode, named at their ends; ``even``: a rule at 1."""
    x, y = axes
    layers: list[alt.Chart] = []
    if even:
        equal = marks.chart_of(pl.DataFrame({"value": [1.0]}))
        layers.append(equal.mark_rule(strokeWidth=1.5, color=QUIET).encode(y))
    for name, (_, _, dash) in dashes.items():
        layers.append(marks.line(rows.filter(pl.col("runner") == name), x, y, dash=dash))
    layers.append(marks.bars(rows, x, y, opacity=0.7))
    layers.append(marks.points(rows, x, y, shape=marks.SHAPE, size=60))
    if len(rows):
        ends = rows.sort("length").group_by("runner", maintain_order=True).last()
        layers.append(marks.end_labels(ends, marks.EDGE, y, HEIGHT))
    title = alt.TitleParams(mode, fontSize=13, fontWeight="normal", offset=4)
    return marks.panel(layers, WIDTH, HEIGHT, title)
