"""A panel's settings as form fields: label, kind and bounds, from the schema that checks them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isoloss.teach.panel import Panel

KINDS = ("integer", "number", "string", "boolean")


@dataclass(frozen=True)
class Field:
    """``kind``: a JSON type, or one with an "s" for a list. ``longest``: of a text, in characters."""

    name: str
    label: str
    kind: str
    value: str
    checked: bool = False
    low: float | None = None
    high: float | None = None
    longest: int | None = None
    choices: tuple[str, ...] = ()


def fields(panel: Panel) -> list[Field]:
    schema = panel.settings.model_json_schema()
    return [_field(name, part, schema.get("$defs", {})) for name, part in schema["properties"].items()]


def _field(name: str, part: dict[str, Any], shared: dict[str, Any]) -> Field:
    schema = _resolved(part, shared)
    many = schema.get("type") == "array"
    what = _resolved(schema["items"], shared) if many else schema
    default = part.get("default")
    return Field(
        name=name,
        label=part.get("description", name.replace("_", " ")),
        kind=_kind(what) + "s" * many,
        value=_text(default),
        checked=default is True,
        low=what.get("minimum", _inside(what, "exclusiveMinimum", 1)),
        high=what.get("maximum", _inside(what, "exclusiveMaximum", -1)),
        longest=what.get("maxLength"),
        choices=() if many else tuple(str(choice) for choice in what.get("enum", ())),
    )


def _inside(part: dict[str, Any], bound: str, step: int) -> float | None:
    """A field's bound is one that may be entered: of whole numbers the next one inside."""
    value = part.get(bound)
    return value if value is None or part.get("type") != "integer" else value + step


def _resolved(part: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """The part itself, what it refers to, or of several the one that is not null."""
    if "$ref" in part:
        return shared[part["$ref"].rsplit("/", 1)[-1]]
    some: Sequence[dict[str, Any]] = part.get("anyOf", ())
    return next((_resolved(one, shared) for one in some if one.get("type") != "null"), part)


def _kind(part: dict[str, Any]) -> str:
    kind = part.get("type", "string")
    if kind not in KINDS:
        raise TypeError(
            f"a setting of type {kind} has no form field: use {', '.join(KINDS)} or a list of them"
        )
    return kind


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    return ", ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)
