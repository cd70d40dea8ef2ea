"""Laws that others printed, drawn over one's own."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss.analysis.fit_rows import law_at
from isoloss.errors import InputError
from isoloss.figures import marks
from isoloss.figures.style import QUIET
from isoloss.laws import Fit

GRID = 60


def curves(fit: Fit, others: Sequence[Fit], name: str, low: float, high: float) -> pl.DataFrame:
    """The others along the input ``name``: that column, ``other`` (its loss) and ``label`` (its name).

    Raises InputError for a law of other inputs, or of more than one.
    """
    parts: list[pl.DataFrame] = []
    for other in others:
        if other.form.inputs != (name,) or other.form.gives != fit.form.gives:
            raise InputError(
                f"takes {', '.join(other.form.inputs)} and gives {other.form.gives}",
                where=title(other),
                mend=f"draw beside a law of one input those that take {name} alone too",
            )
        values = np.geomspace(low, high, GRID)
        loss = law_at(other, {name: values})
        parts.append(pl.DataFrame({name: values, "other": loss, "label": [title(other)] * GRID}))
    return pl.concat(parts)


def title(other: Fit) -> str:
    """The name under which a law was published, or that of its form."""
    return str(other.source.get("published", other.law))


def layers(printed: pl.DataFrame, name: str, x: alt.X, y: alt.Y, height: float) -> list[alt.Chart]:
    """Dashed quiet lines, each named where it ends."""
    y = marks.renamed(y, "other")
    ends = printed.filter(pl.col(name) == pl.col(name).max()).with_columns(pl.lit(QUIET).alias("colour"))
    return [
        marks.line(printed, x, y, colour=QUIET, dash=[5, 4], width=1.5, by="label", clip=True),
        marks.end_labels(ends, x, y, height, size=11),
    ]
