"""Figures of the right-slot panel: the change by update, and what each layer is needed for."""

from statistics import fmean

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET, family_colour
from isoloss.teach import prose
from isoloss.teach.attention.right_slot.outcomes import (
    LAYERS,
    baselines,
    masses,
    seed_count,
    shares,
    solvers,
    uniform_mass,
)
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.result import Tables, frame
from isoloss.text import percent

BLUE = family_colour("transformer")
UNIT = alt.Scale(domain=[0, 1])


def progress_figure(settings: RightSlotSettings, tables: Tables) -> Figure:
    """Accuracy and weight on the right slots by update: a thin line a seed, the median thick."""
    accuracy, mass = frame(tables, "accuracy"), frame(tables, "mass")
    panels = [progress_panel(accuracy, "Accuracy", baselines(tables))]
    for layer in LAYERS:
        even = {"even": uniform_mass(layer, settings.pairs)}
        panels.append(progress_panel(mass.filter(layer=layer), f"Gaze, layer {layer}", even))
    measures = [
        accuracy.select(pl.lit("accuracy").alias("measure"), "*"),
        mass.select(pl.format("layer {}", "layer").alias("measure"), *accuracy.columns),
    ]
    last = accuracy.filter(pl.col("update") == pl.col("update").max())
    weights = [f"{fmean(masses(tables, layer, 'last').values()):.2f} (layer {layer})" for layer in LAYERS]
    return prose.figure(
        "attention",
        "progress",
        alt.hconcat(*panels, spacing=18),
        pl.concat(measures),
        last=last["update"][0],
        accuracy=percent(fmean(last["value"].to_list()), 1),
        n=accuracy["n"][0],
        weights=" and ".join(weights),
        seeds=seed_count(tables),
        strings=", ".join(sorted({f"{n:,}" for n in accuracy["n"].to_list()})),
    )


def progress_panel(table: pl.DataFrame, name: str, levels: dict[str, float]) -> alt.LayerChart:
    last = int(marks.span(table["update"])[1])
    x = alt.X("update:Q", title="Updates", scale=alt.Scale(domain=[0, last], nice=False))
    x = x.axis(values=[0, last // 2, last])
    y = alt.Y("value:Q", title=None, scale=UNIT)
    layers = [
        *references(levels),
        marks.bars(table, x, y, colour=BLUE, width=1, opacity=0.35),
        *marks.seeds_and_median(table, x, y, colour=BLUE, shape="circle"),
    ]
    title = alt.TitleParams(text=name, fontSize=13, anchor="start", offset=6)
    return marks.panel(layers, 128, 230, title)


def references(levels: dict[str, float], *, right: bool = True) -> list[alt.Chart]:
    """Dashed levels with their names above them."""
    labels = [f"{name}: {level:.2f}" for name, level in levels.items()]
    y = alt.Y("level:Q", scale=UNIT, title=None)
    base = marks.chart_of(pl.DataFrame({"level": list(levels.values()), "label": labels})).encode(y)
    align, dx, side = ("right", -3, marks.EDGE) if right else ("left", 3, alt.XValue(0))
    words = base.mark_text(align=align, baseline="bottom", dx=dx, dy=-2, fontSize=12, color=INK)
    return [base.mark_rule(strokeDash=[6, 4], color=QUIET), words.encode(side, text=alt.Text("label:N"))]


def ablation_figure(tables: Tables) -> Figure:
    """What flattening a layer does to the answers, before and after training."""
    ablation = frame(tables, "ablation")
    whole, first, second = (
        percent(fmean(share.value for share in shares(tables, forced)), 1)
        for forced in ("none", "layer 1", "layer 2")
    )
    learned = f"{len(solvers(tables))} of {seed_count(tables)} seeds learned it"
    return prose.figure(
        "attention",
        "ablation",
        ablation_chart(ablation, baselines(tables)),
        ablation,
        whole=whole,
        first=first,
        second=second,
        learned=learned if solvers(tables) else "no seed learned it",
        n=ablation["n"][0],
        seeds=seed_count(tables),
    )


def ablation_chart(ablation: pl.DataFrame, levels: dict[str, float]) -> alt.LayerChart:
    names = {"none": "as it is", "layer 1": "layer 1 even", "layer 2": "layer 2 even"}
    table = ablation.with_columns(pl.col("forced").replace_strict(names), pl.col("seed").cast(pl.String))
    states = ["trained", "untrained"]
    base = marks.chart_of(table).encode(
        alt.X("forced:N", sort=list(names.values()), title=None).axis(labelAngle=-35),
        xOffset=alt.XOffset("seed:N"),
        color=alt.Color("state:N", scale=alt.Scale(domain=states, range=[BLUE, QUIET]), legend=None),
    )
    bars = base.mark_rule(strokeWidth=1.4).encode(
        alt.Y("low:Q", scale=UNIT, title="Accuracy"), y2=alt.Y2("high:Q")
    )
    dots = base.mark_point(filled=True, size=55, opacity=0.9).encode(
        alt.Y("value:Q", scale=UNIT, title="Accuracy"),
        shape=alt.Shape("state:N", scale=alt.Scale(domain=states, range=["circle", "square"]), legend=None),
    )
    layers = [*references(levels, right=False), bars, dots]
    return marks.panel(layers, 300, 240).resolve_scale(color="shared")
