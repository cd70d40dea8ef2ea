"""Lines of SVG in few bytes: corners on a straight line left out, each told from the last."""

import re
from itertools import pairwise

_STRAIGHT = re.compile(r'(?<= d=")M[-\d.]+,[-\d.]+(?:L[-\d.]+,[-\d.]+){4,}Z?(?=")')
_PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")
NEAR = 0.05
"""Pixels from its line under which a corner is not seen."""

Point = tuple[float, float]


def shorten_lines(svg: str) -> str:
    """Each path of five points and more by its corners, to ``NEAR`` and a rounding to tenths."""
    return _STRAIGHT.sub(lambda path: _shorten(path[0]), svg)


def path_through(points: list[Point]) -> str:
    """``d`` of a path through ``points``, in tenths of a pixel."""
    tenths = [(round(10 * x), round(10 * y)) for x, y in points]
    steps = ""
    for (x, y), (x_next, y_next) in pairwise(tenths):
        steps = _joined(_joined(steps, x_next - x), y_next - y)
    x, y = tenths[0]
    return f"M{_number(x)},{_number(y)}l{steps}"


def _shorten(path: str) -> str:
    points = [(float(x), float(y)) for x, y in _PAIR.findall(path)]
    return path_through(_turns(points)) + ("Z" if path.endswith("Z") else "")


def _turns(points: list[Point]) -> list[Point]:
    """Of each stretch the point farthest from its chord, while it is seen (Douglas and Peucker)."""
    kept, stretches = {0, len(points) - 1}, [(0, len(points) - 1)]
    while stretches:
        first, last = stretches.pop()
        distance, middle = max(
            ((_distance(points[i], points[first], points[last]), i) for i in range(first + 1, last)),
            default=(0.0, 0),
        )
        if distance > NEAR:
            kept.add(middle)
            stretches += [(first, middle), (middle, last)]
    return [points[i] for i in sorted(kept)]


def _distance(point: Point, start: Point, end: Point) -> float:
    """From a point to a stretch, whose nearest place may be an end of it."""
    along, across = end[0] - start[0], end[1] - start[1]
    x, y = point[0] - start[0], point[1] - start[1]
    length = along**2 + across**2
    share = min(1.0, max(0.0, (x * along + y * across) / length)) if length else 0.0
    return ((x - share * along) ** 2 + (y - share * across) ** 2) ** 0.5


def _joined(steps: str, tenths: int) -> str:
    """A sign parts numbers as a space does."""
    number = _number(tenths)
    return steps + (number if not steps or number.startswith("-") else f" {number}")


def _number(tenths: int) -> str:
    """Shortest: 12, -3.5, .5."""
    whole, part = divmod(abs(tenths), 10)
    digits = f"{whole or ''}.{part}" if part else str(whole)
    return f"-{digits}" if tenths < 0 else digits
