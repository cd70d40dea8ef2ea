"""A figure as a paper prints it: a column wide, text of 8 points, no title; caption and alt text apart."""

import json
import re
from collections.abc import Callable
from typing import Any

import vl_convert

from isoloss.errors import InputError
from isoloss.figures.figure import Figure
from isoloss.figures.render import draw, number_ids

COLUMNS = {"single": 3.25, "double": 6.75}
"""Widths in inches of one column and of two."""
INCH, POINT = 96.0, 96.0 / 72.0
"""In pixels of CSS, of which an SVG is made."""
TEXT = 8.0
"""Points of every text."""
NARROWEST = 100.0
"""Pixels below which a panel shows nothing."""
HEIGHT = 0.75
"""Panels are this share of their height on a screen: labels of 12 pixels are 10.7 here, and still part."""

NEAR = 0.015
"""A drawing whose width misses the column by less has letters of the size that they should have."""

FINER = {"strokeWidth": 0.7, "size": 0.5}
"""Lines and points are this share of their size on a screen."""

AFTER_NAME = ":|,(?! T_m| context)"
"""Where a label's name ends and numbers begin, as a regular expression: some names hold a comma."""

APART = 5
"""Pixels between labels of an axis: two numbers that touch read as one."""

LEGENDS = (0, 3, 1)
"""Columns of a legend, the first that fits: 0 for all in a row."""

_Panels = dict[str, Any]


def svg(figure: Figure, column: str = "single", *, name: str = "") -> str:
    """The picture as SVG of this width. In a single column panels side by side stand one below another.

    Its ids begin with ``name``, the figure's unless given.

    Raises InputError where the column leaves its panels no room.
    """
    inches = COLUMNS[column]
    for legend_columns in LEGENDS:
        bare = _paper(figure.specification, legend_columns, stacked=column == "single")
        if drawn := _fitted(bare, inches * INCH):
            return number_ids(_in_inches(drawn, inches), name or figure.name)
    raise InputError(
        f"{inches} inches are too narrow for this figure", where=figure.name, mend="--width double"
    )


def _fitted(chart: _Panels, pixels: float) -> str | None:
    """Drawn with panels as wide as the labels leave room for; None where that is too narrow."""
    widest, abreast, share = max(_widths(chart)), _abreast(chart), 1.0
    if abreast * NARROWEST > pixels:
        return None
    for _ in range(4):  # labels keep their size, so the whole is not proportional to its panels
        drawn = draw(_resized(chart, share))
        over = _width(drawn) - pixels
        if abs(over) < NEAR * pixels:
            return drawn
        share -= over / (widest * abreast)
        if share * widest < NARROWEST:
            return None
    return None  # a legend is wider


def _abreast(chart: _Panels) -> int:
    """How many panels stand side by side, in the fullest row; of a grid one for each column's name."""
    columns = chart.get("facet", {}).get("column", {}).get("sort", ())
    row = sum(map(_abreast, chart.get("hconcat", ())))
    return max(1, len(columns), row, *map(_abreast, chart.get("vconcat", ())))


def pdf(drawn: str) -> bytes:
    """The SVG as PDF. The converter takes a pixel for a point, 72 to the inch."""
    points = re.sub(r'="([\d.]+)in"', lambda match: f'="{72 * float(match[1]):.2f}"', drawn, count=2)
    return vl_convert.svg_to_pdf(points)


def caption(figure: Figure, column: str = "single") -> str:
    """What stands under the picture, and what a reader who does not see it is told.

    Labels of which a single column shows the name alone stand there whole.
    """
    whole = cut_labels(figure.specification) if column == "single" else []
    labels = f" Labels: {'; '.join(whole)}." if whole else ""
    return f"{figure.title}. {figure.subtitle}{labels}\n\nAlt text: {figure.description}\n"


def cut_labels(chart: _Panels) -> list[str]:
    """Labels with more than a name, in order."""
    labels: dict[str, None] = {}

    def note(part: _Panels) -> _Panels:
        if _is_label(part) and "data" in part:
            rows = json.loads(chart["datasets"][part["data"]["name"]])
            labels.update(dict.fromkeys(row["label"] for row in rows))
        return part

    _mapped(chart, note)
    return [label for label in labels if re.search(AFTER_NAME, label)]


def _paper(chart: _Panels, legend_columns: int, *, stacked: bool) -> _Panels:
    """Without a title, every text of 8 points, panels lower; those side by side one below another."""
    size, config = TEXT * POINT, chart["config"]
    fonts = {"labelFontSize": size, "titleFontSize": size, "labelSeparation": APART}
    laid = config | {"padding": 2, "axis": config["axis"] | fonts, "header": config["header"] | fonts}
    laid["legend"] = config["legend"] | fonts | ({"columns": legend_columns} if legend_columns else {})
    bare = {key: value for key, value in chart.items() if key not in ("title", "config")}
    return {**_mapped(bare, lambda each: _plain(each, size, stacked)), "config": laid}


def _plain(part: _Panels, size: float, stacked: bool) -> _Panels:
    out = dict(part)
    if "fontSize" in out:
        out["fontSize"] = size
    if isinstance(out.get("height"), (int, float)):
        out["height"] *= HEIGHT
    if isinstance(mark := out.get("mark"), dict):
        finer = {name: mark[name] * share for name, share in FINER.items() if name in mark}
        out["mark"] = mark | finer
    if stacked and "hconcat" in out:
        out["vconcat"] = out.pop("hconcat")
    if stacked and _is_label(out):
        # Beside a panel of one column there is room for a name alone.
        first = {"calculate": f"split(datum.label, /{AFTER_NAME}/)[0]", "as": "label"}
        out["transform"] = [*out.get("transform", ()), first]
    return out


def _is_label(part: _Panels) -> bool:
    return part.get("encoding", {}).get("text", {}).get("field") == "label"


def _mapped(part: Any, change: Callable[[_Panels], _Panels]) -> Any:
    """Every mapping inside, changed from the outside in; data stay as they are."""
    if isinstance(part, dict):
        return {
            key: value if key in ("data", "datasets") else _mapped(value, change)
            for key, value in change(part).items()
        }
    return [_mapped(each, change) for each in part] if isinstance(part, list) else part


def _resized(chart: _Panels, share: float) -> _Panels:
    def narrower(part: _Panels) -> _Panels:
        length = {"gradientLength": part["gradientLength"] * share} if "gradientLength" in part else {}
        return part | ({"width": part["width"] * share} if _is_panel(part) else {}) | length

    return _mapped(chart, narrower)


def _widths(chart: _Panels) -> list[float]:
    widths: list[float] = []

    def note(part: _Panels) -> _Panels:
        if _is_panel(part):
            widths.append(float(part["width"]))
        return part

    _mapped(chart, note)
    return widths


def _is_panel(part: _Panels) -> bool:
    return ("layer" in part or "mark" in part) and isinstance(part.get("width"), (int, float))


_SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')


def _width(drawn: str) -> float:
    match = _SIZE.search(drawn)
    return float(match[2]) if match else 0.0


def _in_inches(drawn: str, inches: float) -> str:
    """The same drawing; its width says inches, so that it prints at its size."""
    width = _width(drawn)

    def sized(match: re.Match[str]) -> str:
        return f'<svg {match[1]}width="{inches}in" height="{float(match[3]) / width * inches:.3f}in"'

    return _SIZE.sub(sized, drawn, count=1)
