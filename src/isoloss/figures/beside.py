"""Laws that others printed, drawn beside one's own."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss.errors import InputError
from isoloss.figures.fit_rows import chart_of, renamed
from isoloss.figures.style import QUIET, spread
from isoloss.laws import Fit

GRID = 60


def table(fit: Fit, others: Sequence[Fit], name: str, values: np.ndarray) -> pl.DataFrame:
    """The others along the input ``name``: that column, ``other`` (its loss) and ``of`` (its name).

    Raises InputError for a law of other inputs, or of more than one.
    """
    parts = []
    for other in others:
        if other.form.inputs != (name,) or other.form.gives != fit.form.gives:
            raise InputError(
                f"takes {', '.join(other.form.inputs)} and gives {other.form.gives}",
                where=title(other),
                mend=f"draw beside a law of one input those that take {name} alone too",
            )
        x = np.geomspace(values.min(), values.max(), GRID)
        loss = other.predict(**{name: x}).loss
        parts.append(pl.DataFrame({name: x, "other": loss, "of": [title(other)] * GRID}))
    return pl.concat(parts)


def title(other: Fit) -> str:
    return str(other.source.get("published", other.law))


def lines(drawn: pl.DataFrame, name: str, x: alt.X, y: alt.Y, gap: float) -> list[alt.Chart]:
    """Dashed quiet lines, each named where it ends, the names at least ``gap`` apart."""
    ends = drawn.filter(pl.col(name) == pl.col(name).max())
    ends = ends.with_columns(pl.Series("other", spread(ends["other"].to_list(), gap)))
    return [
        chart_of(drawn)
        .mark_line(color=QUIET, strokeDash=[5, 4], strokeWidth=1.5, clip=True)
        .encode(x.copy(), renamed(y, "other"), detail="of:N"),
        chart_of(ends)
        .mark_text(align="left", dx=6, fontSize=11, color=QUIET, clip=False)
        .encode(x.copy(), renamed(y, "other"), text="of:N"),
    ]
