"""What a figure is before anyone draws it: a chart, its finding in words, and the numbers behind it."""

from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Figure:
    """``name`` is the file's stem. ``chart`` is an altair chart, whose specification is plain data.

    ``title`` states the finding, ``description`` says in words what is drawn, for whoever does not see it.
    ``shows`` and ``would_change`` are the paragraphs beside it; ``table`` holds every number drawn.
    """

    name: str
    chart: Any
    title: str
    description: str
    shows: str
    would_change: str
    table: pl.DataFrame
