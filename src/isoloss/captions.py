"""Long texts: they stand in a room's captions.toml, and the code that shows them fills in their names."""

from functools import cached_property
from string import Formatter
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from isoloss.files import shipped_toml
from isoloss.strict import Strict

Caption = TypeVar("Caption", bound=Strict)


class Captions(Generic[Caption]):
    """The texts of ``room``, an entry a figure or table; each holds the fields of ``Caption``."""

    def __init__(self, room: str, model: type[Caption]):
        self.room, self.model = room, model

    @cached_property
    def entries(self) -> dict[str, Caption]:
        """By name. Raises pydantic.ValidationError for a field too few or too many."""
        return TypeAdapter(dict[str, self.model]).validate_python(shipped_toml(self.room, "captions.toml"))

    def fill(self, entry: str, **values: object) -> dict[str, Any]:
        """The fields of an entry with ``values`` at their {names}.

        Raises LookupError for an entry that is not there, a name without a value, and a value without a name.
        """
        if entry not in self.entries:
            raise LookupError(f"{self.room} has no caption {entry!r}")
        fields = self.entries[entry].model_dump()
        texts = {key: value for key, value in fields.items() if isinstance(value, str)}
        names = {name for value in texts.values() for _, name, _, _ in Formatter().parse(value) if name}
        if names != set(values):
            raise LookupError(f"caption {entry!r} takes {sorted(names)}, not {sorted(values)}")
        return fields | {key: value.format_map(values) for key, value in texts.items()}
