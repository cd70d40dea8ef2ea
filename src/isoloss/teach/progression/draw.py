"""Figures of the training demo: both losses against updates, and the share of samples that are copies."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET, family_colour
from isoloss.stats import difference, mean, pooled_noise
from isoloss.teach.progression.curves import (
    HELD_OUT,
    SIDES,
    TRAINING,
    Curves,
    complete,
    copy_shares,
    curves,
)
from isoloss.teach.prose import figure
from isoloss.teach.result import Row, Tables
from isoloss.teach.versus import Versus
from isoloss.text import percent, plural

DASHES = {TRAINING: [6, 4], HELD_OUT: [1, 0]}
COLOURS = {side: family_colour(side.lower()) for side in SIDES}
LOOKS: dict[str, marks.Look] = {
    "Transformer": (COLOURS["Transformer"], "circle", [1, 0]),
    "LSTM": (COLOURS["LSTM"], "triangle-up", [6, 3]),
}
WIDTH, HEIGHT = 195, 230


def losses(tables: Tables, runs: Sequence[Row], last: int) -> Figure:
    """``last``: the update at which training will end, so that the axis stands still while it runs."""
    table, corpus = pl.DataFrame(runs, infer_schema_length=None), tables["corpus"][0]
    top = max(corpus["uniform"], *table["value"])
    panels = [_panel(tables, side, table.filter(pl.col("side") == side), top, last) for side in SIDES]
    words = {"title": loss_title(tables), "seeds": plural(table["seed"].n_unique(), "seed"), **corpus}
    table = table.select(
        "side", "seed", "which", "update", "value", curve=pl.format("{}, {}", "side", "which")
    )
    return figure("progression", "training_losses", alt.hconcat(*panels, spacing=24), table, **words)


def loss_title(tables: Tables) -> str:
    if not complete(tables):
        return "Training and held-out loss so far"
    sides = curves(tables)
    best = ", ".join(f"{mean(losses.best_losses).value:.2f}" for losses in sides.values())
    versus = best_versus(sides)
    if versus.difference is None:
        return f"Held-out loss of one seed a side, which gives no verdict (best {best} nats)"
    verdict = (
        f"the {versus.winner} is lower at its best" if versus.winner else "no clear difference at their best"
    )
    turns = [side for side, losses in sides.items() if losses.turns_up]
    words = {2: "turns up for both", 1: f"turns up for the {''.join(turns)}", 0: "shows no clear turn"}
    return f"Held-out loss {words[len(turns)]}; {verdict} ({best} nats)"


def best_versus(sides: Mapping[str, Curves]) -> Versus:
    """Whose lowest held-out losses are lower. Not paired: all seeds read the same, and share no more."""
    a, b = (sides[side].best_losses for side in SIDES)
    apart = difference(a, b, pooled_noise([a, b])) if min(len(a), len(b)) > 1 else None
    return Versus(*SIDES, apart, better="less")


def _panel(tables: Tables, side: str, rows: pl.DataFrame, top: float, last: int) -> alt.LayerChart:
    corpus = tables["corpus"][0]
    x = alt.X("update:Q", title="Updates").scale(domain=[0, last], nice=False).axis(tickCount=5)
    y = alt.Y("value:Q", title="Loss (nats a word)").scale(domain=[0, 1.05 * top], nice=False)
    levels = {name: corpus[name] for name in ("floor", "uniform")}
    labels = [f"{name} {level:.2f}" for name, level in levels.items()]
    rules = marks.chart_of(pl.DataFrame({"value": levels.values(), "label": labels})).encode(y)
    layers = [
        rules.mark_rule(color=QUIET, strokeDash=[2, 3], strokeWidth=1.5),
        rules.mark_text(align="left", dx=4, dy=-7, color=QUIET, fontSize=12).encode(
            x=alt.value(0), text=alt.Text("label:N")
        ),
    ]
    if len(rows):
        layers += _curves(rows, COLOURS[side], x, y, last)
    if side in (sides := curves(tables)) and sides[side].updates[-1] == last:
        layers += _best(sides[side], x, y)
    title = alt.TitleParams(_name(tables, side), color=COLOURS[side], fontSize=14)
    return marks.panel(layers, WIDTH, HEIGHT, title)


def _name(tables: Tables, side: str) -> str:
    rates = [row["rate"] for row in tables.get("rates", []) if row["side"] == side and row["chosen"]]
    return f"{side}, rate {rates[0]:g}" if rates else side


def _curves(rows: pl.DataFrame, colour: str, x: alt.X, y: alt.Y, last: int) -> list[alt.Chart]:
    layers: list[alt.Chart] = []
    for which, dash in DASHES.items():
        lines = rows.filter(pl.col("which") == which)
        # Held-out below its lines and training above: between the two there is room.
        height, dy = (pl.min("value"), 12) if which == HELD_OUT else (pl.max("value"), -10)
        end = lines.filter(pl.col("update") == pl.max("update")).select(
            pl.first("update"), height, pl.first("which").alias("label")
        )
        name = marks.chart_of(end).mark_text(
            align="right", dy=dy, color=colour, fontSize=12, fontWeight="bold"
        )
        layers += marks.seeds_and_median(lines, x, y, colour=colour, dash=dash)
        if end["update"][0] > last / 3:  # before that the names would lie on one another
            layers.append(name.encode(x, y, text=alt.Text("label:N")))
    return layers


def _best(losses: Curves, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A dot at each seed's best point, their mean loss beside the last."""
    best = pl.DataFrame([{"update": update, "value": value} for value, update in losses.best.values()])
    label = best.select(
        pl.col("update").max(),
        pl.col("value").min(),
        pl.lit(f"best {mean(losses.best_losses).value:.2f}").alias("label"),
    )
    words = marks.chart_of(label).mark_text(align="left", dx=6, dy=12, color=INK, fontSize=12)
    return [marks.points(best, x, y, colour=INK, size=50), words.encode(x, y, text=alt.Text("label:N"))]


def copying(tables: Tables, copies: Sequence[Row], last: int) -> Figure:
    """``last`` as for ``losses``."""
    pooled = [
        {"side": side, "update": update, **share.row()}
        for side in SIDES
        for update, share in copy_shares(tables, side).items()
    ]
    each, table = (pl.DataFrame(rows, infer_schema_length=None) for rows in (copies, pooled))
    seeds, n = plural(each["seed"].n_unique(), "seed"), f"{table['n'].max():,}"
    words = {"title": copy_title(tables, pooled), "n": n, "seeds": seeds}
    return figure("progression", "training_copies", _copy_chart(each, table, last), table, **words)


def copy_title(tables: Tables, pooled: Sequence[Row]) -> str:
    if not complete(tables):
        return "Samples copied from training so far"
    last = max(row["update"] for row in pooled)
    ends = [row for row in pooled if row["update"] == last]
    shares = ", ".join(f"{percent(row['value'], 1)} ({row['side']})" for row in ends)
    return f"Copied after {last} updates: {shares} of n = {ends[0]['n']:,} samples"


def _copy_chart(copies: pl.DataFrame, pooled: pl.DataFrame, last: int) -> alt.LayerChart:
    x = alt.X("update:Q", title="Updates").scale(domain=[0, last], nice=False)
    y = alt.Y("value:Q", title="Copied from training").scale(domain=[0, 1]).axis(format=".0%")
    thin, whole = (marks.with_looks(table, "side", LOOKS) for table in (copies, pooled))
    dash = alt.StrokeDash("side:N", legend=None).scale(
        domain=list(SIDES), range=[LOOKS[side][2] for side in SIDES]
    )
    ends = whole.sort("update").group_by("side", maintain_order=True).last()
    layers = [
        marks.bars(whole, x, y),
        *marks.seeds_and_median(thin, x, y, dash=dash, shape=marks.SHAPE, by="side", middle=whole),
        marks.end_labels(ends, marks.EDGE, y, 260),
    ]
    return marks.panel(layers, 560, 260)
