"""What a panel may be set to: names and types in its module, defaults and bounds in ``panels.toml``."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import Field, create_model

from isoloss.strict import Strict
from isoloss.teach import prose

Kind = TypeVar("Kind", bound="Settings")


class Settings(Strict):
    """Base of a panel's settings: every field has a default (the deck's size), bounds and a description."""


class Seeded(Settings):
    seeds: int = Field(default=3, ge=1, le=20, description="How many random seeds")
    first_seed: int = Field(default=0, ge=0, le=10_000, description="The first seed; the others follow")

    @property
    def seed_numbers(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))


def described(folder: str, *names: str) -> Callable[[type[Kind]], type[Kind]]:
    """The class with what ``[settings.NAME]`` says of its fields; a later name adds to an earlier one."""

    def describe(kind: type[Kind]) -> type[Kind]:
        said: dict[str, dict[str, Any]] = {}
        for name in names:
            for field, words in prose.read(folder).settings[name].items():
                said.setdefault(field, {}).update(words.model_dump(exclude_unset=True))
        hints = get_type_hints(kind, include_extras=True)
        fields: dict[str, Any] = {field: _field(hints[field], **words) for field, words in said.items()}
        return create_model(kind.__name__, __base__=kind, __module__=kind.__module__, **fields)

    return describe


def _field(hint: Any, *, label: str, default: Any, most: int | None = None, **bounds: Any) -> tuple[Any, Any]:
    """A field's type and what checks it; the bounds of a list are those of each of its values."""
    if get_origin(hint) is not tuple:
        return hint, Field(default, description=label, max_length=most, **bounds)
    (of, *_), several = get_args(hint), {"min_length": 1, "max_length": most or 4, "strict": False}
    values: Any = tuple[Annotated[of, Field(**bounds)], ...]
    return values, Field(tuple(default), description=label, **several)
