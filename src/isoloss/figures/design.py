"""The runs to buy next in the plane of N and D, among those at hand and with the one to predict."""

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.frontier import Source
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.plan import name_of
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL, log_axis
from isoloss.plans.design import Design
from isoloss.plans.fixed_inputs import run_sizes

WIDTH, HEIGHT = 560, 420
COUNTED = 6.0
"""k in C = k N D, as the design counts it."""


def figure(source: Source, bought: Design) -> Figure:
    """Runs at hand as dots, the runs to buy numbered by gain, the target as a cross, over lines of equal C.

    ``source`` is what ``bought`` was designed for. Raises Refusal for runs of other sizes than N and D.
    """
    if not {"params", "tokens"} <= set(bought.target):
        raise Refusal("the plane of N and D shows no other sizes", mend="design for params and tokens")
    sizes = run_sizes(source)
    at_hand = pl.DataFrame() if sizes is None else pl.DataFrame({"params": sizes[0], "tokens": sizes[1]})
    runs = pl.DataFrame(
        {name: [run.inputs[name] for run in bought.runs] for name in ("params", "tokens")}
        | {"flops": [run.flops for run in bought.runs]}
        | {"half_width": [run.half_width for run in bought.runs]}
        | {"label": [str(i + 1) for i in range(len(bought.runs))]}
    )
    # One size may be bought several times.
    sizes_bought = runs.group_by("params", "tokens", maintain_order=True).agg(pl.col("label").str.join("/"))
    target = pl.DataFrame({name: [bought.target[name]] for name in ("params", "tokens")}).with_columns(
        label=pl.lit("to predict")
    )
    shown = pl.concat([each.select("params", "tokens") for each in (at_hand, runs, target) if each.width])
    x = log_axis(alt.X, "params", "Parameters N", *marks.span(shown["params"]), room=1.5)
    y = log_axis(alt.Y, "tokens", "Training tokens D", *marks.span(shown["tokens"]), room=1.5)
    levels = _equal_compute(marks.domain(x), marks.domain(y))
    layers = [marks.line(levels, x, y, colour=QUIET, width=0.6, opacity=0.5, by="flops")]
    if at_hand.width:
        layers.append(marks.points(at_hand, x, y, colour=REAL, size=24, opacity=0.5))
    layers += [
        marks.points(sizes_bought, x, y, colour=PREDICTED, shape="diamond", size=150),
        _named(sizes_bought, x, y, dy=-14, fontSize=12),
        marks.points(target, x, y, colour=INK, shape="cross", size=160),
        _named(target, x, y, align="right", dx=-12, fontSize=12),
    ]
    return captioned(
        "design",
        marks.panel(layers, WIDTH, HEIGHT),
        title_of(bought),
        runs.drop("label"),
        law=name_of(source),
        count=text.plural(len(bought.runs), "run"),
        points="" if sizes is None else f"; dots: the {len(sizes[0])} runs used",
        target=f"N = {text.count(bought.target['params'])}, D = {text.count(bought.target['tokens'])}",
        level=text.level(bought.level),
        random=f"{text.loss(bought.half_width_random)} {source.loss_unit}",
    )


def title_of(bought: Design) -> str:
    count, spent = text.plural(len(bought.runs), "run"), text.power(bought.spent_flops)
    share = 1 - bought.half_width_after / bought.half_width_now
    return f"{count} for {spent} FLOPs would narrow the interval by {text.percent(share)}"


def _named(table: pl.DataFrame, x: alt.X, y: alt.Y, **look: Any) -> alt.Chart:
    return marks.chart_of(table).mark_text(fontWeight="bold", color=INK, **look).encode(x, y, text="label:N")


def _equal_compute(params: tuple[float, float], tokens: tuple[float, float]) -> pl.DataFrame:
    """Lines of one C each, at powers of ten, from edge to edge of a panel with these ends."""
    lowest, highest = (COUNTED * n * d for n, d in zip(params, tokens, strict=True))
    parts = []
    for power in 10.0 ** np.arange(np.ceil(np.log10(lowest)), np.floor(np.log10(highest)) + 1):
        ends = np.clip(params, power / COUNTED / tokens[1], power / COUNTED / tokens[0])
        parts.append(pl.DataFrame({"params": ends, "tokens": power / COUNTED / ends, "flops": power}))
    return pl.concat(parts) if parts else pl.DataFrame({"params": [], "tokens": [], "flops": []})
