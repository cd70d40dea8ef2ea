"""Tables of words: built once for each fact, printed in a terminal as on a page."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from rich.cells import cell_len

from isoloss import text

NOTHING = "–"
_GAP = "   "
WIDE = 1000
"""Columns where there is no terminal: lines go whole into a file or the next program."""


@dataclass(frozen=True)
class Table:
    """The first column holds row headers. ``numeric``: columns set flush right."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


def cell(value: Any) -> str:
    """A missing number is a dash, never 0."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value != value:
            return NOTHING
        return f"{value:.4f}".replace("-", "−") if 0.1 <= abs(value) < 1000 else text.number(value)
    return str(value)


def table_of(caption: str, frame: pl.DataFrame, names: Sequence[str] | None = None) -> Table:
    """A frame's rows; ``names`` head its columns instead of its own."""
    columns = tuple(names or [name.replace("_", " ") for name in frame.columns])
    rows = tuple(tuple(cell(value) for value in row) for row in frame.iter_rows())
    return Table(caption, columns, rows, tuple(kind.is_numeric() for kind in frame.dtypes))


def text_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numeric: bool = False
) -> Table:
    """Rows of any values; ``numeric``: all columns but the first are set flush right."""
    cells = tuple(tuple(cell(value) for value in row) for row in rows)
    return Table(caption, tuple(columns), cells, tuple(numeric and i > 0 for i in range(len(columns))))


def lines(table: Table, width: int = WIDE) -> Iterator[str]:
    """The table as lines of plain text, folded to ``width``: caption, heads, rows."""
    if table.caption:
        yield f"{table.caption}:"
    rows = [table.columns, *table.rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    narrow = 2 + sum(widths) + len(_GAP) * (len(widths) - 1) <= width
    if not narrow or not all(cell.isprintable() for row in rows for cell in row):
        yield from _folded(table, width)
        return
    for row in rows:
        spaces = (" " * (size - cell_len(cell)) for cell, size in zip(row, widths, strict=True))
        cells = zip(table.numeric, row, spaces, strict=True)
        line = _GAP.join(space + cell if numeric else cell + space for numeric, cell, space in cells)
        yield f"  {line}".rstrip()


def _folded(table: Table, width: int) -> Iterator[str]:
    from rich.console import Console  # slow to import, and most tables fit
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0))
    for name, numeric in zip(table.columns, table.numeric, strict=True):
        grid.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    console = Console(width=width - 2, color_system=None)
    with console.capture() as printed:
        console.print(grid)
    yield from (f"  {line}".rstrip() for line in printed.get().splitlines())
