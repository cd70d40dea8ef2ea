"""Vega's SVG for a page in a third of its bytes: what is drawn stays where it is, to a tenth of a pixel."""

import re
import zlib
from collections import Counter

from isoloss.report.corners import path_through, shorten_lines

_NUMBER = re.compile(r"\d+\.\d{2,}(?=[,LMAZhv) \"])")
_TAG = re.compile(r"<[^>]+>")
"""Numbers of words stay as they are."""
_IDLE = re.compile(
    r' (?:aria-hidden="true"|aria-label="[^"]*"|pointer-events="none"|font-family="[^"]*"|opacity="1"'
    r'|role="[^"]*"|aria-roledescription="[^"]*"|stroke-width="1"|font-weight="normal"|class="mark-group[^"]*")'
)
"""What is so anyway: a picture has one name and one description, its letters are of the page's one font."""
_FLAT = re.compile(r'(<line [^>]*?) [xy]2="0"')
_EMPTY = re.compile(r'<path class="(?:foreground|background)"[^>]* d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_CLASS = re.compile(r'class="(mark-\w+)[^"]*"')
_STROKE = re.compile(r'(<path transform="[^"]*" d="[^"]*" fill="[^"]*") stroke-width="[^"]*"')
"""The width of a stroke that there is not."""
_RULES = re.compile(r'<g class="mark-rule">((?:<line [^>]*/>){3,})</g>')
_RULE = re.compile(
    r'<line transform="translate\(([-\d.]+),([-\d.]+)\)"(?: x2="([^"]*)")?(?: y2="([^"]*)")?( [^/]*)/>'
)
_COLOUR = re.compile(r"rgb\((\d+), (\d+), (\d+)\)")
_MARK = re.compile(
    r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" d="([^"]+)"([^>]*?)'
    r"(?:/>|>(<title>[^<]*</title>)</path>)"
)
_ALIKE = re.compile(r'<use href="#([^"]+)" x="[^"]+" y="[^"]+"/>(?:<use href="#\1" x="[^"]+" y="[^"]+"/>)+')
"""Marks of one look behind one another, without titles: the corners of a line that has them as markers."""
_AT = re.compile(r' x="([^"]+)" y="([^"]+)"')


def compact(svg: str, name: str, *, titles: bool = True) -> str:
    """The picture with marks of one look drawn once and used again; their titles are kept or left out.

    ``name`` tells its ids from those of the page's other pictures.
    """
    svg = shorten_lines(svg)
    for pattern, short in (
        (_IDLE, ""),
        (_FLAT, r"\1"),
        (_EMPTY, ""),
        (_CLASS, r'class="\1"'),
        (_STROKE, r"\1"),
        (_COLOUR, _hex),
        (_TAG, _rounded),
    ):
        svg = pattern.sub(short, svg)
    svg = _RULES.sub(_shared, svg)
    looks = Counter(mark[3] + mark[4] for mark in _MARK.finditer(svg))
    drawn: dict[str, str] = {}
    prefix = f"m{zlib.crc32(name.encode()):x}-"

    def use(mark: re.Match[str]) -> str:
        x, y, shape, look, title = mark.groups()
        own = look if looks[shape + look] < 3 else ""
        path = f'<path d="{shape}"{"" if own else look}/>'
        ident = drawn.setdefault(path, f"{prefix}{len(drawn)}")
        return f'<use href="#{ident}" x="{x}" y="{y}"{own}' + (
            f">{title}</use>" if title and titles else "/>"
        )

    marked: set[str] = set()

    def line(marks: re.Match[str]) -> str:
        marked.add(marks[1])
        corners = [(float(x), float(y)) for x, y in _AT.findall(marks[0])]
        return f'<path d="{path_through(sorted(corners))}" fill="none" style="marker:url(#{marks[1]}m)"/>'

    opening, body = _ALIKE.sub(line, _MARK.sub(use, svg)).split(">", 1)
    shapes = "".join(path.replace("<path", f'<path id="{ident}"') for path, ident in drawn.items())
    markers = "".join(
        f'<marker id="{ident}m" overflow="visible" markerUnits="userSpaceOnUse">'
        f'<use href="#{ident}"/></marker>'
        for ident in sorted(marked)
    )
    return f"{opening}><defs>{shapes}{markers}</defs>{body}"


def _shared(rules: re.Match[str]) -> str:
    """Lines of one look, which their group then says for all; the opacity of a line is that of its stroke."""
    lines = _RULE.findall(rules[1])
    looks = {look for *_, look in lines}
    if len(looks) != 1:
        return rules[0]
    look = looks.pop().replace(" opacity=", " stroke-opacity=")
    short = "".join(f'<path d="M{x},{y}l{across or 0},{down or 0}"/>' for x, y, across, down, _ in lines)
    return f'<g class="mark-rule"{look}>{short}</g>'


def _hex(colour: re.Match[str]) -> str:
    return "#" + "".join(f"{int(value):02x}" for value in colour.groups())


def _rounded(tag: re.Match[str]) -> str:
    return _NUMBER.sub(_round, tag[0])


def _round(number: re.Match[str]) -> str:
    """To a tenth; what is smaller than 1 is a share, such as an opacity or a scale, and stays."""
    value = float(number[0])
    return f"{value:.1f}".removesuffix(".0") if value >= 1 else number[0]
