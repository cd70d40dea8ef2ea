"""Laws that papers printed, each a Fit with its citation."""

import math
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from isoloss.errors import InputError, Refusal
from isoloss.files import shipped_toml
from isoloss.laws import Fit, from_constants


def published(name: str) -> Fit:
    """The printed law of that name.

    Raises InputError for an unknown name, Refusal for a law whose constants are not published.
    """
    table = _table()
    if name in table["unpublished"]:
        raise Refusal(table["unpublished"][name], where=name, mend="fit the form to runs of your own")
    if name not in names():
        raise InputError(f"there is no published law {name!r}", mend=f"choose one of {', '.join(names())}")
    law = table[name]
    exact = {parameter: math.exp(log) for parameter, log in law.get("logs", {}).items()}
    return from_constants(
        law["law"],
        law["params"] | exact,
        standard_errors=law.get("standard_errors", {}),
        intervals={key: tuple(ends) for key, ends in law.get("intervals", {}).items()},
        level=law.get("level", 0.9),
        ranges={key: tuple(ends) for key, ends in law.get("range", {}).items()},
        objective=law.get("objective", "not reported"),
        n=law.get("n", 0),
        warnings=law.get("warnings", ()),
        source={"published": name, "citation": law["cite"], "counts": law["counts"]},
    )


def matching(pattern: str) -> list[Fit]:
    """The printed laws whose names match: "kaplan-n", "kaplan-context-*". Raises as ``published``."""
    matches = [name for name in names() if fnmatchcase(name, pattern)]
    return [published(name) for name in matches or [pattern]]


def names() -> tuple[str, ...]:
    """The published laws that predict."""
    return tuple(name for name in _table() if name != "unpublished")


def unpublished() -> dict[str, str]:
    """Laws of which a paper gives the form alone, and what it leaves out."""
    return dict(_table()["unpublished"])


@cache
def _table() -> dict[str, Any]:
    return shipped_toml("isoloss.sources.published", "laws.toml")
