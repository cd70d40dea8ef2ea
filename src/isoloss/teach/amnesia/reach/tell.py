"""Tell how far a gradient reaches: by start, at one distance, and what the gate alone would give."""

from math import exp, hypot, log
from typing import Any

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import POWERS, log_axis
from isoloss.stats import t_interval
from isoloss.teach import prose
from isoloss.teach.amnesia.contest.draw import DASH, HEIGHT, WIDTH, numbers_of, with_looks
from isoloss.teach.amnesia.contest.outcomes import say, spoken
from isoloss.teach.amnesia.names import BIAS_3, BLOCK, DEFAULT
from isoloss.teach.amnesia.settings import ReachSettings
from isoloss.teach.result import Sentence, Tables, frame, sentence
from isoloss.teach.versus import Claim, Versus, family_of
from isoloss.text import capital, percent

FIRST_OF_20, FLAT, FLOOR, SHARE = 19, 5, 1e-12, "Share of the signal that is left"
"""The distance of the first of 20 letters; largest over smallest of what is flat; where the drawing ends."""


def count(settings: ReachSettings, tables: Tables) -> int:
    return settings.strings


def sentences(settings: ReachSettings, tables: Tables) -> list[Sentence]:
    k, rows = min(FIRST_OF_20, settings.length - 1), frame(tables, "reach")
    at_k = {row["side"]: row for row in rows.filter(k=k).to_dicts()}
    texts: list[Sentence] = []
    if len(block := rows.filter(side=BLOCK)):
        texts.append(sentence("flat", *flat(block)))
    if DEFAULT in at_k and BIAS_3 in at_k:
        texts.append(sentence("verdict", *orders(at_k[BIAS_3], at_k[DEFAULT])))
    for n, (side, row) in enumerate(at_k.items()):
        short = survives(row["value"]) if side == DEFAULT else ""
        line = sentence(f"side-{n}", say("reach-share", name=capital(spoken(side)), **row), short)
        texts.insert(0 if short else len(texts), line)  # the answer to the guess stands first
    return [*texts, sentence("gate", gate(k), "The forget gate is a clock.", exact=True)]


def survives(share: float) -> str:
    """Of the default LSTM's signal, in the words of the guess."""
    left = percent(share, 0) if share >= 0.01 else f"one part in {rounded(1 / share)}"
    return f"Of the default LSTM's signal {left} survives."


def orders(a: dict[str, Any], b: dict[str, Any]) -> Claim:
    """How many orders of magnitude farther; not paired, since the tables have means over seeds alone."""
    seeds, se = a["seeds"], hypot(a["log10_se"], b["log10_se"])
    farther = t_interval(a["log10"] - b["log10"], se, seeds, seeds - 1)
    versus = Versus(spoken(a["side"]), spoken(b["side"]), farther, number=".1f")
    basis, back = f"n = {a['n']} strings, {seeds} seeds a side", f"{a['k']} steps back"
    text = versus.sentence(
        versus.clause(f"orders of magnitude more of its gradient {back}", basis),
        f" {back} ({basis})",
        few=f" {back} ({basis})",
        wins="reaches farther than",
    )
    times = rounded(10 ** abs(a["log10"] - b["log10"]))
    return Claim(text, versus.short(f"The {{winner}} passes {times} times more of the signal on."))


def rounded(value: float) -> str:
    """To one leading digit, for the room."""
    return f"{float(f'{value:.0e}'):,.0f}"


def flat(rows: pl.DataFrame) -> Claim:
    """Whether a side is flat from 1 step back to the end: largest below five times the smallest."""
    values, row = rows["value"].to_list()[1:], rows.row(-1, named=True)
    ratio, mean = max(values) / min(values), sum(values) / len(values)
    how = "flat" if ratio < FLAT else "not flat"
    text = say("reach-flat", name=capital(spoken(row["side"])), flat=how, ratio=ratio, mean=mean, **row)
    return Claim(text, "Attention hears every distance alike, and none of them loudly." * (ratio < FLAT))


def gate(k: int) -> str:
    """What a forget gate at its starting bias alone passes on: sigma(b)^k; half-life ln(.5) / ln sigma(b)."""
    gates = {bias: 1 / (1 + exp(-bias)) for bias in (0, 1, 3)}
    parts = [
        f"bias {bias}: {gate**k:.1e}, half-life {log(0.5) / log(gate):.1f} steps"
        for bias, gate in gates.items()
    ]
    return say("reach-gate", k=k, parts="; ".join(parts))


DRAWN = (DEFAULT, BIAS_3, BLOCK)
"""Sides of the drawing and of the chart."""


def arrays(tables: Tables) -> list[dict[str, Any]]:
    """Shares from now to the first of 20 letters, a side a row, for the drawing."""
    near = frame(tables, "reach").filter(pl.col("k") <= FIRST_OF_20)
    by_side = {side: part["value"] for (side,), part in near.partition_by("side", as_dict=True).items()}
    return [
        {"name": spoken(side), "family": family_of(side).lower()}
        | {"shares": [float(f"{share:.3g}") for share in by_side[side]]}
        for side in DRAWN
        if side in by_side
    ]


def figures(settings: ReachSettings, tables: Tables) -> list[Figure]:
    if not tables.get("reach"):
        return []
    texts = {sentence.key: sentence.text for sentence in sentences(settings, tables)}
    finding = texts.get("verdict", "How far a gradient reaches, so far").split(": ")[0]
    chart, table = _chart(frame(tables, "reach").filter(pl.col("side").is_in(DRAWN)))
    return [prose.figure("amnesia", "reach", chart, table, finding=finding, **settings.model_dump())]


def _chart(rows: pl.DataFrame) -> tuple[alt.LayerChart, pl.DataFrame]:
    table = with_looks(rows).with_columns(pl.col("low").clip(FLOOR).alias("bottom"))
    table, last = table.filter(pl.col("value") >= FLOOR), int(marks.span(rows["k"])[1])
    x = alt.X("k:Q", title="Steps back k").scale(domain=[0, last], nice=False)
    ticks = [10.0**power for power in range(-12, 2, 2)]
    y = log_axis(alt.Y, "value", SHARE, FLOOR, 3.0, ticks=ticks, labels=POWERS)
    marked = table.filter((pl.col("k") % max(1, last // 12)) == 0)
    # A line that leaves the picture below is named where it does.
    ends = table.group_by("side", maintain_order=True).last()
    layers = [
        marks.band(table, x, y, ("bottom", "high"), opacity=0.15, by="side"),
        marks.line(table, x, y, width=2.4, dash=DASH),
        marks.points(marked, x, y, shape=marks.SHAPE, size=44),
        marks.end_labels(ends, x, y, HEIGHT),
    ]
    return marks.panel(layers, WIDTH, HEIGHT), numbers_of(table).drop("bottom")
