"""Figures of the training demo: both losses against updates, and the share of samples that are copies."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET, family_colour
from isoloss.stats import difference, pooled_noise
from isoloss.teach.progression.curves import (
    HELD_OUT,
    SIDES,
    TRAINING,
    Curves,
    at_chosen_rate,
    complete,
    copy_shares,
    curves,
    level,
)
from isoloss.teach.prose import figure
from isoloss.teach.result import Row, Tables
from isoloss.teach.versus import Versus
from isoloss.text import percent, plural

DASHES = {TRAINING: [6, 4], HELD_OUT: [1, 0]}
SHAPES = {"Transformer": "circle", "LSTM": "triangle-up"}
WIDTH, HEIGHT = 300, 300


def figures(tables: Tables) -> list[Figure]:
    """What there is to draw so far."""
    runs, copies = at_chosen_rate(tables, "runs"), at_chosen_rate(tables, "copies")
    return [*([losses(tables, runs)] if runs else []), *([copying(tables, copies)] if copies else [])]


def losses(tables: Tables, runs: Sequence[Row]) -> Figure:
    corpus, seeds = tables["corpus"][0], len({row["seed"] for row in runs})
    top = max(corpus["uniform"], max(row["value"] for row in runs))
    panels = [_panel(tables, side, [row for row in runs if row["side"] == side], top) for side in SIDES]
    table = pl.DataFrame(runs, infer_schema_length=None).select("side", "seed", "which", "update", "value")
    words = {"title": loss_title(tables), "seeds": plural(seeds, "seed"), **corpus}
    return figure("progression", "training_losses", alt.hconcat(*panels, spacing=24), table, **words)


def loss_title(tables: Tables) -> str:
    if not complete(tables):
        return "Training and held-out loss so far"
    sides = curves(tables)
    best = ", ".join(f"{level(losses.best_losses).value:.2f}" for losses in sides.values())
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
    """Whose lowest held-out losses are lower, a value a seed; one seed tells nothing."""
    a, b = (sides[side].best_losses for side in SIDES)
    apart = difference(a, b, pooled_noise([a, b])) if min(len(a), len(b)) > 1 else None
    return Versus(*SIDES, apart, better="less")


def _panel(tables: Tables, side: str, rows: Sequence[Row], top: float) -> alt.LayerChart:
    colour, corpus = family_colour(side.lower()), tables["corpus"][0]
    x = alt.X("update:Q", title="Updates")
    y = alt.Y("value:Q", title="Loss (nats a word)").scale(domain=[0, 1.05 * top], nice=False)
    levels = pl.DataFrame(
        {
            "value": [corpus["floor"], corpus["uniform"]],
            "label": [f"floor {corpus['floor']:.2f}", f"uniform {corpus['uniform']:.2f}"],
        }
    )
    rules = marks.chart_of(levels).encode(y)
    layers = [
        rules.mark_rule(color=QUIET, strokeDash=[2, 3], strokeWidth=1.5),
        rules.mark_text(align="left", dx=4, dy=-7, color=QUIET, fontSize=12).encode(
            x=alt.value(0), text="label:N"
        ),
    ]
    if rows:
        layers += _curves(rows, colour, x, y)
    if side in (sides := curves(tables)):
        layers += _best(sides[side], x, y)
    title = alt.TitleParams(_name(tables, side), color=colour, fontSize=14)
    return marks.panel(layers, WIDTH, HEIGHT, title)


def _name(tables: Tables, side: str) -> str:
    rates = [row["rate"] for row in tables.get("rates", []) if row["side"] == side and row["chosen"]]
    return f"{side}, rate {rates[0]:g}" if rates else side


def _curves(rows: Sequence[Row], colour: str, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    layers: list[alt.Chart] = []
    for which, dash in DASHES.items():
        table = pl.DataFrame([row for row in rows if row["which"] == which], infer_schema_length=None)
        last = table["update"].max()
        low, high = marks.span(table.filter(pl.col("update") == last)["value"])
        # Held-out below its lines and training above: between the two there is room.
        height, dy = (low, 12) if which == HELD_OUT else (high, -10)
        end = pl.DataFrame({"update": [last], "value": [height], "label": [which]})
        name = marks.chart_of(end).mark_text(
            align="right", dy=dy, color=colour, fontSize=12, fontWeight="bold"
        )
        layers += marks.seeds_and_median(table, x, y, colour=colour, dash=dash)
        layers.append(name.encode(x, y, text="label:N"))
    return layers


def _best(losses: Curves, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A dot at each seed's best point, their mean loss beside the last."""
    best = pl.DataFrame([{"update": update, "value": value} for value, update in losses.best.values()])
    mean = level(losses.best_losses)
    label = best.select(
        pl.col("update").max(), pl.col("value").min(), pl.lit(f"best {mean.value:.2f}").alias("label")
    )
    words = marks.chart_of(label).mark_text(align="left", dx=6, dy=12, color=INK, fontSize=12)
    return [marks.points(best, x, y, colour=INK, size=50), words.encode(x, y, text="label:N")]


def copying(tables: Tables, copies: Sequence[Row]) -> Figure:
    pooled = [
        {"side": side, "update": update, "colour": family_colour(side.lower()), **share.row()}
        for side in SIDES
        for update, share in copy_shares(tables, side).items()
    ]
    seeds = len({row["seed"] for row in copies})
    table = pl.DataFrame(pooled).select("side", "update", "value", "low", "high", "n")
    title, n = copy_title(tables, pooled), f"{max(row['n'] for row in pooled):,}"
    words = {"title": title, "n": n, "seeds": plural(seeds, "seed")}
    return figure("progression", "training_copies", _copy_chart(copies, pooled), table, **words)


def copy_title(tables: Tables, pooled: Sequence[Row]) -> str:
    if not complete(tables):
        return "Samples copied from training so far"
    last = max(row["update"] for row in pooled)
    ends = [row for row in pooled if row["update"] == last]
    shares = ", ".join(f"{percent(row['value'], 1)} ({row['side']})" for row in ends)
    return f"Copied after {last} updates: {shares} of n = {ends[0]['n']:,} samples"


def _copy_chart(copies: Sequence[Row], pooled: Sequence[Row]) -> alt.LayerChart:
    x = alt.X("update:Q", title="Updates")
    y = alt.Y("value:Q", title="Copied from training").scale(domain=[0, 1]).axis(format=".0%")
    thin = pl.DataFrame(
        [row | {"colour": family_colour(row["side"].lower())} for row in copies], infer_schema_length=None
    )
    whole = pl.DataFrame([row | {"shape": SHAPES[row["side"]]} for row in pooled])
    dash = alt.StrokeDash("side:N", legend=None).scale(domain=list(SIDES), range=[[1, 0], [6, 3]])
    ends = whole.sort("update").group_by("side", maintain_order=True).last()
    layers = [
        marks.bars(whole, x, y),
        *marks.seeds_and_median(thin, x, y, dash=dash, shape=marks.SHAPE, by="side", middle=whole),
        marks.end_labels(ends.with_columns(pl.col("side").alias("label")), x, y, 260),
    ]
    return marks.panel(layers, 560, 260)
