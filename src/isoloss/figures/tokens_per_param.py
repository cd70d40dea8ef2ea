"""How many tokens a parameter each law wants as compute grows: where laws of papers disagree."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.frontier import POINTS, largest_plan, tokens_per_param
from isoloss.errors import InputError
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, OTHER_COLOURS, POWERS, PREDICTED, QUIET, axis, log_axis
from isoloss.laws import Fit

WIDTH, HEIGHT = 560, 360
DECADES = 2.0
"""Of compute drawn on both sides of the largest run."""
RULE = 20.0
DASHES = ([1, 0], [7, 3], [2, 3], [7, 3, 2, 3], [12, 4], [4, 4])
"""One a law, so that a grey print tells them apart."""


def figure(fit: Fit, others: Sequence[Fit] = ()) -> Figure:
    """D / N of the best model over C = 6 N D, of a fit and of laws beside it, with the bands that they have.

    Raises Refusal for a law without N and D, InputError for one of those beside.
    """
    flops = largest_plan(fit).flops
    flops_F = np.geomspace(flops / 10**DECADES, flops * 10**DECADES, POINTS)
    laws = [fit, *others]
    if len(laws) > 1 + len(OTHER_COLOURS):
        raise InputError("too many laws to tell apart", mend=f"draw at most {len(OTHER_COLOURS)} beside")
    colours, names = [PREDICTED, *OTHER_COLOURS], [name_of(fit, "this fit"), *map(name_of, others)]
    table = pl.concat(
        tokens_per_param(law, flops_F).with_columns(label=pl.lit(name), colour=pl.lit(colour))
        for law, name, colour in zip(laws, names, colours, strict=False)
    )
    looks = alt.Scale(domain=names, range=[DASHES[i] for i in range(len(names))])
    dashes = alt.StrokeDash("label:N", scale=looks, legend=None)
    x = log_axis(alt.X, "flops", "Training compute C, FLOPs", *marks.span(flops_F), labels=POWERS)
    y = axis(alt.Y, "ratio", "Training tokens a parameter, D / N", [*table["ratio"], RULE], room=1.4)
    rule = pl.DataFrame({"flops": flops_F, "ratio": np.full(POINTS, RULE)})
    here = pl.DataFrame({"flops": [flops], "label": ["largest run"]})
    ends = table.group_by("label", maintain_order=True).last()
    named = marks.chart_of(here).mark_text(align="left", dx=4, fontSize=12, color=QUIET)
    layers = [
        marks.chart_of(here).mark_rule(color=QUIET, strokeDash=[2, 3]).encode(x),
        named.encode(x, y=alt.value(12), text="label:N"),
        marks.line(rule, x, y, colour=INK, width=1.2, dash=[5, 4]),
        marks.band(table, x, y, by="label", opacity=0.15, clip=True),
        marks.line(table, x, y, by="label", width=2.4, dash=dashes, clip=True),
        marks.end_labels(ends, marks.EDGE, y, HEIGHT),
    ]
    at = float(np.interp(np.log(flops), np.log(flops_F), tokens_per_param(fit, flops_F)["ratio"].to_numpy()))
    return captioned(
        "tokens-per-param",
        marks.panel(layers, WIDTH, HEIGHT),
        f"At {text.power(flops)} FLOPs {names[0]} wants {text.number(at, 2)} tokens a parameter",
        table.drop("colour"),
        laws=text.listed(names),
        level=text.level(fit.level),
    )


def name_of(law: Fit, otherwise: str = "") -> str:
    """A published law by its own name, a fit by its form's or ``otherwise``."""
    return str(law.source.get("published", otherwise or law.law))
