"""Curves of loss against N: a point a seed, the law dashed with its band, a label at the line's end."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl

from isoloss.analysis.fit_rows import law_at
from isoloss.analysis.points import Curve
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.marks import SHAPES
from isoloss.figures.style import family_colour, linear_axis, log_axis, shades

GRID_POINTS = 60
ROOM = 1.3


@dataclass(frozen=True)
class Line:
    """A curve and how it is drawn."""

    curve: Curve
    colour: str
    shape: str


def lines_of(curves: Sequence[Curve]) -> tuple[Line, ...]:
    """A line for each curve; shades and point shapes tell the curves of one family apart."""
    families = list(dict.fromkeys(curve.family for curve in curves))
    lines: list[Line] = []
    for family in families:
        members = [curve for curve in curves if curve.family == family]
        colours = shades(family_colour(family, families), len(members))
        for i, (curve, colour) in enumerate(zip(members, colours, strict=True)):
            lines.append(Line(curve, colour, SHAPES[i % len(SHAPES)]))
    return tuple(lines)


def fitted(curve: Curve) -> pl.DataFrame:
    """The law over the curve's own range of N: params, law, low, high (band of the law's mean)."""
    if isinstance(curve.fit, Refusal):
        return pl.DataFrame(schema=dict.fromkeys(("params", "law", "low", "high"), pl.Float64))
    params = np.geomspace(*marks.span(curve.points["params"]), GRID_POINTS)
    predicted = curve.fit.predict(params=params)
    low, high = predicted.band if predicted.band is not None else (predicted.loss, predicted.loss)
    return pl.DataFrame({"params": params, "law": predicted.loss, "low": low, "high": high})


def layers(lines: Sequence[Line], *, height: float, y_title: str) -> list[alt.Chart]:
    """Bands, laws, means, points and labels of several lines on shared log-N and loss axes."""
    points = pl.concat(line.curve.points.with_columns(look_of(line)) for line in lines)
    laws = pl.concat(fitted(line.curve).with_columns(look_of(line)) for line in lines)
    means = points.group_by("curve", "colour", "params", maintain_order=True).agg(pl.col("loss").mean())
    x = log_axis(alt.X, "params", "Parameters N, non-embedding", *marks.span(points["params"]), room=ROOM)
    # Bands may be far wider than the data; they are clipped at the panel's edge instead of flattening it.
    y = linear_axis("loss", y_title, *marks.span(points["loss"]))
    names = [f"{line.curve.name}:  {line.curve.law}" for line in lines]
    ends = means.group_by("curve", maintain_order=True).last().with_columns(pl.Series("label", names))
    return [
        marks.band(laws, x, y, opacity=0.13, by="curve", clip=True),
        marks.line(means, x, y, width=1, opacity=0.45, by="curve"),
        marks.line(laws, x, marks.renamed(y, "law"), dash=[6, 4], by="curve", clip=True),
        marks.points(points, x, y, shape=marks.SHAPE, size=46, opacity=0.9),
        marks.end_labels(ends, marks.EDGE, y, height),
    ]


def look_of(line: Line) -> list[pl.Expr]:
    """Columns with the curve's name, colour and point shape."""
    return [
        pl.lit(line.curve.name).alias("curve"),
        pl.lit(line.colour).alias("colour"),
        pl.lit(line.shape).alias("shape"),
    ]


def table_of(curves: Sequence[Curve]) -> pl.DataFrame:
    """Every point drawn, with its curve's law and its value there."""
    parts: list[pl.DataFrame] = []
    for curve in curves:
        law = pl.lit(None, dtype=pl.Float64)
        if not isinstance(curve.fit, Refusal):
            law = pl.Series(law_at(curve.fit, {"params": curve.points["params"].to_numpy()}))
        parts.append(
            curve.points.select(
                pl.lit(curve.name).alias("curve"),
                "params",
                "seed",
                "loss",
                law.alias("law_loss"),
                pl.lit(curve.law).alias("law"),
            )
        )
    return pl.concat(parts)
