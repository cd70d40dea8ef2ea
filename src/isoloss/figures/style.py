"""One look for every figure: colours, fonts, axes, labels at line ends.

Colours follow Okabe and Ito, told apart with any colour vision: Transformer blue, LSTM vermilion, looped
Transformer green. A colour means a family, a shade or a dash what varies inside it; violet to grey means a
quantity. Of sizes the darkest is the smallest, in shades as on the ramp.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import altair as alt
import numpy as np
from numpy.typing import ArrayLike

Axis = TypeVar("Axis", alt.X, alt.Y)

FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
INK, QUIET, GRID = "#1a1a1a", "#555555", "#e3e3e3"

FAMILY_COLOURS = {"transformer": "#0072B2", "lstm": "#CC5500", "looped": "#00845f"}
OTHER_COLOURS = ("#AA3377", "#3f3f3f", "#332288", "#8a6d00", "#7a4a2b")
REAL, PREDICTED = "#0072B2", "#E69F00"
RAMP = ("#30185f", "#594777", "#9e74a9", "#b0a59c")
"""From dark to bright along a continuous quantity, such as log N: violet to grey, far from every family."""
LEGIBLE = 4.7
"""Contrast of letters: WCAG 2.1 asks for 4.5 (1.4.3), and the edges of letters are a little paler."""

COUNTS = (
    "(datum.value < 1 ? format(datum.value, '.3~g')"
    " : replace(replace(format(datum.value, '.3~s'), 'G', 'B'), 'k', 'K'))"
)
"""Labels of an axis of counts and their ratios, as text writes them: 7B for 7e9, 0.1 for a tenth."""
POWERS = "replace(format(datum.value, '.0e'), 'e+', 'e')"
"""Labels of an axis of FLOPs: 1e18 says more than 1E."""

FEW = 7
"""Up to so many distinct values of an input are shown as they are: as ticks, as lines of the law."""

TITLE_CHARACTERS = 88
"""Characters of a title line; longer titles wrap, because a clipped finding is no finding."""


def family_colour(family: str, others: Sequence[str] = ()) -> str:
    """The family's own colour; families of users take the spare ones in order."""
    if family in FAMILY_COLOURS:
        return FAMILY_COLOURS[family]
    spare = sorted(name for name in others if name not in FAMILY_COLOURS)
    return OTHER_COLOURS[(spare.index(family) if family in spare else 0) % len(OTHER_COLOURS)]


def shades(colour: str, count: int) -> list[str]:
    """``count`` shades of a colour from full to dark: all of them readable as text on white."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    out = []
    for i in range(count):
        light = 1.0 if count == 1 else 1 - 0.5 * i / (count - 1)
        out.append("#" + "".join(f"{round(c * light):02x}" for c in (red, green, blue)))
    return out


def along_ramp(shares: ArrayLike) -> list[str]:
    """The ramp's colours at these shares of its way from dark to bright."""
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in RAMP])
    place = np.asarray(shares) * (len(RAMP) - 1)
    mixed = np.stack([np.interp(place, np.arange(len(RAMP)), channel) for channel in channels.T], axis=1)
    return ["#" + "".join(f"{round(c):02x}" for c in colour) for colour in mixed]


def letters(colour: str) -> str:
    """The colour as dark as letters need it: its first shade with a contrast of ``LEGIBLE`` to white."""
    darker = shades(colour, 51)
    return next((shade for shade in darker if contrast(shade) >= LEGIBLE), darker[-1])


def contrast(colour: str) -> float:
    """To white: 1.05 / (L + 0.05), L the relative luminance (WCAG 2.1)."""
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05))


def wrap(text: str, width: int = TITLE_CHARACTERS) -> list[str]:
    """Lines of at most ``width`` characters; a longer word, and a name with its value, stay whole."""
    text = re.sub(r" ([=≥]) ", "\u00a0\\1\u00a0", text)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def title_of(title: str, subtitle: str, characters: int = TITLE_CHARACTERS) -> alt.TitleParams:
    """The finding, and under it in smaller letters how it was counted."""
    return alt.TitleParams(
        text=wrap(title, characters), subtitle=wrap(subtitle, round(characters * 1.45)), anchor="start"
    )


def configured(chart: Any) -> Any:
    """The theme. ``aria`` is off: the page gives each picture one name, one description and a table."""
    return (
        chart.configure(font=FONT, background="white", aria=False, padding=12)
        .configure_title(
            fontSize=16,
            subtitleFontSize=12,
            color=INK,
            subtitleColor=QUIET,
            fontWeight="bold",
            subtitlePadding=6,
            offset=14,
            lineHeight=20,
            subtitleLineHeight=16,
        )
        .configure_axis(
            labelFontSize=12,
            labelSeparation=4,
            titleFontSize=13,
            titleFontWeight="normal",
            labelColor=INK,
            titleColor=INK,
            gridColor=GRID,
            domainColor=QUIET,
            tickColor=QUIET,
        )
        .configure_header(labelFontSize=13, titleFontSize=13, labelColor=INK, titleColor=INK)
        .configure_legend(
            labelFontSize=12, titleFontSize=12, labelLimit=420, titleLimit=300, symbolStrokeWidth=2
        )
        .configure_view(stroke=GRID)
    )


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 in each decade over a short range, powers of ten over a long one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1.0, 2.0, 5.0) if math.log10(high / low) < 2.5 else (1.0,)
    ticks = [step * 10.0**decade for decade in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def log_axis(
    channel: type[Axis],
    column: str,
    title: str,
    low: float,
    high: float,
    *,
    room: float = 1.0,
    ticks: Sequence[float] | None = None,
    labels: str = COUNTS,
) -> Axis:
    """A logarithmic axis that says so: ``channel`` is ``alt.X`` or ``alt.Y``.

    ``room`` widens it by that factor on both sides. ``labels`` is a format of d3, or an expression of Vega
    such as ``COUNTS`` and ``POWERS``; ``ticks`` are chosen by the range unless they are given.
    """
    low, high = low / room, high * room
    values = list(log_ticks(low, high) if ticks is None else ticks)
    some: dict[str, Any] = {"tickCount": 3} if ticks is None and len(values) < 2 else {"values": values}
    axis_title = f"{title[:-1]}, log scale)" if title.endswith(")") else f"{title} (log scale)"
    return (
        channel(f"{column}:Q", title=axis_title)
        .scale(type="log", domain=[low, high], nice=False)
        .axis(alt.Axis(**some, labelFlush=False, **label_format(labels)))
    )


def label_format(labels: str) -> dict[str, Any]:
    """What gives an axis or a legend its labels: a format of d3, or as an expression of Vega."""
    return {"labelExpr" if "datum" in labels else "format": labels}


def linear_axis(column: str, title: str | list[str], low: float, high: float) -> alt.Y:
    """A linear y axis over the data, with a twentieth of their range to spare."""
    spare = 0.05 * (high - low) or 0.05
    return alt.Y(f"{column}:Q", title=title).scale(domain=[low - spare, high + spare], zero=False, nice=False)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move label heights apart to at least ``gap``, keeping their order and about their middle."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = [heights[i] for i in order]
    for _ in range(200):
        moved = False
        for i, (lower, upper) in enumerate(pairwise(placed)):
            if (short := gap - (upper - lower)) > 1e-9:
                placed[i] -= short / 2
                placed[i + 1] += short / 2
                moved = True
        if not moved:
            break
    out = [0.0] * len(heights)
    for height, i in zip(placed, order, strict=True):
        out[i] = height
    return out


def axis(
    channel: type[Axis],
    column: str,
    title: str,
    values: Iterable[float],
    *,
    log: bool = True,
    room: float = 1.15,
    narrow: bool = False,
) -> Axis:
    """An axis over ``values`` with a little room, whose ticks can be read whatever the range."""
    numbers = np.asarray(values, dtype=float)
    distinct = np.unique(np.round(numbers, 12))
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    labels = number_format(high)
    if not log:
        spare = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
        scaled = channel(f"{column}:Q", title=title).scale(
            domain=[low - spare, high + spare], zero=False, nice=False
        )
        return scaled.axis(alt.Axis.from_dict({"tickCount": 3 if narrow else 6, **label_format(labels)}))
    ticks = log_ticks(low / room, high * room)
    if len(distinct) <= FEW and np.all(np.diff(np.log(distinct)) > (0.5 if narrow else 0.25)):
        ticks = distinct.tolist()
    if narrow and len(ticks) > 5:
        ticks = ticks[:: -(-len(ticks) // 5)]
    return log_axis(
        channel, column, title, low, high, room=room, ticks=ticks if len(ticks) > 1 else None, labels=labels
    )


def number_format(high: float) -> str:
    """1e16 and more as powers, thousands with their letter, the rest as it is written."""
    if high >= 1e16:
        return POWERS
    return COUNTS if high >= 1e4 else ".4~g"
