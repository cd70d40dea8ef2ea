"""Draw docs/images/rooms.svg: the rooms of src/isoloss and which imports which, read from the imports.

    python docs/rooms.py

An arrow runs from a room to one that it imports; one that follows from others is left out. Where a room
stands is chosen here, its purpose is the first line of its docstring, and the rest is measured.
"""

import re
import tomllib
from html import escape
from importlib import import_module
from pathlib import Path

import grimp

PICTURE = Path(__file__).parent / "images" / "rooms.svg"
WIDTH, HEIGHT, STEP_X, STEP_Y = 216, 56, 262, 84

# Column and row of each room: what trains on the left, what reads and judges on the right.
PLACES = {
    "cli": (0, 0),
    "bench": (0, 2),
    "teach": (1, 0),
    "serve": (0, 1),
    "report": (1, 1),
    "figures": (1, 2),
    "analysis": (1, 3),
    "plans": (2, 3),
    "sources": (3, 3),
    "studies": (0, 3),
    "laws": (3, 4),
    "training": (0, 5),
    "records": (1, 5),
    "models": (0, 6),
    "corpus": (1, 6),
}


def rooms() -> list[str]:
    """The folders of the package."""
    folder = Path(import_module("isoloss").__file__ or "").parent
    return sorted(path.parent.name for path in folder.glob("*/__init__.py"))


def ground() -> str:
    """The modules below all rooms: the two lowest layers of import-linter."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    names = sorted(re.findall(r"\w+", " ".join(layers[-2:])))
    return f"{', '.join(names)}: the ground floor of all"


def arrows() -> set[tuple[str, str]]:
    """Which room imports which, without the arrows that follow from others."""
    graph = grimp.build_graph("isoloss", cache_dir=None)
    names = rooms()
    direct = {
        room: {
            other
            for other in names
            if other != room
            and graph.direct_import_exists(
                importer=f"isoloss.{room}", imported=f"isoloss.{other}", as_packages=True
            )
        }
        for room in names
    }
    return {
        (room, other)
        for room in names
        for other in direct[room]
        if not any(other in _below(middle, direct) for middle in direct[room] - {other})
    }


def _below(room: str, direct: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    left = list(direct[room])
    while left:
        other = left.pop()
        if other not in reached:
            reached.add(other)
            left.extend(direct[other])
    return reached


def purpose(room: str) -> str:
    """The first line of the room's docstring, without its name."""
    first = (import_module(f"isoloss.{room}").__doc__ or "").partition("\n")[0]
    return first.partition(": ")[2].rstrip(".") or first.rstrip(".")


def svg() -> str:
    """The picture as text; the same for the same imports."""
    width = STEP_X * 3 + WIDTH + 40
    height = STEP_Y * (1 + max(row for _, row in PLACES.values())) + 84
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12">',
        '<title id="title">The rooms of isoloss. Arrows run from a room to one that it imports: '
        + escape("; ".join(f"{room} to {other}" for room, other in sorted(arrows())))
        + "</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    parts += [_arrow(PLACES[room], PLACES[other]) for room, other in sorted(arrows())]
    parts += [_box(room, *PLACES[room]) for room in rooms()]
    y = height - 56
    parts.append(f'<rect x="20" y="{y}" width="{width - 40}" height="36" rx="4" fill="#eee" stroke="#999"/>')
    parts.append(f'<text x="{width / 2:g}" y="{y + 22}" text-anchor="middle" fill="#222">{ground()}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _corner(column: int, row: int) -> tuple[int, int]:
    return 20 + column * STEP_X, 20 + row * STEP_Y


def _box(room: str, column: int, row: int) -> str:
    x, y = _corner(column, row)
    lines = _folded(purpose(room), 33)
    words = "".join(
        f'<text x="{x + 10}" y="{y + 34 + 14 * index}" fill="#444">{escape(line)}</text>'
        for index, line in enumerate(lines)
    )
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#f5f8fc" stroke="#0072b2"/>'
        f'<text x="{x + 10}" y="{y + 19}" font-weight="700" fill="#111">{room}/</text>{words}'
    )


def _folded(text: str, most: int) -> list[str]:
    """At most two lines."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > most and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines if len(lines) <= 2 else [lines[0], lines[1] + " ..."]


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = _corner(*start), _corner(*end)
    if start[1] == end[1]:
        right = x2 > x1
        x1, x2 = (x1 + WIDTH, x2) if right else (x1, x2 + WIDTH)
        y1 = y2 = y1 + HEIGHT // 2
    else:
        shift = (end[0] - start[0]) * 106 // max(1, abs(end[0] - start[0]))
        x1, x2 = x1 + WIDTH // 2 + shift, x2 + WIDTH // 2 - shift
        y1, y2 = y1 + HEIGHT, y2
    return f'<path d="M{x1} {y1} {x2} {y2}" stroke="#555" stroke-width="1.5" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    PICTURE.write_text(svg(), "utf-8")
    print(PICTURE)
