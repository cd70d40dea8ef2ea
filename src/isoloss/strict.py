"""Strict settings and records: what does not fit is refused, and the first complaint says where."""

import tomllib
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from isoloss.errors import InputError


class Strict(BaseModel):
    """Frozen; no conversions between types, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


def first_complaint(error: ValidationError, whole: str = "") -> str:
    """pydantic's first complaint with the key's path before it; ``whole`` stands for the value itself."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"]) or whole
    return f"{key}: {first['msg']}" if key else first["msg"]


def json_values(value: Any) -> Any:
    """``value`` as JSON would give it back: tuples as lists, dataclasses as dicts, Enums as their values."""
    if is_dataclass(value):
        return {field.name: json_values(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def key_and_value(change: str, *, example: str) -> tuple[str, Any]:
    """KEY=VALUE with a TOML value; a bare word or sentence is text, so that no quotes go inside quotes.

    Raises InputError, with ``example`` as the way to write it.
    """
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{change!r} is not KEY=VALUE", where="--set", mend=f"write it as {example}")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, more digits than Python reads, too deep
        return key.strip(), text
