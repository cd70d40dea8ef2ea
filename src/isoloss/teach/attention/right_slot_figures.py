"""Figures of the right-slot panel: the change by update; maps before and after beside their ablation."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET, family_colour
from isoloss.teach.attention.heat import shaded
from isoloss.teach.attention.right_slot_rows import (
    LAYERS,
    LOOKS,
    accuracies,
    baseline,
    kept,
    seed_count,
    solved,
    token_labels,
    uniform_mass,
)
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.result import Row, Tables
from isoloss.text import percent

BLUE, RIGHT = family_colour("transformer"), "#CC5500"
UNIT = alt.Scale(domain=[0, 1])


def progress_figure(settings: RightSlotSettings, tables: Tables) -> Figure:
    """Accuracy and weight on the right slots by update: a thin line a seed, the median thick."""
    rows = [{"measure": "accuracy", **row} for row in tables["accuracy"]]
    rows += [{"measure": f"layer {row['layer']}", **row} for row in tables["mass"]]
    panels = [
        progress_panel(
            tables["accuracy"],
            "Accuracy on unseen strings",
            {
                "value set": baseline(tables, "value set"),
                "guessing": baseline(tables, "uniform"),
            },
        )
    ]
    for layer in LAYERS:
        own = [row for row in tables["mass"] if row["layer"] == layer]
        even = {"even": uniform_mass(layer, settings.pairs)}
        panels.append(progress_panel(own, f"Layer {layer}: {LOOKS[layer]}", even))
    title = progress_title(tables)
    n = ", ".join(sorted({f"{row['n']:,}" for row in tables["accuracy"]}))
    subtitle = (
        f"{seed_count(tables)} seeds, a thin line each, median thick; {n} unseen strings at each look. "
        "Right panels: weight on the right slot. Dashed: what is had without binding."
        " Value set: always the string's most frequent value."
    )
    return Figure(
        name="progress",
        chart=alt.hconcat(*panels, spacing=18),
        title=title,
        subtitle=subtitle,
        characters=96,
        description="Three panels over updates: accuracy, weight on the right slot in layer 1, in layer 2.",
        shows="The panels share their updates: see what moves first.",
        would_change="More pairs or another learning rate move the change, or put it past the last update.",
        table=pl.DataFrame(rows).drop("layer", strict=False) if rows else pl.DataFrame(),
    )


def progress_title(tables: Tables) -> str:
    last = max(int(row["update"]) for row in tables["accuracy"])
    rows = [float(row["value"]) for row in tables["accuracy"] if row["update"] == last]
    n = tables["accuracy"][0]["n"]
    found = {}
    for layer in LAYERS:
        own = [r for r in tables["mass"] if r["layer"] == layer and r["update"] == last]
        found[layer] = fmean(float(r["value"]) for r in own)
    weights = " and ".join(f"{found[layer]:.2f} (layer {layer})" for layer in LAYERS)
    return (
        f"After {last} updates: mean accuracy {percent(fmean(rows), 1)} (n = {n} a seed), "
        f"mean weight on the right slot {weights}"
    )


def progress_panel(rows: Sequence[Row], name: str, lines: dict[str, float]) -> alt.LayerChart:
    table = pl.DataFrame(rows, infer_schema_length=None)
    last = int(marks.span(table["update"])[1])
    x = alt.X("update:Q", title="Updates", scale=alt.Scale(domain=[0, last], nice=False)).axis(tickCount=5)
    y = alt.Y("value:Q", title=None, scale=UNIT)
    layers = [
        *references(lines),
        marks.bars(table, x, y, colour=BLUE, width=1, opacity=0.35),
        *marks.seeds_and_median(table, x, y, colour=BLUE, shape="circle"),
    ]
    title = alt.TitleParams(text=name, fontSize=13, anchor="start", offset=6)
    return marks.panel(layers, 240, 220, title)


def references(lines: dict[str, float], *, right: bool = True) -> list[alt.Chart]:
    """Dashed levels with their names above them."""
    labels = [f"{name}: {level:.2f}" for name, level in lines.items()]
    y = alt.Y("level:Q", scale=UNIT, title=None)
    base = marks.chart_of(pl.DataFrame({"level": list(lines.values()), "label": labels})).encode(y)
    words = base.mark_text(
        align="right" if right else "left",
        baseline="bottom",
        dx=-3 if right else 3,
        dy=-2,
        fontSize=12,
        color=INK,
    )
    side = marks.EDGE if right else alt.XValue(0)
    return [base.mark_rule(strokeDash=[6, 4], color=QUIET), words.encode(side, text="label:N")]


def maps_figure(settings: RightSlotSettings, tables: Tables) -> Figure:
    """Both layers' maps before and after, right slots outlined, beside what flattening a layer does."""
    labels = labels_of(token_labels(tables))
    side = max(150, 12 * len(labels))
    columns = [
        alt.vconcat(*(one_map(tables, state, layer, labels, side) for state in ("untrained", "trained")))
        for layer in LAYERS
    ]
    maps = alt.hconcat(*columns).resolve_scale(color="shared")
    chart = alt.hconcat(maps, ablation_chart(tables, 2 * side), spacing=24).resolve_scale(
        color="independent", shape="independent"
    )
    title = maps_title(tables)
    seed = tables["map"][0]["seed"]
    n = f"{tables['ablation'][0]['n']:,}"
    subtitle = (
        f"Left: one unseen string, seed {seed}, a row the place that looks; outlined: the right slot. "
        f"Right: accuracy of each of {seed_count(tables)} seeds, trained (circles) and untrained (squares), "
        f"with a layer forced to look evenly; n = {n} strings a point, Wilson 95%."
    )
    return Figure(
        name="maps",
        chart=chart,
        title=title,
        subtitle=subtitle,
        characters=96,
        description=(
            "Four heat maps, layers 1 and 2 before and after training, and a dot plot of accuracy with no "
            "layer, layer 1 or layer 2 forced to look evenly at the past, before and after training."
        ),
        shows="A map shows where the weight is; the ablation, whether answers depend on it.",
        would_change="More seeds, more pairs, or several heads that share the work.",
        table=pl.DataFrame(tables["ablation"]),
    )


def maps_title(tables: Tables) -> str:
    seeds = kept(tables)
    means = [
        fmean(accuracies(tables, "trained", forced)[seed].value for seed in seeds)
        for forced in ("none", "layer 1", "layer 2")
    ]
    whole, first, second = (percent(mean, 1) for mean in means)
    which = (
        f"{len(solved(tables))} of {seed_count(tables)} seeds learned it"
        if solved(tables)
        else "no seed learned it"
    )
    n = f"{tables['ablation'][0]['n']:,}"
    return (
        f"Accuracy {whole}; with layer 1 even {first}, with layer 2 even {second} (n = {n} strings; {which})"
    )


def one_map(tables: Tables, state: str, layer: int, labels: list[str], side: int) -> alt.LayerChart:
    rows: list[dict[str, Any]] = [
        {
            "looks": labels[int(row["place"])],
            "looks at": labels[int(row["looks_at"])],
            "weight": row["value"],
            "right": row["right"],
        }
        for row in tables["map"]
        if row["state"] == state and row["layer"] == layer
    ]
    cells = shaded(rows, labels)
    outline = (
        marks.chart_of(pl.DataFrame([row for row in rows if row["right"]]))
        .mark_rect(filled=False, stroke=RIGHT, strokeWidth=1.6)
        .encode(alt.X("looks at:N", sort=labels), alt.Y("looks:N", sort=labels))
    )
    name = f"Layer {layer}, {state}"
    return alt.layer(cells, outline).properties(
        width=side, height=side, title=alt.TitleParams(text=name, fontSize=13, anchor="start", offset=6)
    )


def ablation_chart(tables: Tables, height: int) -> alt.LayerChart:
    names = {"none": "as it is", "layer 1": "layer 1 even", "layer 2": "layer 2 even"}
    rows = [
        {**row, "forced": names[str(row["forced"])], "seed": str(row["seed"])} for row in tables["ablation"]
    ]
    states = ["trained", "untrained"]
    base = marks.chart_of(pl.DataFrame(rows, infer_schema_length=None)).encode(
        alt.X("forced:N", sort=list(names.values()), title=None).axis(labelAngle=-35),
        xOffset=alt.XOffset("seed:N"),
        color=alt.Color("state:N", scale=alt.Scale(domain=states, range=[BLUE, QUIET]), legend=None),
    )
    bars = base.mark_rule(strokeWidth=1.4).encode(alt.Y("low:Q", scale=UNIT, title="Accuracy"), y2="high:Q")
    dots = base.mark_point(filled=True, size=55, opacity=0.9).encode(
        alt.Y("value:Q", scale=UNIT, title="Accuracy"),
        shape=alt.Shape("state:N", scale=alt.Scale(domain=states, range=["circle", "square"]), legend=None),
    )
    levels = {"value set": baseline(tables, "value set"), "guessing": baseline(tables, "uniform")}
    return (
        alt.layer(*references(levels, right=False), bars, dots)
        .properties(width=210, height=height)
        .resolve_scale(color="shared")
    )
