"""How time and memory grow with each of what a run and a study can have more of, beside what bounds them."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from isoloss.figures.figure import Figure, captioned
from isoloss.figures.marks import chart_of, span
from isoloss.figures.style import PREDICTED, QUIET, REAL, log_axis

GROWING = {
    "N": "N, parameters",
    "B": "B, batch",
    "D": "D, updates",
    "T": "T, context",
    "T_m": "T_m, loops",
    "runs": "runs of a study",
}
TIME, MEMORY, BOUND = "time", "memory", "the bound"
LOOKS: dict[str, tuple[str, list[int]]] = {TIME: (REAL, []), MEMORY: (PREDICTED, []), BOUND: (QUIET, [4, 4])}
SIDE = 190


def figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """What times as much of a symbol costs, over what its bound says; log-log, a panel a symbol.

    ``rows`` of `isoloss bench cpu`: those in "x time" and "x memory" whose names begin with a symbol.
    """
    table = growth(rows)
    most = span(table["bound"], table["times"])[1]
    x = log_axis(alt.X, "bound", "times by the bound", 1.0, most, room=1.1)
    y = log_axis(alt.Y, "times", "times measured", 1.0, most, room=1.1)
    colours, dashes = map(list, zip(*LOOKS.values(), strict=True))
    chart = (
        chart_of(table)
        .mark_line(point=True)
        .encode(
            x,
            y,
            color=alt.Color("what:N", title=None)
            .scale(domain=list(LOOKS), range=colours)
            .legend(orient="bottom"),
            strokeDash=alt.StrokeDash("what:N", title=None).scale(domain=list(LOOKS), range=dashes),
            facet=alt.Facet("symbol:N", title=None, columns=3, sort=[*GROWING.values()]),
        )
        .properties(width=SIDE, height=SIDE)
    )
    panels = "; ".join(name for name in GROWING.values() if name in set(table["symbol"]))
    return captioned("growth", chart, title_of(table), table, panels=panels)


def title_of(table: pl.DataFrame) -> str:
    """The most of time and of memory at the ends of their lines, over the bound."""
    ends = table.group_by("symbol", "what", maintain_order=True).last()
    over = ends.with_columns(over=pl.col("times") / pl.col("bound"))
    time, memory = (span(over.filter(pl.col("what") == what)["over"])[1] for what in (TIME, MEMORY))
    return (
        f"Grown to the end, nothing takes more than {time:.2f} times the time of its bound, "
        f"or {memory:.2f} times the memory"
    )


def growth(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Each line from where it begins, (1, 1); the bound is the diagonal."""
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        symbol, what = row["what"].partition(":")[0], {"x time": TIME, "x memory": MEMORY}.get(row["unit"])
        if symbol in GROWING and what:
            ends = lines.setdefault((GROWING[symbol], BOUND), [(1.0, 1.0), (1.0, 1.0)])
            ends[1] = max(ends[1], (row["other"], row["other"]))
            lines.setdefault((GROWING[symbol], what), [(1.0, 1.0)]).append((row["other"], row["value"]))
    values = [(*key, *pair) for key, pairs in lines.items() for pair in pairs]
    return pl.DataFrame(values, schema=["symbol", "what", "bound", "times"], orient="row")
