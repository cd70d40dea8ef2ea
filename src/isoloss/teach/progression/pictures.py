"""Figures of the training demo: both losses against updates, and the share of samples that are copies."""

from collections.abc import Sequence
from statistics import median

import altair as alt
import polars as pl

from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET, family_colour, spread
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
from isoloss.teach.shares import percent

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
        f"n = {seeds} seed{'s' * (seeds != 1)}: thin lines, median thick; dots: best of each seed"
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
    lines = [
        (f"floor {corpus['floor']:.2f}", corpus["floor"]),
        (f"uniform {corpus['uniform']:.2f}", corpus["uniform"]),
    ]
    marks = alt.Chart(alt.InlineData(values=[{"value": value, "label": label} for label, value in lines]))
    parts = [
        marks.mark_rule(color=QUIET, strokeDash=[2, 3], strokeWidth=1.5).encode(y),
        marks.mark_text(align="left", dx=4, dy=-7, color=QUIET, fontSize=12).encode(
            y, x=alt.value(0), text="label:N"
        ),
    ]
    if rows:
        parts += _curves(rows, colour, x, y)
    if (own := curves(tables, side)) is not None:
        parts += _best(own, x, y)
    return alt.layer(*parts).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(_name(tables, side), color=colour, fontSize=14)
    )


def _name(tables: Tables, side: str) -> str:
    rates = [row["rate"] for row in tables.get("rates", []) if row["side"] == side and row["chosen"]]
    return f"{side}, rate {rates[0]:g}" if rates else side


def _curves(rows: Sequence[Row], colour: str, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    parts = []
    for which, dash in DASHES.items():
        own = [row for row in rows if row["which"] == which]
        thin = alt.Chart(alt.InlineData(values=[dict(row) for row in own]))
        middle = _median(own)
        thick = alt.Chart(alt.InlineData(values=middle))
        last = middle[-1]["update"]
        ends = [row["value"] for row in own if row["update"] == last]
        # Held-out below its lines and training above: between the two there is room.
        place, dy = (min(ends), 12) if which == HELD_OUT else (max(ends), -10)
        end = {"update": last, "value": place, "label": which}
        parts += [
            thin.mark_line(strokeWidth=0.8, opacity=0.5, color=colour, strokeDash=dash).encode(
                x, y, detail="seed:N"
            ),
            thick.mark_line(strokeWidth=2.5, color=colour, strokeDash=dash).encode(x, y),
            alt.Chart(alt.InlineData(values=[end]))
            .mark_text(align="right", dy=dy, color=colour, fontSize=12, fontWeight="bold")
            .encode(x, y, text="label:N"),
        ]
    return parts


def _best(own: Curves, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A dot at each seed's best point, their mean loss beside the last."""
    points = [{"update": update, "value": value} for value, update in own.best.values()]
    mean = level([point["value"] for point in points])
    label = {
        "update": max(point["update"] for point in points),
        "value": min(point["value"] for point in points),
        "label": f"best {mean.value:.2f}",
    }
    return [
        alt.Chart(alt.InlineData(values=points)).mark_point(filled=True, size=50, color=INK).encode(x, y),
        alt.Chart(alt.InlineData(values=[label]))
        .mark_text(align="left", dx=6, dy=12, color=INK, fontSize=12)
        .encode(x, y, text="label:N"),
    ]


def _median(rows: Sequence[Row]) -> list[Row]:
    by_update: dict[int, list[float]] = {}
    for row in rows:
        by_update.setdefault(row["update"], []).append(row["value"])
    return [{"update": update, "value": median(values)} for update, values in sorted(by_update.items())]


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
        f"{max(row['n'] for row in pooled):,} samples a point over {seeds} seed{'s' * (seeds != 1)}; "
        "bars: 95 % Wilson; thin: each seed"
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
    said = ", ".join(f"{percent(row['value'])} ({row['side']})" for row in ends)
    return f"Copied after {last} updates: {said} of n = {ends[0]['n']:,} samples"


def _copy_chart(copies: Sequence[Row], pooled: Sequence[Row]) -> alt.LayerChart:
    x = alt.X("update:Q", title="Updates")
    y = alt.Y("value:Q", title="Copied from training").scale(domain=[0, 1]).axis(format=".0%")
    colour = alt.Color("colour:N", scale=None)
    thin = [dict(row) | {"colour": family_colour(row["side"].lower())} for row in copies]
    ends = [
        max((r for r in pooled if r["side"] == s), key=lambda r: r["update"])
        for s in {r["side"]: 0 for r in pooled}
    ]
    places = spread([row["value"] for row in ends], 0.06)
    labels = [row | {"value": place} for row, place in zip(ends, places, strict=True)]
    whole = alt.Chart(alt.InlineData(values=[dict(row) for row in pooled]))
    parts = [
        alt.Chart(alt.InlineData(values=thin))
        .mark_line(strokeWidth=0.8, opacity=0.45)
        .encode(x, y, color=colour, detail=["side:N", "seed:N"]),
        whole.mark_rule(strokeWidth=1.5).encode(x, alt.Y("low:Q"), y2="high:Q", color=colour),
    ]
    for side, shape in SHAPES.items():
        own = alt.Chart(alt.InlineData(values=[dict(row) for row in pooled if row["side"] == side]))
        dash = [1, 0] if side == SIDES[0] else [6, 3]
        parts += [
            own.mark_line(strokeWidth=2.5, strokeDash=dash).encode(x, y, color=colour),
            own.mark_point(filled=True, size=70, shape=shape, opacity=1).encode(x, y, color=colour),
        ]
    parts.append(
        alt.Chart(alt.InlineData(values=labels))
        .mark_text(align="left", dx=10, fontSize=12, fontWeight="bold")
        .encode(x, y, text="side:N", color=colour)
    )
    return alt.layer(*parts).properties(width=560, height=260)
