"""Which families a study planned, what they are called, and which are set against which."""

from dataclasses import dataclass
from itertools import combinations

import polars as pl

from isoloss.analysis.points import of_families
from isoloss.records import StudyData

NAMES = {"transformer": "Transformer", "lstm": "LSTM", "looped": "looped Transformer"}
LEADING = ("transformer", "lstm")
"""These come first, in this order: the reference of a pair is the first of its two families."""


@dataclass(frozen=True)
class Versus:
    """Two families set against each other: every difference is ``reference`` minus ``rival``.

    ``families``: all that the study compares. ``first``: the pair that the study speaks of first.
    """

    reference: str
    rival: str
    families: tuple[str, ...]
    first: bool

    @property
    def suffix(self) -> str:
        """Ends the names of this pair's findings and figures; the first pair has the plain names."""
        return "" if self.first else f"-{self.reference}-{self.rival}"

    @property
    def words(self) -> str:
        return f"{name_of(self.reference)} minus {name_of(self.rival)}"


def name_of(family: str) -> str:
    """As a sentence calls it: 'Transformer', a user's family 'gated model'."""
    return NAMES.get(family, f"{family} model")


def plural_of(family: str) -> str:
    """'Transformers', 'gated models'."""
    return f"{name_of(family)}s"


def planned(study: StudyData) -> tuple[str, ...]:
    """Every family of the plan, the shipped ones first, then in the plan's order."""
    families = dict.fromkeys(run["settings"]["family"] for run in study.plan["runs"])
    return tuple(sorted(families, key=lambda f: LEADING.index(f) if f in LEADING else len(LEADING)))


def compared(study: StudyData) -> tuple[str, ...]:
    """The families set against each other.

    Looped models are compared over their loops, in a chapter of their own; they join here only where fewer
    than two other families were planned.
    """
    others = tuple(family for family in planned(study) if family != "looped")
    return others if len(others) > 1 else planned(study)


def by_context(study: StudyData) -> tuple[str, ...]:
    """The families whose use of context is a question of its own: Transformers, and those of a user."""
    return tuple(family for family in planned(study) if family not in ("lstm", "looped"))


def pairs(families: tuple[str, ...]) -> list[Versus]:
    """Each family with every other."""
    return [Versus(*two, families, first=n == 0) for n, two in enumerate(combinations(families, 2))]


def of_pair(points: pl.DataFrame, pair: Versus) -> pl.DataFrame:
    """Rows of both families. Raises Refusal naming the ones without a row."""
    return of_families(points, pair.reference, pair.rival)
