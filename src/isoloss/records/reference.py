"""Reference studies that come with isoloss: trained once, on the machine and days that their records name.

They lie in ``isoloss/reference/NAME``, as any study does, without the losses of every position of plain
windows (``benchmarks/reference.py`` makes them). ``reference`` is the first of them.
"""

from pathlib import Path

from isoloss.errors import InputError

FOLDER = Path(__file__).parent.parent / "reference"
PREFIX = "reference"
FIRST = "architectures"


def names() -> list[str]:
    """'reference' and 'reference/NAME' of each, as the command line takes them."""
    studies = sorted(path.parent.name for path in FOLDER.glob("*/study.json"))
    return [PREFIX] * (FIRST in studies) + [f"{PREFIX}/{study}" for study in studies]


def is_name(source: str) -> bool:
    """Does it ask for a reference, whether or not there is one?"""
    return source == PREFIX or source.startswith(f"{PREFIX}/")


def folder(name: str) -> Path:
    """Raises InputError for a name of none."""
    if name not in names():
        raise InputError(
            "there is no such reference study", where=name, mend=f"use one of {', '.join(names())}"
        )
    return FOLDER / (FIRST if name == PREFIX else name.partition("/")[2])
