"""Values as JSON would give them back. By pydantic's core alone: its models are slow to import."""

from typing import Any

from pydantic_core import to_jsonable_python


def json_values(value: Any) -> Any:
    """``value`` as plain values: tuples as lists, dataclasses as dicts, Enums as their values."""
    return to_jsonable_python(value)
