"""Charts to SVG, PNG and PDF, offline.

SVG and PNG are the same bytes every time; the PDF writer lets the order of embedded fonts vary.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert

from isoloss import files
from isoloss.figures.clips import without_idle_clips
from isoloss.figures.figure import Figure

VEGA_LITE = "6.4"
PNG_SCALE = 2.0

_NAMED_MARK = re.compile(
    r'<path aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"([^>]*)/>'
)
"""A mark with a description, which a browser shows as a title inside it."""
_ID = re.compile(r'\bid="([^"]+)"|url\(#([^)]+)\)|(xlink:href|href)="#([^"]+)"')


@dataclass(frozen=True)
class Picture:
    svg: str
    png: bytes
    pdf: bytes


def render(figure: Figure) -> Picture:
    """Drawn once, as SVG; PNG and PDF are made from it."""
    drawn = svg(figure)
    return Picture(drawn, vl_convert.svg_to_png(drawn, scale=PNG_SCALE), vl_convert.svg_to_pdf(drawn))


def svg(figure: Figure) -> str:
    """The picture as SVG, its ids beginning with the figure's name."""
    return svg_of(figure.specification, figure.name)


def svg_of(chart: dict[str, Any], name: str) -> str:
    """A chart's specification as SVG, its ids beginning with ``name``."""
    return number_ids(_NAMED_MARK.sub(r"<path\2><title>\1</title></path>", draw(chart)), name)


def draw(chart: dict[str, Any]) -> str:
    """A chart's specification as Vega's SVG."""
    return without_idle_clips(vl_convert.vegalite_to_svg(chart, vl_version=VEGA_LITE))


def number_ids(svg: str, name: str) -> str:
    """Number the ids of an SVG from 1 under ``name``.

    Vega counts them per process, so they differ from call to call and clash when pictures share a page.
    """
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        whole, old = match.group(0), next(g for g in (match[1], match[2], match[4]) if g)
        new = names.setdefault(old, f"{name}-{len(names) + 1}")
        return whole.replace(old, new)

    return _ID.sub(renamed, svg)


def write(figure: Figure, picture: Picture, folder: Path) -> list[Path]:
    """NAME.svg, .png, .pdf and NAME.csv with the numbers behind it."""
    contents = {
        "svg": picture.svg.encode("utf-8"),
        "png": picture.png,
        "pdf": picture.pdf,
        "csv": csv(figure.table),
    }
    paths = {files.safe_child(folder, f"{figure.name}.{suffix}"): data for suffix, data in contents.items()}
    for path, data in paths.items():
        files.write_bytes(path, data)
    return list(paths)


def csv(table: pl.DataFrame) -> bytes:
    """UTF-8 CSV; text is quoted, and a spreadsheet must not take it for a formula."""
    guarded = table.with_columns(pl.col(pl.String).str.replace(r"^[=+\-@\t\r]", "'${0}"))
    return guarded.write_csv(quote_style="non_numeric").encode("utf-8")
