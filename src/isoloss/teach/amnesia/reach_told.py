"""Tell how far a gradient reaches: by start, at one distance, and what the gate alone would give."""

from math import exp, hypot, log

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import POWERS, log_axis
from isoloss.stats import t_interval
from isoloss.teach.amnesia import charts
from isoloss.teach.amnesia.names import BIAS_3, BLOCK, DEFAULT
from isoloss.teach.amnesia.outcomes import cells
from isoloss.teach.amnesia.settings import ReachSettings
from isoloss.teach.amnesia.verdicts import headline
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.text import capital

AT, FLOOR = 19, 1e-12
"""The distance of the first of 20 letters; and where the drawing ends below."""


def basis(settings: ReachSettings, tables: Tables) -> Basis:
    return Basis(
        n=settings.strings,
        units="random strings a seed",
        seeds=settings.seeds,
        interval="95% t interval of log10",
    )


def sentences(settings: ReachSettings, tables: Tables) -> list[Sentence]:
    at = min(AT, settings.length - 1)
    sides = {side: own for (side,), own in cells(tables["reach"], ("side",)).items()}
    there = {side: own[at] for side, own in sides.items()}
    found = []
    if DEFAULT in there and BIAS_3 in there:
        found.append(Sentence(key="verdict", text=orders(there[BIAS_3], there[DEFAULT])))
    if BLOCK in sides:
        found.append(Sentence(key="flat", text=flat(sides[BLOCK])))
    found += [Sentence(key=f"side-{number}", text=at_k(row)) for number, row in enumerate(there.values())]
    return [*found, Sentence(key="gate", text=gate(at), exact=True)]


def at_k(row: Row) -> str:
    return (
        f"{capital(row['side'])}: {row['value']:.1e} of the last token's gradient reaches "
        f"{row['k']} steps back "
        f"(95% t interval {row['low']:.1e} to {row['high']:.1e}, n = {row['n']} strings, "
        f"{row['seeds']} seeds)."
    )


def orders(a: Row, b: Row) -> str:
    """How many orders of magnitude one start reaches farther than another at one distance."""
    if a["seeds"] < 2:
        return f"{a['side']} against {b['side']}: one seed a side gives no interval and no verdict."
    se = hypot(a["log10_se"], b["log10_se"])
    more, less = (a, b) if a["log10"] > b["log10"] else (b, a)
    apart = t_interval(more["log10"] - less["log10"], se, a["seeds"], a["seeds"] - 1)
    of = f"n = {a['n']} strings, {a['seeds']} seeds a side"
    if not apart.decided:
        return f"No clear difference between {a['side']} and {b['side']} {a['k']} steps back ({of})."
    return (
        f"{more['side']} reaches farther than {less['side']}: {apart.value:.1f} orders of magnitude more of "
        f"its gradient {a['k']} steps back (95% t interval {apart.low:.1f} to "
        f"{apart.high:.1f}, {of})."
    )


def flat(own: list[Row]) -> str:
    """Whether a side is flat from 1 step back to the end: largest over smallest."""
    values = [row["value"] for row in own[1:]]
    ratio, mean = max(values) / min(values), sum(values) / len(values)
    return (
        f"{capital(own[0]['side'])} is {'flat' if ratio < 5 else 'not flat'} from 1 to {own[-1]['k']} "
        f"steps back: its largest share is {ratio:.1f} times its smallest, its mean {mean:.1e}. "
        "That is not the same as large: a token's own residual carries its gradient past attention "
        f"(n = {own[0]['n']} strings, {own[0]['seeds']} seeds)."
    )


def gate(k: int) -> str:
    """What a forget gate at its starting bias alone passes on: sigma(b)^k; half-life ln(.5) / ln sigma(b)."""
    parts = [
        f"bias {bias}: {sigmoid(bias) ** k:.1e}, half-life {log(0.5) / log(sigmoid(bias)):.1f} steps"
        for bias in (0, 1, 3)
    ]
    return f"The forget gate is the clock. Alone it passes on sigma(b)^{k} in {k} steps: {'; '.join(parts)}."


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def figures(settings: ReachSettings, tables: Tables) -> list[Figure]:
    rows = tables.get("reach", [])
    if not rows:
        return []
    text = {sentence.key: sentence.text for sentence in sentences(settings, tables)}
    title = headline(text.get("verdict", "How far a gradient reaches, so far"))
    chart, table = _chart(rows)
    return [
        Figure(
            name="reach",
            chart=chart,
            title=title,
            subtitle=(
                f"Untrained layers of width {settings.width}; geometric mean over {settings.seeds} seeds of "
                f"n = {settings.strings} random strings each, band: 95% t interval; "
                "each relative to its own k = 0"
            ),
            characters=charts.TITLE_CHARACTERS,
            description=(
                "Share of the last token's gradient against steps back, logarithmic, for a tanh RNN, four "
                "starts of an LSTM and one causal block."
            ),
            shows=(
                "The LSTM's curves differ by their starting weights and biases alone: a forget gate at "
                "bias 0 halves the memory at every step. In the block every earlier token is one step away."
            ),
            would_change="Curves of the LSTM starts lying on one another would make the start irrelevant.",
            table=table,
        )
    ]


def _chart(rows: list[Row]) -> tuple[alt.LayerChart, pl.DataFrame]:
    drawn = [row | charts.looks(row["side"]) | {"bottom": max(row["low"], FLOOR)} for row in rows]
    table = pl.DataFrame([row for row in drawn if row["value"] >= FLOOR])
    last = max(row["k"] for row in rows)
    x = alt.X("k:Q", title="Steps back k").scale(domain=[0, last], nice=False)
    title = "|d out_T / d x_(T-k)| relative to k = 0"
    ticks = [10.0**power for power in range(-12, 2, 2)]
    y = log_axis(alt.Y, "value", title, FLOOR, 3.0, ticks=ticks, labels=POWERS)
    marked = table.filter((pl.col("k") % max(1, last // 12)) == 0)
    # A line that leaves the picture below is named where it does.
    ends = table.group_by("side", maintain_order=True).last().with_columns(pl.col("side").alias("label"))
    layers = [
        marks.band(table, x, y, ("bottom", "high"), opacity=0.15, by="side"),
        marks.line(table, x, y, width=2.4, dash=charts.DASH),
        marks.points(marked, x, y, shape=marks.SHAPE, size=44),
        marks.end_labels(ends, x, y, charts.HEIGHT),
    ]
    chart = marks.panel(layers, charts.WIDTH, charts.HEIGHT)
    return chart, table.drop("colour", "shape", "bottom")


def lines(settings: ReachSettings, tables: Tables) -> list[str]:
    """Shares by distance, a row a side: log10 as a number, so that no shade is needed."""
    ks = [k for k in (1, 4, 9, 19, 39, 79, 127, 255, 511) if k < settings.length]
    found = ["share of the last token's gradient k steps back", f"{'k':<22}" + "".join(f"{k:>9}" for k in ks)]
    for (side,), own in cells(tables["reach"], ("side",)).items():
        found.append(f"{side:<22}" + "".join(f"{own[k]['value']:>9.0e}" for k in ks))
    return found
