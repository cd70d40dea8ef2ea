"""Curves of loss against N: a point a seed, the law dashed with its band, a label at the line's end."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl

from isoloss.errors import Refusal
from isoloss.figures.points import fit_over_params
from isoloss.figures.style import family_colour, linear_axis, log_axis, shades, spread
from isoloss.laws import Fit

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
GRID_POINTS = 60
ROOM = 1.3


@dataclass(frozen=True)
class Line:
    """One curve: its points (params, seed, loss), how it is drawn, and its law or why there is none."""

    curve: str
    points: pl.DataFrame
    colour: str
    shape: str
    fit: Fit | Refusal

    @property
    def law(self) -> str:
        return "no law fitted" if isinstance(self.fit, Refusal) else self.fit.formula()


def lines_of(points: pl.DataFrame, value: str = "loss") -> tuple[Line, ...]:
    """A line for each curve; shades and point shapes tell the curves of one family apart."""
    points = points.with_columns(pl.col(value).alias("loss"))
    families = points["family"].unique(maintain_order=True).to_list()
    out = []
    for family in families:
        own = points.filter(pl.col("family") == family)
        curves = own["curve"].unique(maintain_order=True).to_list()
        for i, (curve, colour) in enumerate(
            zip(curves, shades(family_colour(family, families), len(curves)), strict=True)
        ):
            rows = (
                own.filter(pl.col("curve") == curve).select("params", "seed", "loss").sort("params", "seed")
            )
            out.append(Line(curve, rows, colour, SHAPES[i % len(SHAPES)], fit_over_params(rows)))
    return tuple(out)


def fitted(line: Line) -> pl.DataFrame:
    """The law over the line's own range of N: params, law, low, high (band of the law's mean)."""
    if isinstance(line.fit, Refusal):
        return pl.DataFrame(schema=dict.fromkeys(("params", "law", "low", "high"), pl.Float64))
    params = np.geomspace(line.points["params"].min(), line.points["params"].max(), GRID_POINTS)
    predicted = line.fit.predict(params=params)
    low, high = predicted.band if predicted.band is not None else (predicted.loss, predicted.loss)
    return pl.DataFrame({"params": params, "law": predicted.loss, "low": low, "high": high})


def layers(
    lines: Sequence[Line], *, width: int, height: int, y_title: str, labels: bool = True
) -> alt.LayerChart:
    """Bands, laws, means, points and labels of several lines on shared log-N and loss axes."""
    points = pl.concat(line.points.with_columns(drawn(line)) for line in lines)
    laws = pl.concat(fitted(line).with_columns(drawn(line)) for line in lines)
    mean = points.group_by("curve", "colour", "shape", "params", maintain_order=True).agg(
        pl.col("loss").mean()
    )
    # Bands may be far wider than the data; they are clipped at the panel's edge instead of flattening it.
    low, high = points["loss"].min(), points["loss"].max()
    x = log_axis(
        alt.X,
        "params",
        "Parameters N, non-embedding",
        points["params"].min(),
        points["params"].max(),
        room=ROOM,
    )
    y = linear_axis("loss", y_title, low, high)
    colour, by_curve = alt.Color("colour:N", scale=None), alt.Detail("curve:N")
    parts = [
        chart_of(laws)
        .mark_area(opacity=0.13, clip=True)
        .encode(x, y2="high:Q", y=_named(y, "low"), color=colour, detail=by_curve),
        chart_of(mean).mark_line(strokeWidth=1, opacity=0.45).encode(x, y, color=colour, detail=by_curve),
        chart_of(laws)
        .mark_line(strokeDash=[6, 4], strokeWidth=2, clip=True)
        .encode(x, _named(y, "law"), color=colour, detail=by_curve),
        chart_of(points)
        .mark_point(filled=True, size=46, opacity=0.9)
        .encode(x, y, color=colour, shape=alt.Shape("shape:N", scale=None)),
    ]
    if labels:
        parts.append(end_labels(lines, mean, (low, high), height, x, y))
    return alt.layer(*parts).properties(width=width, height=height)


def chart_of(table: pl.DataFrame) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=table.to_dicts()))


def drawn(line: Line) -> list[pl.Expr]:
    return [
        pl.lit(line.curve).alias("curve"),
        pl.lit(line.colour).alias("colour"),
        pl.lit(line.shape).alias("shape"),
    ]


def _named(axis: alt.Y, column: str) -> alt.Y:
    other = axis.copy()
    other.shorthand = f"{column}:Q"
    return other


def end_labels(
    lines, mean: pl.DataFrame, span: tuple[float, float], height: int, x: alt.X, y: alt.Y
) -> alt.Chart:
    """Name and law of each line in its own colour, right of the panel, moved apart where lines end close."""
    ends = [float(mean.filter(pl.col("curve") == line.curve)["loss"][-1]) for line in lines]
    rows = [
        {
            "params": mean["params"].max() * ROOM,
            "loss": place,
            "label": f"{line.curve}:  {line.law}",
            "colour": line.colour,
        }
        for line, place in zip(lines, spread(ends, 17 * 1.1 * (span[1] - span[0]) / height), strict=True)
    ]
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(align="left", dx=10, fontSize=12, fontWeight="bold", clip=False)
        .encode(x, y, text="label:N", color=alt.Color("colour:N", scale=None))
    )


def table_of(lines: Sequence[Line]) -> pl.DataFrame:
    """Every point drawn, with its curve's law and its value there."""
    parts = []
    for line in lines:
        law = pl.lit(None, dtype=pl.Float64)
        if not isinstance(line.fit, Refusal):
            law = pl.Series(line.fit.predict(params=line.points["params"].to_numpy()).loss)
        parts.append(
            line.points.select(
                pl.lit(line.curve).alias("curve"),
                "params",
                "seed",
                "loss",
                law.alias("law_loss"),
                pl.lit(line.law).alias("law"),
            )
        )
    return pl.concat(parts)
