"""Which column is which: well-known names, each exact, and never a choice between two."""

from collections.abc import Iterable, Mapping

from isoloss.files import shipped_toml

_NAMING = shipped_toml("isoloss.sources", "naming.toml")
SYNONYMS = {name: tuple(others) for name, others in _NAMING["synonyms"].items()}
LABELS = frozenset(_NAMING["labels"])
NUMBERS = frozenset([*SYNONYMS, *_NAMING["more_numbers"]]) - LABELS
PARAMETER_COUNTS = frozenset([*SYNONYMS["params"], *SYNONYMS["params_total"], *_NAMING["parameter_counts"]])


def plain(name: str) -> str:
    """'Training FLOP' -> 'training_flop'; 'N' stays 'N'."""
    name = name.strip()
    return name if len(name) == 1 else name.lower().replace(" ", "_").replace("-", "_")


def candidates(name: str, columns: Iterable[str]) -> list[str]:
    """The ``columns`` that are well-known names of our ``name``."""
    return [column for column in columns if plain(column) in SYNONYMS.get(name, (name,))]


def other_counts(columns: Iterable[str], column_of: Mapping[str, str]) -> list[str]:
    """Columns that count parameters too, and are not among those taken."""
    used = set(column_of.values())
    return [column for column in columns if plain(column) in PARAMETER_COUNTS and column not in used]
