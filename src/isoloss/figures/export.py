"""One figure to one file, for a screen or for a paper."""

from pathlib import Path

import vl_convert

from isoloss import files
from isoloss.errors import InputError
from isoloss.figures import paper, render
from isoloss.figures.figure import Figure

FORMATS = (".svg", ".pdf", ".png", ".csv")
STYLES = ("screen", "paper")


def check(path: Path, style: str, column: str) -> None:
    """Raises InputError for an unknown format, style or column."""
    for given, known in ((path.suffix, FORMATS), (style, STYLES), (column, tuple(paper.COLUMNS))):
        if given not in known:
            raise InputError("is not known", where=given or str(path), mend=f"use one of {', '.join(known)}")


def write(figure: Figure, path: Path, style: str = "screen", column: str = "single") -> list[Path]:
    """The figure in the format of the path; for a paper also its caption and alt text, as FILE.txt.

    Raises InputError as ``check`` does, and where a column leaves the figure no room.
    """
    check(path, style, column)
    if path.suffix == ".csv":
        files.write_bytes(path, render.csv(figure.table))
        return [path]
    printed = style == "paper"
    drawn = paper.svg(figure, column) if printed else render.svg(figure)
    if path.suffix == ".png":
        files.write_bytes(path, vl_convert.svg_to_png(drawn, scale=render.PNG_SCALE))
    elif path.suffix == ".pdf":
        files.write_bytes(path, paper.pdf(drawn) if printed else vl_convert.svg_to_pdf(drawn))
    else:
        files.write_text(path, drawn)
    if not printed:
        return [path]
    caption = path.with_suffix(".txt")
    files.write_text(caption, paper.caption(figure, column))
    return [path, caption]
