"""A panel's settings as form fields: label, kind and bounds, from the schema that checks them."""

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
    checked: bool
    low: float | None
    high: float | None
    longest: int | None


def fields(panel: Panel) -> list[Field]:
    """Raises TypeError for a setting that no form can show."""
    return [_field(name, part) for name, part in panel.settings.model_json_schema()["properties"].items()]


def _field(name: str, part: dict[str, Any]) -> Field:
    many, default = part["type"] == "array", part["default"]
    value = part["items"] if many else part
    if value["type"] not in KINDS:
        raise TypeError(f"a setting of type {value['type']} has no form field: use {', '.join(KINDS)}")
    return Field(
        name=name,
        label=part["description"],
        kind=value["type"] + "s" * many,
        value=", ".join(map(str, default)) if many else "" if isinstance(default, bool) else str(default),
        checked=default is True,
        low=value.get("minimum"),
        high=value.get("maximum"),
        longest=value.get("maxLength"),
    )
