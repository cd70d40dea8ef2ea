"""Matrices for people: lines for the terminal, cells for the deck's tables; a number beside every shade."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

SHADES = " ░▒▓█"
PLUS, MINUS = (0, 114, 178), (204, 85, 0)
"""Blue and vermilion of the figures, from white at 0."""

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

    def shaded_rows(self) -> Iterator[tuple[str, list[tuple[str, str, str]], str]]:
        """Each row's label; its cells as number, colour behind it and colour of the text; its sum or ''."""
        for index, (label, values) in enumerate(zip(self.rows, self.cells, strict=True)):
            colours = [colour(value, self.largest) for value in values]
            backs = zip(values, colours, strict=True)
            cells = [(number(value), hex_code(back), ink(back)) for value, back in backs]
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


def colour(value: float | None, largest: float) -> tuple[int, int, int]:
    """White at 0, full blue or vermilion at the matrix's largest size; grey for what the mask hides."""
    if value is None:
        return (227, 227, 227)
    full, share = (PLUS if value >= 0 else MINUS), min(1.0, abs(value) / largest)
    red, green, blue = (round(255 + share * (part - 255)) for part in full)
    return red, green, blue


def hex_code(rgb: tuple[int, int, int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in rgb)


def ink(rgb: tuple[int, int, int]) -> str:
    """Black or white, whichever stands out more from the background (WCAG 2.2, relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in rgb)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"
