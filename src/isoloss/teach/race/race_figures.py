"""Two pictures of a race: every runner's time, and the whole block against the LSTM layer everywhere."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, INK, OTHER_COLOURS, QUIET, log_axis, shades
from isoloss.teach.race.counts import ALONE, BLOCK, FUSED, LSTM, NAIVE
from isoloss.teach.race.timing import BOTH, FORWARD, MODES
from isoloss.teach.race.verdict import compared, sentence
from isoloss.teach.result import Row, Tables
from isoloss.text import plural

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


def times(tables: Tables, setup: str, fair: Mapping[str, Sequence[Row]]) -> Figure:
    """Time against length on one set-up, a panel a mode. ``fair``: block against LSTM layer, by mode."""
    rows = [row for row in tables["times"] if row["setup"] == setup]
    clock = rows[0]["clock"]
    drawn = pl.DataFrame(
        [
            {key: row[key] for key in ("mode", "runner", "length", "value", "low", "high", "n")} | look(row)
            for row in rows
        ]
    )
    axes = _axes(drawn, f"{clock}, ms")
    panels = [_panel(drawn.filter(pl.col("mode") == mode), mode, axes, dashes=LOOKS) for mode in MODES]
    verdict = compared(fair.get(BOTH) or fair[FORWARD], BLOCK.name, LSTM.name, "length", numbers=False)
    mode = BOTH if fair.get(BOTH) else FORWARD
    title = sentence(f"{setup}, {mode}: {verdict}") if verdict else f"Times so far on {setup}"
    n = rows[0]["n"]
    subtitle = f"Median of n = {n} repeats in random order; bars from the smallest to the largest"
    return Figure(
        name="race-times",
        chart=alt.hconcat(*panels, spacing=8),
        title=title,
        subtitle=subtitle,
        description=f"Two panels, forward and with backward: {clock} of five runners against T, log-log.",
        shows=(
            "The two loops and the LSTM layer compute the same numbers from the same weights: what parts "
            "them is the price of calling small kernels from Python. Attention alone is a part of the block."
        ),
        would_change=(
            "The block below the LSTM layer at every T would show a machine on which its shorter chain of "
            "matmuls pays, or kernels that do attention for less."
        ),
        table=drawn.drop("colour", "shape", "label"),
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
    drawn = pl.DataFrame(
        [
            {key: row[key] for key in ("mode", "setup", "clock", "length", "value", "low", "high", "n")}
            | {"runner": row["setup"], "label": row["setup"]}
            | {"colour": looks[row["setup"]][0], "shape": looks[row["setup"]][1]}
            # Set-ups stand side by side, or their bars would hide each other.
            | {"place": row["length"] * 1.08 ** (names.index(row["setup"]) - (len(names) - 1) / 2)}
            for row in rows
        ]
    )
    axes = _axes(drawn, "Block's time / LSTM layer's", column="place", also=[1.0])
    panels = [_panel(drawn.filter(pl.col("mode") == m), m, axes, dashes=looks, even=True) for m in MODES]
    title = _referees_finding(rows)
    n = rows[0]["n"]
    subtitle = (
        f"Median of n = {n} paired ratios with an order-statistic interval of 95% or more; "
        f"above 1 the LSTM layer is faster; {plural(set_ups, 'set-up')}"
    )
    return Figure(
        name="race-referee",
        chart=alt.hconcat(*panels, spacing=8),
        title=title,
        subtitle=subtitle,
        description="Causal block's time over the LSTM layer's against T, by set-up, with intervals.",
        shows="Whether the whole block or the library's LSTM layer reads T tokens sooner, and how surely.",
        would_change="An interval on the other side of 1 would change who is faster at that T.",
        table=drawn.drop("colour", "shape", "label", "place", "runner"),
    )


def _referees_finding(rows: Sequence[Row]) -> str:
    parts = []
    for setup in dict.fromkeys(row["setup"] for row in rows):
        own = [row for row in rows if row["setup"] == setup]
        mode = BOTH if any(row["mode"] == BOTH for row in own) else FORWARD
        own = [row for row in own if row["mode"] == mode]
        parts.append(f"{setup}, {mode}: {compared(own, BLOCK.name, LSTM.name, 'length', numbers=False)}")
    return sentence(". ".join(parts))


def _axes(
    drawn: pl.DataFrame, y_title: str, column: str = "length", also: Sequence[float] = ()
) -> tuple[alt.X, alt.Y]:
    """``also``: values that the second axis must show."""
    lengths = sorted(set(drawn["length"]))
    x = log_axis(alt.X, column, "Tokens T", lengths[0], lengths[-1], room=1.3, ticks=lengths, labels=",d")
    low, high = marks.span(drawn["low"], drawn["high"], also)
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
        one = marks.chart_of(pl.DataFrame({"value": [1.0]}))
        layers.append(one.mark_rule(strokeWidth=1.5, color=QUIET).encode(y))
    for name, (_, _, dash) in dashes.items():
        layers.append(marks.line(rows.filter(pl.col("runner") == name), x, y, dash=dash))
    layers.append(marks.bars(rows, x, y, opacity=0.7))
    layers.append(marks.points(rows, x, y, shape=marks.SHAPE, size=60))
    if len(rows):
        ends = rows.sort("length").group_by("runner", maintain_order=True).last()
        layers.append(marks.end_labels(ends, marks.EDGE, y, HEIGHT))
    title = alt.TitleParams(mode, fontSize=13, fontWeight="normal", offset=4)
    return marks.panel(layers, WIDTH, HEIGHT, title)
