"""Loss increase over the best shape of one size, against each of its ratios (Kaplan et al. 2020, Fig. 5)."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis import papers
from isoloss.analysis.points import LEVEL_WORDS
from isoloss.analysis.shape import ASPECT, NEAR, PANELS, Curve, Shapes, compute_words, fold_words, shared
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, family_colour, linear_axis, log_axis, shades

WIDTH, HEIGHT = 280, 300
MOST = 10.0
"""Percent shown, as in the original; what lies above is in the table."""


def figure(data: Shapes) -> Figure:
    """A panel for each ratio, all with one y axis; what is within 1% of the best in every curve is shaded."""
    rows = pl.concat(rows_of(curve) for curve in data.curves)
    top = min(MOST, max(2.0, *rows["increase"]))
    y = linear_axis("increase", "Loss increase (%)", 0.0, top)
    panels = [[curve for curve in data.curves if curve.panel == panel] for panel in PANELS]
    bare = y.title(None)  # it stands at the first panel
    drawn = [layers_of(curves, bare if i else y) for i, curves in enumerate(filter(None, panels))]
    drawn[-1] += scale_bar(bare, data)
    above = rows.filter(pl.col("increase") > top).height
    return captioned(
        "shape",
        alt.hconcat(*[marks.panel(layers, WIDTH, HEIGHT) for layers in drawn], spacing=20),
        text.capital(fold_words(data)),
        rows,
        tokens=text.count(data.tokens),
        seeds=text.counts(*marks.span(rows["seeds"])),
        level=LEVEL_WORDS,
        above=f" {text.plural(above, 'shape')} above {top:g}% in the table." if above else "",
        worth=text.capital(compute_words(data)),
        paper=f" {papers.on_shape(data)}".rstrip(),
        verdicts="; ".join(f"{curve.panel}, {curve.name}: {curve.verdict}" for curve in data.curves),
    )


def rows_of(curve: Curve) -> pl.DataFrame:
    """Every shape of a curve, in percent."""
    percent = [(100 * pl.col(name)).alias(name) for name in ("increase", "low", "high")]
    names = [pl.lit(curve.panel).alias("panel"), pl.lit(curve.name).alias("curve")]
    return curve.rows.with_columns(percent).select(*names, pl.all())


def short(curve: Curve) -> str:
    """Its name in few letters: three panels stand abreast."""
    return curve.name if curve.panel == ASPECT else curve.name.replace(" = ", " ")


def layers_of(curves: Sequence[Curve], y: alt.Y) -> list[alt.Chart]:
    """The curves of one ratio; white inside is what is not told apart from the best."""
    looks = zip(curves, shades(family_colour("transformer"), len(curves)), marks.SHAPES * 9, strict=False)
    rows = pl.concat(
        rows_of(curve).with_columns(colour=pl.lit(colour), shape=pl.lit(shape), label=pl.lit(short(curve)))
        for curve, colour, shape in looks
    )
    x = log_axis(alt.X, "x", curves[0].panel, *marks.span(rows["x"]), room=1.25, labels=".3~g")
    inside = rows.filter(pl.col("low").fill_null(0.0) <= 0)
    ends = rows.group_by("curve", maintain_order=True).last()
    ends = ends.with_columns(pl.col("increase").clip(upper_bound=marks.domain(y)[1]))
    return [
        *shade(curves, x),
        marks.bars(rows.drop_nulls("low"), x, y, opacity=0.4, clip=True),
        marks.line(rows, x, y, by="curve", clip=True),
        marks.points(rows, x, y, shape=marks.SHAPE, size=60, clip=True),
        marks.points(inside, x, y, shape=marks.SHAPE, size=18, colour="white", clip=True),
        marks.end_labels(ends, marks.EDGE, y, HEIGHT, size=11),
    ]


def shade(curves: Sequence[Curve], x: alt.X) -> list[alt.Chart]:
    """Over the ratios that every curve has within 1% of its best."""
    flat = shared([curve.flat for curve in curves if curve.flat is not None])
    ends = [] if flat is None else [flat.measured]
    place = pl.DataFrame(ends, schema={"x": pl.Float64, "end": pl.Float64}, orient="row")
    return [marks.chart_of(place).mark_rect(opacity=0.09, color=INK).encode(x, x2="end:Q")]


def scale_bar(y: alt.Y, data: Shapes) -> list[alt.Chart]:
    """What 1% of loss is in compute, as a bar of that height."""
    if data.compute is None:
        return []
    top = 0.95 * marks.domain(y)[1]
    words = f"1% of loss: {text.percent(data.compute[0])} more compute"
    bar = marks.chart_of(pl.DataFrame({"low": [top - 100 * NEAR], "high": [top], "label": [words]}))
    place, high = alt.XValue(10), marks.renamed(y, "high")
    return [
        bar.mark_rule(strokeWidth=3, color=INK).encode(place, marks.renamed(y, "low"), y2="high:Q"),
        bar.mark_text(align="left", dx=8, fontSize=11, baseline="top").encode(place, high, text="label:N"),
    ]
