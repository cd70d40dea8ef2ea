"""Loss against training compute: every run's curve, and the lowest loss that any run has at each compute.

After Hoffmann et al. 2022 (arXiv 2203.15556), Fig. 2: the lower envelope of the curves is the loss that a
budget buys, and the size that lies on it the size to train.
"""

import itertools

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.families import name_of
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, POWERS, family_colour, linear_axis, log_axis
from isoloss.records import StudyData

WIDTH, HEIGHT = 560, 380
START = 30.0
"""Curves are drawn from the smallest final compute over this factor: before it all of them fall alike."""


def figure(study: StudyData) -> Figure:
    """Curves at the constant rate, and the ends of their cooldowns. Raises Refusal before any run has one."""
    table = study.table()
    rows = table.filter(
        (pl.col("status") == "finished") & (pl.col("flops_6nd") > 0) & pl.col("loss").is_not_null()
    )
    if rows.filter(pl.col("cooled")).is_empty():
        raise Refusal("no run has finished", mend="let the study run on")
    ends = rows.filter(pl.col("cooled"))
    rows = rows.filter(pl.col("flops_6nd") >= marks.span(ends["flops_6nd"])[0] / START)
    families = rows["family"].unique(maintain_order=True).to_list()
    colours = {family: family_colour(family, families) for family in families}
    shapes = dict(zip(families, itertools.cycle(marks.SHAPES)))
    rows = rows.with_columns(
        pl.col("family").replace_strict(colours).alias("colour"),
        pl.col("family").replace_strict(shapes).alias("shape"),
    )
    ends, curves = rows.filter(pl.col("cooled")), rows.filter(~pl.col("cooled"))
    lowest = envelope_of(ends)
    # Curves begin far above where they end; they are clipped at the panel's edge.
    low, high = marks.span(ends["loss"])
    y = linear_axis("loss", "Validation loss (nats per token)", low, high + 0.5 * (high - low))
    shown = rows.filter(pl.col("loss") <= marks.domain(y)[1])["flops_6nd"]
    x = log_axis(
        alt.X,
        "flops_6nd",
        "Training compute C = 6 N D, FLOPs",
        *marks.span(shown),
        room=1.15,
        labels=POWERS,
    )
    names = rows.group_by("family", maintain_order=True).agg(pl.col("loss").min(), pl.col("colour").first())
    layers = [
        marks.line(curves, x, y, by="run_id", width=1, opacity=0.35, clip=True),
        marks.points(ends, x, y, shape=marks.SHAPE, size=34, opacity=0.8, clip=True),
        marks.line(stairs(lowest), x, y, colour=INK, width=2.2),
        marks.end_labels(
            names.with_columns(pl.col("family").map_elements(name_of, return_dtype=pl.String).alias("label")),
            marks.EDGE,
            y,
            HEIGHT,
        ),
    ]
    last = lowest.row(-1, named=True)
    return captioned(
        "learning-curves",
        marks.panel(layers, WIDTH, HEIGHT),
        f"{text.power(last['flops_6nd'])} FLOPs buy a loss of {text.brief(last['loss'])} here, "
        f"with the {name_of(last['family'])} of N = {text.count(last['params'])}",
        rows.select("run_id", "family", "params", "tokens", "flops_6nd", "loss", "cooled"),
        runs=rows["run_id"].n_unique(),
        steps=text.plural(lowest.height, "end"),
    )


def stairs(lowest: pl.DataFrame) -> pl.DataFrame:
    """The envelope as a budget sees it: a loss is the lowest until more compute buys a lower one."""
    corners = lowest.select("flops_6nd", pl.col("loss").shift(1)).drop_nulls()
    points = pl.concat([lowest.select("flops_6nd", "loss"), corners])
    return points.sort("flops_6nd", "loss", descending=[False, True])


def envelope_of(ends: pl.DataFrame) -> pl.DataFrame:
    """Of ends of cooldowns in order of compute, those below every cheaper one."""
    ordered = ends.sort("flops_6nd", "loss")
    best = np.minimum.accumulate(ordered["loss"].to_numpy())
    lower = np.concatenate([[True], best[1:] < best[:-1]])
    return ordered.filter(pl.Series(lower)).unique("flops_6nd", keep="first", maintain_order=True)
