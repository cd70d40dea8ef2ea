"""Reading charts: the layers of a figure and the rows that each of them draws."""

import json
from collections.abc import Iterator
from typing import Any

from isoloss.figures.figure import Figure


def specification(drawn: Any) -> dict[str, Any]:
    """Of a chart or of a figure's, which it keeps: what is laid on for the page stands apart."""
    if not isinstance(drawn, Figure):
        return drawn.to_dict(validate=False)
    laid_on = ("config", "title") if drawn.subtitle else ("config",)
    return {key: value for key, value in drawn.specification.items() if key not in laid_on}


def rows(drawn: Any, layer: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The rows of a chart, or of one of its layers; layers may share the chart's."""
    whole = specification(drawn)
    data = (layer or whole).get("data", whole.get("data"))
    values = data["values"] if "values" in data else whole["datasets"][data["name"]]
    return json.loads(values) if isinstance(values, str) else values


def layers(drawn: Any) -> list[dict[str, Any]]:
    """Every layer that has a mark, however deep: of panels side by side too."""
    return list(_marked(specification(drawn)))


def _marked(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "mark" in part:
        yield part
    for name in ("layer", "hconcat", "vconcat", "concat"):
        for inner in part.get(name, []):
            yield from _marked(inner)
    if "spec" in part:
        yield from _marked(part["spec"])


def panels(drawn: Any) -> list[list[dict[str, Any]]]:
    """The layers of each panel, with the panel's data where they have none of their own."""
    return list(_panels(specification(drawn)))


def _panels(part: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    if "layer" in part or "mark" in part:
        shared = {"data": part["data"]} if "data" in part else {}
        yield [shared | layer for layer in part.get("layer", [part])]
    for inner in [*(part[name] for name in ("spec",) if name in part), *_beside(part)]:
        yield from _panels(inner)


def _beside(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [inner for name in ("hconcat", "vconcat", "concat") for inner in part.get(name, [])]


def written(drawn: Any) -> Iterator[str]:
    """Every text inside a picture: of marks that write, and of panels that have a name."""
    for layer in (layer for panel in panels(drawn) for layer in panel if layer["mark"]["type"] == "text"):
        text = layer["encoding"].get("text", {})
        if "field" in text and "format" not in text:
            yield from (str(row[text["field"]]) for row in rows(drawn, layer) if text["field"] in row)
    yield from _names(specification(drawn))


def _names(part: dict[str, Any]) -> Iterator[str]:
    title = part.get("title")
    if title and ("layer" in part or "mark" in part):
        yield title["text"] if isinstance(title, dict) else title
    for inner in _beside(part):
        yield from _names(inner)


def of_mark(drawn: Any, kind: str) -> list[dict[str, Any]]:
    """The layers of one mark: line, area, point, rule, text."""
    return [layer for layer in layers(drawn) if layer["mark"]["type"] == kind]
