"""The marks that figures are made of: bands, lines, points, bars, and names where lines end.

A table holds what a mark draws; ``x`` and ``y`` are the axes it is drawn on. A ``colour`` is one for all
rows, or the column of that name (``COLOUR``), or a scale of its own; so are a ``shape`` and a ``dash``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.figures.style import (
    COUNTS,
    INK,
    RAMP,
    Axis,
    along_ramp,
    label_format,
    letters,
    log_ticks,
    spread,
)

Channel = TypeVar("Channel", alt.Color, alt.Shape, alt.StrokeDash)

STAR = "M0,-1L.29,-.4L.95,-.31L.48,.15L.59,.81L0,.5L-.59,.81L-.48,.15L-.95,-.31L-.29,-.4Z"
COLOUR, SHAPE = alt.Color("colour:N", scale=None), alt.Shape("shape:N", scale=None)
"""The table's columns of that name hold the colours and shapes themselves."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", STAR)
Look = tuple[str, str, list[int]]
"""A colour, a shape of points and a dash of lines."""
MOST_NAMED = 500
"""Marks of one layer that say their numbers; of more the page would grow by more than it tells."""
SHADES = 32
"""Colours that marks along a ramp take: more are not told apart, and marks of one look are one in a page."""
EDGE = alt.XValue("width")
"""The right side of a panel."""
LINE_HEIGHT = 1.3
"""Labels stand at least this many font sizes apart."""
SHORT = 0.8
"""A curve that ends below this share of the longest has a leader to its label."""
BEND = 6
"""Pixels beside a panel in which a leader goes from its curve's level to its label."""


def chart_of(table: pl.DataFrame) -> alt.Chart:
    """A chart of inline data. They are one JSON text: Altair copies data at every step, value by value."""
    return alt.Chart(_inline(table))


def panel(
    layers: Sequence[alt.Chart], width: float, height: float, title: alt.TitleParams | None = None
) -> alt.LayerChart:
    """Layers over one another, the first at the bottom, in a panel of this size in pixels."""
    laid = alt.LayerChart(layer=list(layers), width=width, height=height)
    return laid if title is None else laid.properties(title=title)


def _inline(table: pl.DataFrame) -> alt.InlineData:
    return alt.InlineData(values=table.write_json(), format=alt.JsonDataFormat(type="json"))


def repeatable(
    table: pl.DataFrame, layers: Sequence[alt.Chart], width: float, height: float
) -> alt.LayerChart:
    """A panel whose layers all draw ``table``: only such a one can be repeated for parts of its rows."""
    bare = [layer.copy() for layer in layers]
    for layer in bare:
        layer.data = alt.Undefined
        layer.encoding.description = alt.Undefined  # of words that the shared table has not
    return alt.LayerChart(data=_inline(table), layer=bare, width=width, height=height)


def with_looks(table: pl.DataFrame, column: str, looks: Mapping[str, Look]) -> pl.DataFrame:
    """With the colour and the shape of what ``column`` names, which becomes the label."""
    name = pl.col(column)
    return table.with_columns(
        name.replace_strict({key: look[0] for key, look in looks.items()}).alias("colour"),
        name.replace_strict({key: look[1] for key, look in looks.items()}).alias("shape"),
        name.alias("label"),
    )


def renamed(axis: Axis, column: str) -> Axis:
    """The same axis for another column."""
    other = axis.copy()
    other.shorthand = f"{column}:Q"
    return other


def span(*columns: Iterable[float]) -> tuple[float, float]:
    """The smallest and the largest number of all columns; nulls count as none."""
    values = np.concatenate([np.asarray(column, dtype=float).ravel() for column in columns])
    return float(np.nanmin(values)), float(np.nanmax(values))


def span_with_bars(values: pl.Series, low: pl.Series, high: pl.Series) -> tuple[float, float]:
    """The span of values and of their bars; a bar may widen it on each side by the span of the values."""
    least, most = span(values)
    room = most - least
    return max(least - room, span(low, values)[0]), min(most + room, span(high, values)[1])


def band(
    table: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    ends: tuple[str, str] = ("low", "high"),
    *,
    colour: str | alt.Color = COLOUR,
    opacity: float = 0.2,
    by: str | None = None,
    clip: bool = False,
) -> alt.Chart:
    """The area between two columns; ``by``: a band for each of its values."""
    area = chart_of(table).mark_area(opacity=opacity, clip=clip)
    low, high = renamed(y, ends[0]), alt.Y2(f"{ends[1]}:Q")
    return area.encode(x, low, high, color=_colour(colour), detail=_details(by))


def bars(
    table: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    *,
    colour: str | alt.Color = COLOUR,
    width: float = 1.5,
    opacity: float = 1.0,
    clip: bool = False,
) -> alt.Chart:
    """An interval at each row, from ``low`` to ``high``."""
    rules = chart_of(table).mark_rule(strokeWidth=width, opacity=opacity, clip=clip)
    return rules.encode(x, renamed(y, "low"), alt.Y2("high:Q"), color=_colour(colour))


def line(
    table: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    *,
    colour: str | alt.Color = COLOUR,
    width: float = 2.0,
    opacity: float = 1.0,
    dash: Sequence[int] | alt.StrokeDash | None = None,
    by: str | Sequence[str] | None = None,
    clip: bool = False,
) -> alt.Chart:
    """Rows joined in the order of x; ``by``: a line for each value of these columns."""
    pattern = alt.Undefined if dash is None or isinstance(dash, alt.StrokeDash) else list(dash)
    stroke = chart_of(table).mark_line(strokeWidth=width, opacity=opacity, clip=clip, strokeDash=pattern)
    by_dash = dash if isinstance(dash, alt.StrokeDash) else alt.Undefined
    return stroke.encode(x, y, color=_colour(colour), detail=_details(by), strokeDash=by_dash)


def points(
    table: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    *,
    colour: str | alt.Color = COLOUR,
    shape: str | alt.Shape = "circle",
    size: float = 40,
    opacity: float = 1.0,
    clip: bool = False,
) -> alt.Chart:
    """A filled mark at each row, which says its numbers where a pointer rests on it."""
    says = table.height <= MOST_NAMED
    rows = named(table, x, y) if says else table
    dots = chart_of(rows).mark_point(filled=True, size=size, opacity=opacity, clip=clip)
    return dots.encode(
        x,
        y,
        color=_colour(colour),
        shape=alt.ShapeValue(shape) if isinstance(shape, str) else shape,
        description=alt.Description("words:N") if says else alt.Undefined,
    )


def named(table: pl.DataFrame, x: alt.X, y: alt.Y) -> pl.DataFrame:
    """With ``words`` that say each row: its label, or run, and its numbers by the names of the axes."""
    names = [name for name in ("label", "curve", "run_id", "run") if name in table.columns][:1]
    axes = [(column_of(axis), title_of(axis)) for axis in (x, y)]

    def words(row: Mapping[str, Any]) -> str:
        return "; ".join(
            [str(row[name]) for name in names] + [f"{title} {_short(row[column])}" for column, title in axes]
        )

    return table.with_columns(
        pl.Series("words", [words(row) for row in table.iter_rows(named=True)], pl.String)
    )


def title_of(axis: alt.X | alt.Y) -> str:
    """What an axis shows, without its unit."""
    title = _specification(axis).get("title") or column_of(axis)
    return re.split(r"[(,]", title if isinstance(title, str) else " ".join(title))[0].strip()


def _short(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    if abs(value) >= 1e16:
        return text.power(value)
    return text.count(value) if abs(value) >= 1e4 else text.number(value, 4)


def seeds_and_median(
    rows: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    *,
    colour: str | alt.Color = COLOUR,
    dash: Sequence[int] | alt.StrokeDash | None = None,
    shape: str | alt.Shape | None = None,
    by: str | None = None,
    middle: pl.DataFrame | None = None,
) -> list[alt.Chart]:
    """A thin line for each ``seed``, and their median thick, with marks of a ``shape``.

    ``by``: for each of its values. ``middle`` takes the median's place where it is not that of the rows at
    each x.
    """
    groups: list[str] = [] if by is None else [by]
    if middle is None:
        looks = [name for name in ("colour", "shape") if name in rows.columns]
        places = rows.group_by(*groups, *looks, column_of(x), maintain_order=True)
        middle = places.agg(pl.col(column_of(y)).median()).sort(column_of(x), maintain_order=True)
    thin = None if isinstance(dash, alt.StrokeDash) else dash
    seeds = [*groups, "seed"]
    layers = [
        line(rows, x, y, colour=colour, width=1, opacity=0.45, dash=thin, by=seeds),
        line(middle, x, y, colour=colour, width=2.6, dash=dash, by=by),
    ]
    if shape is not None:
        layers.append(points(middle, x, y, colour=colour, shape=shape, size=52))
    return layers


def end_labels(
    ends: pl.DataFrame, x: alt.X | alt.XValue, y: alt.Y, height: float, *, size: float = 12, away: float = 8
) -> alt.Chart:
    """The ``label`` of each row right of where its line ends, in its ``colour`` dark enough for letters.

    They are moved apart, and kept inside the panel of ``height`` where it has room for all; ``EDGE`` as ``x``
    stands them at its right side, ``away`` pixels from it.
    """
    table = in_letters(_apart(ends, y, height, size))
    text = chart_of(table).mark_text(align="left", dx=away, fontSize=size, fontWeight="bold", clip=False)
    return text.encode(x=x, y=y, text=alt.Text("label:N"), color=COLOUR)


def in_letters(rows: pl.DataFrame) -> pl.DataFrame:
    """With each ``colour`` dark enough for letters."""
    return rows.with_columns(pl.col("colour").map_elements(letters, pl.String))


def leaders(ends: pl.DataFrame, x: alt.X, y: alt.Y, height: float, *, size: float = 12) -> list[alt.Chart]:
    """Fine lines to the ``end_labels`` at the panel's edge from curves that end before the others.

    Inside the panel they keep the curve's level, or they would be read as a curve that goes on; they bend to
    the label beside it.
    """
    at, along = column_of(y), pl.col(column_of(x))
    table = _apart(ends, y, height, size).rename({at: "placed"}).with_columns(ends[at])
    table = table.filter(along < SHORT * along.max())
    rules = chart_of(table).mark_rule(strokeWidth=1, strokeDash=[1, 3])
    level = rules.encode(x, y, x2=alt.value("width"), color=COLOUR)
    bend = chart_of(table).mark_rule(strokeWidth=1, x2Offset=BEND, clip=False)
    return [level, bend.encode(EDGE, y, x2=alt.value("width"), y2="placed:Q", color=COLOUR)] * bool(
        len(table)
    )


def pointers(ends: pl.DataFrame, y: alt.Y, height: float, *, long: float) -> alt.Chart:
    """Lines, ``long`` pixels across, from where curves leave a panel to the ``end_labels`` beside it."""
    at = column_of(y)
    table = _apart(ends, y, height).rename({at: "placed"}).with_columns(ends[at])
    rules = chart_of(table).mark_rule(strokeWidth=1, x2Offset=long, clip=False)
    return rules.encode(EDGE, y, x2=alt.value("width"), y2="placed:Q", color=COLOUR)


def _apart(ends: pl.DataFrame, y: alt.Y, height: float, size: float = 12) -> pl.DataFrame:
    """Labels of this size with their y moved so that none stands on another."""
    column, log = column_of(y), _specification(y)["scale"].get("type") == "log"
    scaled = np.log if log else np.asarray
    bottom, top = (float(scaled(end)) for end in domain(y))
    pixels = (scaled(ends[column].to_numpy()) - bottom) * height / (top - bottom)
    placed = np.array(spread(pixels.tolist(), LINE_HEIGHT * size))
    steps = LINE_HEIGHT * size * np.argsort(np.argsort(placed))
    placed = np.maximum(placed, size / 2 + steps)
    placed = np.minimum(placed, height - size / 2 - (steps.max() - steps))
    values = bottom + placed * (top - bottom) / height
    colours = pl.col("colour") if "colour" in ends.columns else pl.lit(INK).alias("colour")
    return ends.with_columns(pl.Series(column, np.exp(values) if log else values), colours)


def colour_bar(column: str, title: str, low: float, high: float, *, labels: str = COUNTS) -> alt.Color:
    """From dark to bright along the logarithm of a column, with its bar under the panel.

    One layer of a panel takes it, the others ``on_ramp`` with colours resolved apart: scales that layers
    share make a row of dots of the bar. ``labels`` as an axis takes them.
    """
    high = max(high, low * 1.001)
    look = {"type": "gradient", "orient": "bottom", "direction": "horizontal", "gradientLength": 320}
    look |= {"gradientOpacity": 1}
    bar = {"title": f"{title} (log scale)", **look, "values": log_ticks(low, high), **label_format(labels)}
    scale = alt.Scale(type="log", range=list(RAMP), domain=[low, high], interpolate="rgb")
    return alt.Color(f"{column}:Q", scale=scale, legend=alt.Legend.from_dict(bar))


def key(channel: type[Channel], column: str, looks: Mapping[str, Any], **legend: Any) -> Channel:
    """The look of each name in a column, with a legend over the panel."""
    return channel(
        f"{column}:N",
        scale=alt.Scale(domain=list(looks), range=list(looks.values())),
        legend=alt.Legend.from_dict({"title": None, "orient": "top"} | legend),
    )


def on_ramp(values: pl.Series, low: float, high: float) -> pl.Series:
    """Of each value its colour on a ``colour_bar`` of these ends, as a column ``colour``, of ``SHADES``."""
    shares = np.log(values.to_numpy() / low) / np.log(max(high, low * 1.001) / low)
    return pl.Series("colour", along_ramp(np.round(SHADES * shares) / SHADES))


def column_of(axis: alt.X | alt.Y) -> str:
    """The column that an axis shows."""
    return str(_specification(axis)["field"])


def domain(axis: alt.X | alt.Y) -> tuple[float, float]:
    """The ends of an axis."""
    low, high = _specification(axis)["scale"]["domain"]
    return float(low), float(high)


def _specification(axis: alt.X | alt.Y) -> dict[str, Any]:
    specification = axis.to_dict(validate=False)
    return specification if isinstance(specification, dict) else specification[0]


def _colour(colour: str | alt.Color) -> alt.Color | alt.ColorValue:
    return alt.ColorValue(colour) if isinstance(colour, str) else colour


def _details(by: str | Sequence[str] | None) -> list[alt.Detail]:
    columns = [by] if isinstance(by, str) else by or []
    return [alt.Detail(f"{column}:N") for column in columns]
