"""Loops at equal depth: loss against the parameters that a model has, and against those that it is worth."""

from itertools import cycle

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import brief_formula, law_losses
from isoloss.analysis.loop_worth import INPUTS, LoopWorth, phi_words, worth_words
from isoloss.analysis.loops import LoopedStudy
from isoloss.analysis.points import LEVEL_WORDS, seeds_phrase
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import FAMILY_COLOURS, linear_axis, log_axis, shades

WIDTH, HEIGHT = 360, 300
DASHES = ([1, 0], [5, 3], [1.5, 2], [7, 3, 2, 3])


def study_figure(data: LoopedStudy) -> Figure:
    """Raises Refusal where no loop's worth was measured."""
    if isinstance(data.worth, Refusal):
        raise data.worth
    return figure(data.worth)


def figure(data: LoopWorth) -> Figure:
    """At the largest D: left against N, right against N_once + r^phi N_rec, where one curve is left."""
    rows = data.points.filter(pl.col("tokens") == pl.col("tokens").max())
    inputs = {name: rows[name].to_numpy().astype(float) for name in INPUTS}
    effective = inputs["params_once"] + inputs["recurrence"] ** data.phi.value * inputs["params_recurrent"]
    names = [f"r = {loops}" for loops in rows["recurrence"].unique().sort().to_list()]
    colours = shades(FAMILY_COLOURS["looped"], len(names))
    colour = marks.key(alt.Color, "loops", dict(zip(names, colours, strict=True)))
    shape = marks.key(alt.Shape, "loops", dict(zip(names, marks.SHAPES, strict=False)))
    dash = marks.key(alt.StrokeDash, "loops", dict(zip(names, cycle(DASHES)))).legend(None)
    rows = rows.with_columns(
        pl.Series("effective", effective),
        law_losses(data.law, rows).alias("law"),
        pl.concat_str(pl.lit("r = "), "recurrence").alias("loops"),
    ).sort("recurrence", "params")
    y = linear_axis("loss", "Loss (nats per token)", *marks.span(rows["loss"], rows["law"]))
    low, high = marks.span(rows["params"], effective)
    sides = []
    for column, title in (("params", "Parameters N"), ("effective", "N_once + r^φ N_rec")):
        x = log_axis(alt.X, column, title, low, high, room=1.4)
        layers = [
            marks.line(rows, x, marks.renamed(y, "law"), colour=colour, width=1.2, dash=dash),
            marks.points(rows, x, y, colour=colour, shape=shape, size=60),
        ]
        sides.append(marks.panel(layers, WIDTH, HEIGHT))
    columns = ("params", "effective", "params_once", "params_recurrent", "recurrence", "seed", "loss", "law")
    return captioned(
        "loop-worth",
        alt.hconcat(*sides),
        text.capital(worth_words(data)),
        rows.select(columns),
        tokens=text.count(float(np.max(inputs["tokens"]))),
        seeds=seeds_phrase(data.points.filter(pl.col("tokens") == pl.col("tokens").max())),
        law=brief_formula(data.law),
        phi=phi_words(data),
        level=LEVEL_WORDS,
    )
