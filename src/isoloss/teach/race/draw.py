"""Two pictures of a race: every runner's time, and the whole block against the LSTM layer everywhere."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, INK, OTHER_COLOURS, QUIET, log_axis, shades
from isoloss.teach.prose import figure
from isoloss.teach.race.counts import ALONE, BLOCK, FUSED, LSTM, NAIVE
from isoloss.teach.race.ratios import judge
from isoloss.teach.race.timing import BOTH, FORWARD, MODES
from isoloss.teach.result import Row, Tables
from isoloss.text import capital, plural

WIDTH, HEIGHT = 350, 215
LSTM_SHADES, ATTENTION_SHADES = (shades(FAMILY_COLOURS[name], 3) for name in ("lstm", "transformer"))
LOOKS: dict[str, marks.Look] = {
    NAIVE.name: (LSTM_SHADES[2], "triangle-up", [2, 3]),
    FUSED.name: (LSTM_SHADES[1], "diamond", [7, 4]),
    LSTM.name: (LSTM_SHADES[0], "circle", [1, 0]),
    ALONE.name: (ATTENTION_SHADES[2], "square", [7, 4]),
    BLOCK.name: (ATTENTION_SHADES[0], "cross", [1, 0]),
}
"""Colour, point and dash: vermilion for what computes an LSTM, blue for attention."""


def times(tables: Tables, setup: str, mode: str, layers: Sequence[Row], lengths: Sequence[int]) -> Figure:
    """Time against all ``lengths`` on one set-up in ``mode``. ``layers``: block against LSTM layer."""
    rows = [row for row in tables["times"] if (row["setup"], row["mode"]) == (setup, mode)]
    table = pl.DataFrame(rows).select("mode", "runner", "length", "value", "low", "high", "n")
    clock = rows[0]["clock"]
    verdict = judge(layers, BLOCK.name, LSTM.name, "length", numbers=False)
    return figure(
        "race",
        "race-times",
        _panels(marks.with_looks(table, "runner", LOOKS), LOOKS, "length", f"{clock}, ms", lengths),
        table,
        title=f"{setup}, {mode}: {verdict}." if verdict else f"Times so far on {setup}",
        clock=clock,
        n=rows[0]["n"],
    )


def referee(rows: Sequence[Row], set_ups: int, lengths: Sequence[int]) -> Figure:
    """Block over LSTM layer with intervals, a line a set-up: above 1 the LSTM layer is faster."""
    names = list(dict.fromkeys(row["setup"] for row in rows))
    colours = (INK, OTHER_COLOURS[0], OTHER_COLOURS[3], QUIET)
    dashes = ([1, 0], [7, 4], [2, 3], [9, 3, 2, 3])
    looks = {name: (colours[i % 4], marks.SHAPES[i % 4], dashes[i % 4]) for i, name in enumerate(names)}
    # Set-ups stand side by side, or their bars would hide each other.
    shift = {name: 1.08 ** (i - (len(names) - 1) / 2) for i, name in enumerate(names)}
    table = pl.DataFrame(rows).select("mode", "setup", "clock", "length", "value", "low", "high", "n")
    moved = marks.with_looks(table, "setup", looks).with_columns(
        place=pl.col("length") * pl.col("setup").replace_strict(shift)
    )
    return figure(
        "race",
        "race-referee",
        _panels(moved, looks, "place", "Block's time / LSTM layer's", lengths, even=True),
        table,
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
        parts.append(f"{setup}, {mode}: {judge(layers, BLOCK.name, LSTM.name, 'length', numbers=False)}")
    return capital(". ".join(parts)) + "."


def _panels(
    table: pl.DataFrame,
    looks: Mapping[str, marks.Look],
    column: str,
    y_title: str,
    lengths: Sequence[int],
    *,
    even: bool = False,
) -> alt.HConcatChart:
    """Lines against length, placed by ``column``, a panel a mode; ``even``: with a rule at 1.

    Axes stand still while a race runs: all lengths, and times between powers of ten.
    """
    ticks = sorted(set(lengths))
    x = log_axis(alt.X, column, "Tokens T", ticks[0], ticks[-1], room=1.3, ticks=ticks, labels=",d")
    low, high = marks.span(table["low"], table["high"], [1.0] if even else [])
    if not even:
        low, high = 10.0 ** floor(log10(low)), 10.0 ** ceil(log10(high))
    y = log_axis(alt.Y, "value", y_title, low, high, room=1.3 if even else 1.0, labels="~g")
    equal = marks.chart_of(pl.DataFrame({"value": [1.0]})).mark_rule(strokeWidth=1.5, color=QUIET).encode(y)
    panels: list[alt.LayerChart] = []
    for mode in MODES if even else table["mode"].unique():
        layers = curves(table.filter(pl.col("mode") == mode), looks, x, y, HEIGHT)
        title = alt.TitleParams(mode, fontSize=13, fontWeight="normal", offset=4)
        panels.append(marks.panel([equal, *layers] if even else layers, WIDTH, HEIGHT, title))
    return alt.hconcat(*panels, spacing=8)


def curves(
    table: pl.DataFrame,
    looks: Mapping[str, marks.Look],
    x: alt.X,
    y: alt.Y,
    height: float,
    *,
    bars: bool = True,
) -> list[alt.Chart]:
    """A line a label with its points and ``bars``, named at its end."""
    lines = [
        marks.line(table.filter(pl.col("label") == label), x, y, dash=dash)
        for label, (_, _, dash) in looks.items()
    ]
    ends = table.sort(marks.column_of(x)).group_by("label", maintain_order=True).last()
    return [
        *lines,
        *([marks.bars(table, x, y, opacity=0.7)] if bars else []),
        marks.points(table, x, y, shape=marks.SHAPE, size=60),
        *([marks.end_labels(ends, marks.EDGE, y, height)] if len(table) else []),
    ]
