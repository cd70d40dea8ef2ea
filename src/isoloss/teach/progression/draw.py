"""Figures of the training demo: both losses against updates, and the share of samples that are copies."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET, family_colour
from isoloss.teach.progression.curves import (
    HELD_OUT,
    SIDES,
    TRAINING,
    Curves,
    best_difference,
    copied,
    curves,
    finished,
    kept,
    level,
)
from isoloss.teach.result import Row, Tables
from isoloss.text import percent, plural

DASHES = {TRAINING: [6, 4], HELD_OUT: [1, 0]}
SHAPES = {"Transformer": "circle", "LSTM": "triangle-up"}
WIDTH, HEIGHT = 300, 300


def figures(tables: Tables) -> list[Figure]:
    """What there is to draw so far."""
    runs, copies = kept(tables, "runs"), kept(tables, "copies")
    return [*([losses(tables, runs)] if runs else []), *([copying(tables, copies)] if copies else [])]


def losses(tables: Tables, runs: Sequence[Row]) -> Figure:
    corpus, seeds = tables["corpus"][0], len({row["seed"] for row in runs})
    top = max(corpus["uniform"], max(row["value"] for row in runs))
    panels = [_panel(tables, side, [row for row in runs if row["side"] == side], top) for side in SIDES]
    title = loss_title(tables)
    subtitle = (
        f"Nats a word over {corpus['training']} training and {corpus['held_out']} held-out sentences; "
        f"n = {plural(seeds, 'seed')}: thin lines, median thick; dots: best of each seed"
    )
    return Figure(
        name="training_losses",
        chart=alt.hconcat(*panels, spacing=24),
        title=title,
        subtitle=subtitle,
        description=(
            "Two panels, Transformer and LSTM. In each the training loss, dashed, and the held-out loss, "
            "solid, against updates; two grey lines mark uniform guessing and the exact floor."
        ),
        shows="Where the dashed line nears the floor the sentences are known by heart; the solid line is "
        "what that is worth on sentences that were not read.",
        would_change="More sentences move the turn to later; dropout or weight decay soften the rise.",
        table=pl.DataFrame(
            [{k: row[k] for k in ("side", "seed", "which", "update", "value")} for row in runs]
        ),
    )


def loss_title(tables: Tables) -> str:
    if not finished(tables):
        return "Training and held-out loss so far"
    found = {side: own for side in SIDES if (own := curves(tables, side)) is not None}
    lows = {side: level([loss for loss, _ in own.best.values()]).value for side, own in found.items()}
    apart = best_difference(*found.values())
    best = ", ".join(f"{lows[side]:.2f}" for side in found)
    if apart is None:
        return f"Held-out loss of one seed a side, which gives no verdict (best {best} nats)"
    if not apart.decided:
        verdict = "no clear difference at their best"
    else:
        lower = min(lows, key=lambda side: lows[side])
        verdict = f"the {lower} is lower at its best"
    turned = [side for side, own in found.items() if own.turns_up]
    turns = {2: "turns up for both", 1: f"turns up for the {''.join(turned)}", 0: "shows no clear turn"}
    return f"Held-out loss {turns[len(turned)]}; {verdict} ({best} nats)"


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
    if (own := curves(tables, side)) is not None:
        layers += _best(own, x, y)
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


def _best(own: Curves, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A dot at each seed's best point, their mean loss beside the last."""
    best = pl.DataFrame([{"update": update, "value": value} for value, update in own.best.values()])
    mean = level(best["value"].to_list())
    label = best.select(
        pl.col("update").max(), pl.col("value").min(), pl.lit(f"best {mean.value:.2f}").alias("label")
    )
    words = marks.chart_of(label).mark_text(align="left", dx=6, dy=12, color=INK, fontSize=12)
    return [marks.points(best, x, y, colour=INK, size=50), words.encode(x, y, text="label:N")]


def copying(tables: Tables, copies: Sequence[Row]) -> Figure:
    pooled = [
        {"side": side, "update": update, "low": share.interval[0], "high": share.interval[1]}
        | {"value": share.value, "n": share.n, "colour": family_colour(side.lower())}
        for side in SIDES
        for update, share in copied(tables, side).items()
    ]
    title, seeds = copy_title(tables, pooled), len({row["seed"] for row in copies})
    subtitle = (
        f"Share of samples from one prompt that are training sentences word for word, temperature 1; n = "
        f"{max(row['n'] for row in pooled):,} samples a point over {plural(seeds, 'seed')}; "
        "bars: 95% Wilson; thin: each seed"
    )
    return Figure(
        name="training_copies",
        chart=_copy_chart(copies, pooled),
        title=title,
        subtitle=subtitle,
        description="Copied share against updates: a line a model, a thin line a seed, Wilson bars.",
        shows="A sample that is a training sentence word for word is recalled, not composed.",
        would_change="Stopping early keeps the share low; greedy decoding of a memoriser copies even more.",
        table=pl.DataFrame(
            [{k: row[k] for k in ("side", "update", "value", "low", "high", "n")} for row in pooled]
        ),
    )


def copy_title(tables: Tables, pooled: Sequence[Row]) -> str:
    if not finished(tables):
        return "Samples copied from training so far"
    last = max(row["update"] for row in pooled)
    ends = [row for row in pooled if row["update"] == last]
    said = ", ".join(f"{percent(row['value'], 1)} ({row['side']})" for row in ends)
    return f"Copied after {last} updates: {said} of n = {ends[0]['n']:,} samples"


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
