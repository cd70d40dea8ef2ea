"""Heat maps of attention: places that look down the side, places looked at along the bottom."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss.figures.marks import chart_of
from isoloss.figures.style import GRID, INK

SCHEME = ["#ffffff", "#7dbfe6"]
"""Dark letters stand out on all of it, and light ones on what the dark theme makes of it."""


def heat_map(
    weights: pl.DataFrame, labels: Sequence[str], *, top: float = 1.0, angle: float = -90
) -> alt.Chart:
    """Cells of ``looks``, ``looks at``, ``weight``: white at 0, blue at ``top``."""
    scale = alt.Scale(domain=[0, top], range=SCHEME, clamp=True, interpolate="rgb")
    x = alt.X("looks at:N", title="looked at", sort=list(labels), scale=alt.Scale(domain=list(labels)))
    y = alt.Y("looks:N", title="looks", sort=list(labels), scale=alt.Scale(domain=list(labels)))
    legend = alt.Legend(title="weight", gradientLength=90)
    return (
        chart_of(weights)
        .mark_rect(stroke=GRID, strokeWidth=0.5)
        .encode(
            x.axis(labelAngle=angle, labelLimit=150),
            y.axis(labelLimit=150),
            color=alt.Color("weight:Q", scale=scale, legend=legend),
        )
    )


def numbered_map(weights: pl.DataFrame, labels: Sequence[str]) -> alt.LayerChart:
    """The same with the number in each cell."""
    base = heat_map(weights, labels, angle=-40)
    numbers = base.mark_text(fontSize=12).encode(
        text=alt.Text("weight:Q", format=".2f"), color=alt.value(INK)
    )
    return alt.LayerChart(layer=[base, numbers])


def cells_of(rows: pl.DataFrame, columns: tuple[str, str], labels: Sequence[str], first: int) -> pl.DataFrame:
    """The columns ``looks``, ``looks at`` and ``weight`` of a map whose places are counted from ``first``.

    ``columns``: the place that looks and the one looked at.
    """
    names, (looks, looked_at) = dict(enumerate(labels, first)), columns
    return rows.select(
        pl.col(looks).replace_strict(names, return_dtype=pl.String).alias("looks"),
        pl.col(looked_at).replace_strict(names, return_dtype=pl.String).alias("looks at"),
        pl.col("value").alias("weight"),
    )
