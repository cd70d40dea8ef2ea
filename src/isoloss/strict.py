"""Strict settings and records: what does not fit is refused, and the first complaint says where."""

import tomllib
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_jsonable_python

from isoloss.errors import InputError


class Strict(BaseModel):
    """Frozen; no conversions between types, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


Kind = TypeVar("Kind", bound=BaseModel)


def first_complaint(error: ValidationError, whole: str = "", *, by_hand: bool = False) -> str:
    """pydantic's first complaint with the key's path before it; ``whole`` stands for the value itself.

    ``by_hand``: of settings that people write. An unknown key then goes before all others, since a misspelt
    one is why another is missing, and what was given is said if it is short.
    """
    complaints = error.errors()
    unknown = [complaint for complaint in complaints if complaint["type"] == "extra_forbidden"]
    first = unknown[0] if by_hand and unknown else complaints[0]
    key = ".".join(str(part) for part in first["loc"]) or whole
    what = first["msg"].removeprefix("Value error, ")
    given = repr(first["input"])
    if by_hand and first["type"] != "missing" and len(given) < 60:
        what += f" (got {given})"
    return f"{key}: {what}" if key else what


def validate(
    kind: type[Kind], values: Any, *, where: str, mend: str = "", whole: str = "", by_hand: bool = False
) -> Kind:
    """``values``, or JSON as bytes, as ``kind``. Raises InputError with the ``first_complaint``."""
    try:
        return kind.model_validate_json(values) if isinstance(values, bytes) else kind.model_validate(values)
    except ValidationError as error:
        raise InputError(first_complaint(error, whole, by_hand=by_hand), where=where, mend=mend) from None


def json_values(value: Any) -> Any:
    """``value`` as JSON would give it back: tuples as lists, dataclasses as dicts, Enums as their values."""
    return to_jsonable_python(value)


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
