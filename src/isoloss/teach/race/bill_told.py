"""What the bill's tables say."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, log_axis
from isoloss.teach.race.counts import BLOCK, LSTM
from isoloss.teach.race.ratios import INTERVAL
from isoloss.teach.race.settings import BillSettings
from isoloss.teach.race.verdict import by, compared, sentence, winner
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.text import size

COLOURS = {BLOCK.name: FAMILY_COLOURS["transformer"], LSTM.name: FAMILY_COLOURS["lstm"]}
SHAPES = {BLOCK.name: "square", LSTM.name: "circle"}
WIDTH, HEIGHT = 560, 280
DASHES = {BLOCK.name: [7, 4], LSTM.name: [1, 0]}


def basis(settings: BillSettings, tables: Tables) -> Basis:
    return Basis(
        n=settings.repeats,
        units=f"paired repeats of {settings.tokens} steps",
        interval=f"times: median, smallest to largest; ratios: {INTERVAL}",
    )


def sentences(settings: BillSettings, tables: Tables) -> list[Sentence]:
    rows = tables["ratios"]
    n = rows[0]["n"]
    said = compared(rows, BLOCK.name, LSTM.name, "n_before")
    text = f"one more token after n: {said}; one CPU thread, {n} repeats"
    return [
        Sentence(key="step", text=sentence(text)),
        Sentence(key="crossing", text=sentence(crossing(rows))),
        Sentence(key="growth", text=sentence(_growth(tables["growth"]))),
        _memory(settings, tables["memory"]),
    ]


def crossing(rows: Sequence[Row]) -> str:
    """Between which n the block becomes the dearer of the two, as far as the intervals decide.

    "Dearer from n on" asks that it is decided there and at every larger n measured.
    """
    rows = sorted(rows, key=lambda row: row["n_before"])
    first, last = (f"{rows[end]['n_before']:,}" for end in (0, -1))
    dearer = [winner(row, BLOCK.name, LSTM.name) == LSTM.name for row in rows]
    cheaper = [winner(row, BLOCK.name, LSTM.name) == BLOCK.name for row in rows]
    start = next((i for i in range(len(rows)) if all(dearer[i:])), None)
    if start == 0:
        return f"the block's step is the dearer one at every n measured, {first} to {last}: no crossing seen"
    if start is None:
        if all(cheaper):
            return f"the block's step is the cheaper one at every n measured, {first} to {last}"
        return f"where the block's step becomes dearer is not decided between n = {first} and {last}"
    end = f"{rows[start]['n_before']:,}"
    before = [i for i in range(start) if cheaper[i]]
    if not before:
        return f"the block's step is the dearer one from n = {end} on; below that it is not decided"
    begin = f"{rows[before[-1]]['n_before']:,}"
    return f"the block's step becomes the dearer one between n = {begin} and {end}"


def _growth(rows: Sequence[Row]) -> str:
    """How much dearer the last n is than the first, on either side."""
    parts = []
    for row in rows:
        change = {"now": "less", "before": "more", None: "no clear difference"}[winner(row, "now", "before")]
        parts.append(f"{change} for the {row['runner']} ({by(row)})")
    first, last = rows[0]["n_first"], rows[0]["n_last"]
    n = rows[0]["n"]
    return f"a step after {last:,} tokens against one after {first:,}, n = {n} repeats: {'; '.join(parts)}"


def _memory(settings: BillSettings, rows: Sequence[Row]) -> Sentence:
    last = max(row["n_before"] for row in rows)
    kept = {row["runner"]: row["bytes"] for row in rows if row["n_before"] == last}
    text = (
        f"Memory a layer and sequence at width d = {settings.d_model}: 2 n d floats of keys and values, "
        f"{size(kept[BLOCK.name])} after n = {last:,}; 2 d floats of LSTM state, "
        f"{size(kept[LSTM.name])} after any n. The cache keeps every token apart; the state keeps one "
        f"summary of all."
    )
    return Sentence(key="memory", text=text, exact=True)


def figures(settings: BillSettings, tables: Tables) -> list[Figure]:
    if not tables.get("times"):
        return []
    return [_cost(tables), _kept(tables["memory"])]


def _cost(tables: Tables) -> Figure:
    rows = tables["times"]
    said = compared(tables["ratios"], BLOCK.name, LSTM.name, "n_before", numbers=False)
    title = f"One more token: {said}."
    n = rows[0]["n"]
    subtitle = f"CPU time of one step; median of n = {n} repeats, bars from the smallest to the largest"
    return Figure(
        name="bill-cost",
        chart=_curves(rows, "CPU time of one more token, ms", bars=True),
        title=title,
        subtitle=subtitle,
        description="Milliseconds for one more token against tokens read: block with cache, LSTM with state.",
        shows=(
            "The block looks back at all n keys, so its step grows with n once that outweighs its matmuls; "
            "the LSTM's step is the same work after any n."
        ),
        would_change="A block's step below the LSTM's at large n would say that looking back is nearly free.",
        table=pl.DataFrame(rows),
    )


def _kept(rows: Sequence[Row]) -> Figure:
    first, last = (edge(row["n_before"] for row in rows) for edge in (min, max))
    floats = {(row["n_before"], row["runner"]): row["floats"] for row in rows}
    more = [floats[n, BLOCK.name] // floats[n, LSTM.name] for n in (first, last)]
    title = (
        f"After {last:,} tokens the cache holds {more[1]:,} times the floats of the LSTM's state, "
        f"after {first:,} tokens {more[0]:,} times"
    )
    drawn = [row | {"value": row["bytes"]} for row in rows]
    return Figure(
        name="bill-memory",
        chart=_curves(drawn, "Bytes kept a layer", bars=False),
        title=title,
        subtitle="Exact: 2 n d floats of keys and values, 2 d floats of state; 4 bytes a float",
        description="Bytes kept against tokens read: a rising line for the cache, a flat one for the state.",
        shows="What each layer must keep of the past to write the next token.",
        would_change="Nothing measured: it is a count. Other designs keep less, and other lines would join.",
        table=pl.DataFrame(rows),
    )


def _curves(rows: Sequence[Row], y_title: str, *, bars: bool) -> alt.LayerChart:
    drawn = pl.DataFrame(
        [{**row, "colour": COLOURS[row["runner"]], "shape": SHAPES[row["runner"]]} for row in rows]
    ).sort("runner", "n_before")
    lengths = sorted(set(drawn["n_before"]))
    x = log_axis(
        alt.X,
        "n_before",
        "Tokens n read before",
        lengths[0],
        lengths[-1],
        room=1.2,
        ticks=lengths,
        labels=",d",
    )
    columns = ("low", "high") if bars else ("value",)
    low, high = marks.span(*(drawn[name] for name in columns))
    y = log_axis(alt.Y, "value", y_title, low, high, room=1.4, labels="~g" if bars else "~s")
    layers = [
        marks.line(drawn.filter(pl.col("runner") == name), x, y, dash=dash) for name, dash in DASHES.items()
    ]
    if bars:
        layers.append(marks.bars(drawn, x, y))
    layers.append(marks.points(drawn, x, y, shape=marks.SHAPE, size=60))
    ends = drawn.filter(pl.col("n_before") == lengths[-1]).with_columns(pl.col("runner").alias("label"))
    layers.append(marks.end_labels(ends, marks.EDGE, y, HEIGHT))
    return marks.panel(layers, WIDTH, HEIGHT)


def lines(settings: BillSettings, tables: Tables) -> list[str]:
    found = {(row["n_before"], row["runner"]): row for row in tables["times"]}
    kept = {(row["n_before"], row["runner"]): row["bytes"] for row in tables["memory"]}
    out = [f"{'n before':>8} {'block, ms':>24} {'LSTM, ms':>24} {'cache':>8} {'state':>8}"]
    for n in sorted({n for n, _ in found}):
        times = (found[n, one.name] for one in (BLOCK, LSTM))
        texts = [f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})" for row in times]
        memory = " ".join(f"{size(kept[n, one.name]):>8}" for one in (BLOCK, LSTM))
        out.append(f"{n:>8,} {texts[0]:>24} {texts[1]:>24} {memory}")
    return out
