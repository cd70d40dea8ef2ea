"""Matrices for people: lines for the terminal, tables for the deck; a number beside every shade."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from rich.cells import cell_len

from isoloss.teach.result import Row

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
        return (
            max((abs(value) for row in self.cells for value in row if value is not None), default=0.0) or 1.0
        )


def cells_of(rows: Iterable[Row], name: str) -> Cells:
    """The cells of one matrix out of a long table."""
    found: dict[int, list[float | None]] = {}
    for row in rows:
        if row["matrix"] == name:
            found.setdefault(int(row["row"]), []).append(row["value"])
    return [found[number] for number in sorted(found)]


def number(value: float | None) -> str:
    """Two digits after the point, a true minus, and no minus zero."""
    if value is None:
        return "−∞"
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def lines_of(matrix: Matrix) -> list[str]:
    """The matrix as text: a number and a shade by its size in each cell.

    Where columns are the words of the rows, their numbers head them: nine words fit a terminal of 80.
    """
    written = [[number(v) + shade(v, matrix.largest) for v in row] for row in matrix.cells]
    square = matrix.columns == matrix.rows
    heads = [name.split(" ")[0] if square else name for name in matrix.columns]
    if matrix.sums is not None:
        heads.append("sum")
        written = [[*row, number(total)] for row, total in zip(written, matrix.sums, strict=True)]
    widths = [max(cell_len(text) for text in column) for column in zip(heads, *written, strict=True)]
    first = max(cell_len(label) for label in matrix.rows)
    return [
        matrix.caption,
        " ".join([" " * first, *map(right, heads, widths)]).rstrip(),
        *(
            " ".join([label + " " * (first - cell_len(label)), *map(right, row, widths)]).rstrip()
            for label, row in zip(matrix.rows, written, strict=True)
        ),
        "",
    ]


def right(text: str, width: int) -> str:
    """Flush right by cells of the terminal, of which an emoji takes two."""
    return " " * (width - cell_len(text)) + text


def shade(value: float | None, largest: float) -> str:
    size = 0.0 if value is None else abs(value) / largest
    return SHADES[min(len(SHADES) - 1, int(size * len(SHADES)))]


def html_of(matrix: Matrix) -> Markup:
    """The matrix as a table with a caption and headed rows and columns; all labels escaped."""
    heads = [*matrix.columns, *(["sum"] if matrix.sums is not None else [])]
    head = Markup("").join(Markup('<th scope="col" class="number">{}</th>').format(name) for name in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}{}</tr>').format(
            label, Markup("").join(cell(value, matrix.largest) for value in row), total(matrix, place)
        )
        for place, (label, row) in enumerate(zip(matrix.rows, matrix.cells, strict=True))
    )
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="matrix">'
        "<caption>{}</caption><thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(matrix.caption, matrix.caption, head, body)


def total(matrix: Matrix, place: int) -> Markup:
    if matrix.sums is None:
        return Markup("")
    return Markup('<td class="number"><strong>{}</strong></td>').format(number(matrix.sums[place]))


def cell(value: float | None, largest: float) -> Markup:
    background = colour(value, largest)
    return Markup('<td class="number" style="background:{};color:{}">{}</td>').format(
        hexed(background), ink(background), escape(number(value))
    )


def colour(value: float | None, largest: float) -> tuple[int, int, int]:
    """White at 0, full blue or vermilion at the matrix's largest size; grey for what the mask hides."""
    if value is None:
        return (227, 227, 227)
    full, share = (PLUS if value >= 0 else MINUS), min(1.0, abs(value) / largest)
    red, green, blue = (round(255 + share * (part - 255)) for part in full)
    return red, green, blue


def hexed(rgb: tuple[int, int, int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in rgb)


def ink(rgb: tuple[int, int, int]) -> str:
    """Black or white, whichever stands out more from the background (WCAG 2.2, relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in rgb)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"
