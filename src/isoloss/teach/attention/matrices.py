"""Matrices for people: lines for the terminal, cells for the deck's tables; a number beside every shade."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

SHADES = " ░▒▓█"

Cells = list[list[float | None]]


@dataclass(frozen=True)
class Matrix:
    """``rows`` and ``columns`` are labels; None in a cell is minus infinity. ``sums``: beside each row."""

    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Cells
    sums: Sequence[float] | None = None

    @property
    def largest(self) -> float:
        sizes = [abs(value) for row in self.cells for value in row if value is not None]
        return max(sizes, default=0.0) or 1.0

    @property
    def heads(self) -> list[str]:
        return [*self.columns, *(["sum"] if self.sums is not None else [])]

    def shaded_rows(self) -> Iterator[tuple[str, list[tuple[str, int | None]], str]]:
        """Each row's label; its cells: number and percent of the largest, None where masked; its sum."""
        for index, (label, values) in enumerate(zip(self.rows, self.cells, strict=True)):
            shades = [None if value is None else round(100 * value / self.largest) for value in values]
            cells = list(zip(map(number, values), shades, strict=True))
            yield label, cells, "" if self.sums is None else number(self.sums[index])


def number(value: float | None) -> str:
    """Two digits after the point, a true minus, and no minus zero."""
    if value is None:
        return "−∞"
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def lines_of(matrix: Matrix) -> list[str]:
    """The matrix as text: a number and a shade by its size in each cell.

    Where columns are the words of the rows, their numbers head them: nine words fit a terminal of 80.
    """
    square = matrix.columns == matrix.rows
    heads = [name.split(" ")[0] if square else name for name in matrix.heads]
    table = [[number(v) + shade(v, matrix.largest) for v in row] for row in matrix.cells]
    if matrix.sums is not None:
        table = [[*row, number(total)] for row, total in zip(table, matrix.sums, strict=True)]
    widths = [max(map(cell_len, column)) for column in zip(heads, *table, strict=True)]
    first = max(map(cell_len, matrix.rows))
    lines = [matrix.caption]
    for label, row in (("", heads), *zip(matrix.rows, table, strict=True)):
        cells = [" " * (width - cell_len(text)) + text for text, width in zip(row, widths, strict=True)]
        lines.append(" ".join([label + " " * (first - cell_len(label)), *cells]).rstrip())
    return [*lines, ""]


def shade(value: float | None, largest: float) -> str:
    size = 0.0 if value is None else abs(value) / largest
    return SHADES[min(len(SHADES) - 1, int(size * len(SHADES)))]
