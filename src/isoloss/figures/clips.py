"""Clips that cut nothing, taken out of Vega's SVG.

Vega clips each group of marks by a rectangle of its own, and a converter to PNG paints a layer for each of
them. Most marks lie inside their panel anyway. Groups of which that is not sure stay as they are.
"""

import re
from collections.abc import Iterable

Point = tuple[float, float]

_RECTANGLE = re.compile(
    r'<clipPath id="([^"]+)">'
    r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"/></clipPath>'
)
_CLIPPED = re.compile(
    r'(<g class="mark-(line|area|rule|symbol) [^>]*?) clip-path="url\(#([^)]+)\)"([^>]*>)(.*?)</g>'
)
_MARK = re.compile(r"<(?:path|line)\b[^>]*>")
_NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
_AT = re.compile(rf'transform="translate\({_NUMBER},{_NUMBER}\)')
_ACROSS, _DOWN = re.compile(rf' x2="{_NUMBER}"'), re.compile(rf' y2="{_NUMBER}"')
_STRAIGHT = re.compile(r' d="([MLZ\d.,e-]*)"')
_PAIR = re.compile(rf"{_NUMBER},{_NUMBER}")
NEAR = 0.5
"""Pixels outside that are not seen: half of a line's width."""


def without_idle_clips(svg: str) -> str:
    """The same picture with fewer clips. A point on the edge of its panel is whole, where it was cut."""
    rectangles = {name: tuple(map(float, sides)) for name, *sides in _RECTANGLE.findall(svg)}

    def unclipped(group: re.Match[str]) -> str:
        opening, kind, clip, more, marks = group.groups()
        idle = clip in rectangles and "<g" not in marks and _inside(_corners(kind, marks), rectangles[clip])
        return f"{opening}{more}{marks}</g>" if idle else group[0]

    drawn = _CLIPPED.sub(unclipped, svg)
    return _RECTANGLE.sub(lambda clip: clip[0] if f"url(#{clip[1]})" in drawn else "", drawn)


def _inside(corners: Iterable[Point | None], rectangle: tuple[float, ...]) -> bool:
    left, top, width, height = rectangle
    return all(
        corner is not None
        and -NEAR <= corner[0] - left <= width + NEAR
        and -NEAR <= corner[1] - top <= height + NEAR
        for corner in corners
    )


def _corners(kind: str, marks: str) -> Iterable[Point | None]:
    """Where marks lie: symbols by their middles, lines by their corners; None for what is not so simple."""
    for mark in _MARK.findall(marks):
        at = _AT.search(mark)
        x, y = (float(at[1]), float(at[2])) if at else (0.0, 0.0)
        if kind == "symbol":
            yield (x, y) if at else None
        elif kind == "rule":
            yield from ((x, y), (x + _length(_ACROSS, mark), y + _length(_DOWN, mark)))
        else:
            path = _STRAIGHT.search(mark)
            yield from (_pairs(path[1]) if path and not at else [None])


def _length(side: re.Pattern[str], mark: str) -> float:
    match = side.search(mark)
    return float(match[1]) if match else 0.0


def _pairs(path: str) -> list[Point]:
    return [(float(x), float(y)) for x, y in _PAIR.findall(path)]
