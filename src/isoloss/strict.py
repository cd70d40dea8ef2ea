"""Strict settings and records: what does not fit is refused, and the first complaint says where."""

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from isoloss.errors import InputError


class Strict(BaseModel):
    """Frozen; no conversions between types, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


Kind = TypeVar("Kind", bound=BaseModel)


def first_of(error: ValidationError, *, by_hand: bool) -> Any:
    """pydantic's first complaint; ``by_hand``: an unknown key goes before all others."""
    complaints = error.errors()
    unknown = [complaint for complaint in complaints if complaint["type"] == "extra_forbidden"]
    return unknown[0] if by_hand and unknown else complaints[0]


def first_complaint(error: ValidationError, whole: str = "", *, by_hand: bool = False) -> str:
    """pydantic's first complaint with the key's path before it; ``whole`` stands for the value itself.

    A key too many and one too few are said in plain words. ``by_hand``: of settings that people write. An
    unknown key then goes before all others, since a misspelt one is why another is missing, and what was
    given is said if it is short.
    """
    first = first_of(error, by_hand=by_hand)
    key = ".".join(str(part) for part in first["loc"]) or whole
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    if first["type"] == "missing":
        return f"the key {key!r} is missing"
    what = first["msg"].removeprefix("Value error, ")
    given = repr(first["input"])
    if by_hand and len(given) < 60:
        what += f" (got {given})"
    return f"{key}: {what}" if key else what


def validate(
    kind: type[Kind], values: Any, *, where: str, mend: str = "", whole: str = "", by_hand: bool = False
) -> Kind:
    """``values``, or JSON as bytes, as ``kind``. Raises InputError with the ``first_complaint``.

    The likeliest key is said beside an unknown one. ``by_hand``: to mend a key or a word that there is not,
    the keys of its table are said.
    """
    try:
        return kind.model_validate_json(values) if isinstance(values, bytes) else kind.model_validate(values)
    except ValidationError as error:
        first, what = first_of(error, by_hand=by_hand), first_complaint(error, whole, by_hand=by_hand)
    table, name = table_at(kind, first["loc"])
    if first["type"] == "extra_forbidden":
        near = get_close_matches(str(first["loc"][-1]), table.model_fields, 1, cutoff=0.7)
        what += "".join(f"; did you mean {key!r}?" for key in near)
    if by_hand and first["type"] in ("extra_forbidden", "literal_error"):
        mend = f"the keys{name} are {', '.join(table.model_fields)}; {mend}"
    raise InputError(what, where=where, mend=mend)


def table_at(kind: type[BaseModel], path: Sequence[str | int]) -> tuple[type[BaseModel], str]:
    """The table that a key's path leads into, and its name: ' of models', or nothing for the whole."""
    table = ""
    for key in path:
        annotation = kind.model_fields[key].annotation if key in kind.model_fields else None
        for part in (annotation, *get_args(annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                kind, table = part, f" of {key}"
    return kind, table


def key_and_value(change: str, *, example: str) -> tuple[str, Any]:
    """KEY=VALUE with a TOML value; a bare word or sentence is text, so that no quotes go inside quotes.

    Raises InputError, with ``example`` as the way to write it.
    """
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        what, option = f"{change!r} is not KEY=VALUE", example.split()[0]
        raise InputError(what, where=option, mend=f"write it as {example}")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, more digits than Python reads, too deep
        return key.strip(), text
