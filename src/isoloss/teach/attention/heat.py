"""Heat maps of attention: places that look down the side, places looked at along the bottom."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from isoloss.figures.marks import chart_of
from isoloss.figures.style import GRID, INK

SCHEME = ["#ffffff", "#0072B2"]


def shaded(
    rows: list[dict[str, Any]], labels: Sequence[str], *, top: float = 1.0, angle: float = -90
) -> alt.Chart:
    """Cells of ``looks``, ``looks at``, ``weight``: white at 0, blue at ``top``."""
    scale = alt.Scale(domain=[0, top], range=SCHEME, clamp=True, interpolate="rgb")
    x = alt.X("looks at:N", title="looked at", sort=list(labels), scale=alt.Scale(domain=list(labels)))
    return (
        chart_of(pl.DataFrame(rows, infer_schema_length=None))
        .mark_rect(stroke=GRID, strokeWidth=0.5)
        .encode(
            x.axis(labelAngle=angle, labelLimit=150),
            alt.Y("looks:N", title="looks", sort=list(labels), scale=alt.Scale(domain=list(labels))).axis(
                labelLimit=150
            ),
            color=alt.Color("weight:Q", scale=scale, legend=alt.Legend(title="weight", gradientLength=90)),
        )
    )


def numbered_map(rows: list[dict[str, Any]], labels: Sequence[str], *, size: int = 12) -> alt.LayerChart:
    """The same with the number in each cell, dark or light by the cell's shade."""
    base = shaded(rows, labels, angle=-40)
    numbers = base.mark_text(fontSize=size).encode(
        text=alt.Text("weight:Q", format=".2f"),
        color=alt.condition("datum.weight > 0.92", alt.value("white"), alt.value(INK)),
    )
    return alt.layer(base, numbers)
