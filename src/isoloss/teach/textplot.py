"""Curves for a terminal: marks at what was measured, dots between, plain characters without colour."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from isoloss.table import cell
from isoloss.teach.prose import Plot

MARKS = "o+x*#@%&"
WIDTH, HEIGHT, EDGE = 60, 12, 10


def lines(title: str, table: pl.DataFrame, plot: Plot) -> Iterator[str]:
    """The medians of ``plot.y`` against ``plot.x``, a mark ``plot.by`` value; nothing without a number."""
    names = [plot.by, plot.x]
    points = table.group_by(names, maintain_order=True).agg(pl.col(plot.y).median()).drop_nulls()
    if points.is_empty():
        return
    marks = dict(zip(points[plot.by].unique(maintain_order=True), MARKS, strict=False))
    across, up = (_scaled(points[column], column == plot.x, plot) for column in (plot.x, plot.y))
    placed = points.with_columns(
        pl.Series("column", across * (WIDTH - 1)), pl.Series("row", up * (HEIGHT - 1))
    )
    grid = np.full((HEIGHT, WIDTH), " ")
    for dots in (True, False):
        for (name,), own in placed.sort("column").group_by(plot.by, maintain_order=True):
            columns, rows = own["column"].to_numpy().round().astype(int), own["row"].to_numpy()
            if dots:
                between = np.arange(columns[0], columns[-1] + 1)
                grid[np.interp(between, columns, rows).round().astype(int), between] = "."
            else:
                grid[rows.round().astype(int), columns] = marks.get(name, "?")
    low, high, first, last = (
        cell(end) for column in (plot.y, plot.x) for end in (points[column].min(), points[column].max())
    )
    yield title
    for row in reversed(range(HEIGHT)):
        label = {HEIGHT - 1: high, 0: low}.get(row, "")
        yield f"{label:>{EDGE}} |{''.join(grid[row])}".rstrip()
    yield f"{'':>{EDGE}} +{'-' * WIDTH}"
    yield f"{'':>{EDGE}}  {first}{plot.x.replace('_', ' '):^{WIDTH - len(first) - len(last)}}{last}"
    yield from (f"{'':>{EDGE}}  {mark} {name}" for name, mark in marks.items())
    yield ""


def _scaled(column: pl.Series, horizontal: bool, plot: Plot) -> np.ndarray:
    """From 0 at the smallest to 1 at the largest, along the logarithm where ``plot.log`` names the axis."""
    values = column.to_numpy().astype(float)
    if ("x" if horizontal else "y") in plot.log:
        values = np.log(np.maximum(values, 1e-12))
    return (values - values.min()) / (np.ptp(values) or 1.0)
