"""Everything that is said about a study, measured once; a part that cannot be measured is its refusal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from isoloss.analysis import by_params, by_position, by_tokens, contexts, loops
from isoloss.errors import Refusal
from isoloss.records import StudyData

T = TypeVar("T")


@dataclass(frozen=True)
class StudyAnalysis:
    """Loss by size, by tokens and by position, context laws and loops of one study."""

    study: StudyData
    by_params: by_params.ByParams | Refusal
    by_tokens: by_tokens.ByTokens | Refusal
    by_position: by_position.ByPosition | Refusal
    contexts: contexts.Contexts | Refusal
    loops: loops.LoopedStudy | Refusal


def attempt(measure: Callable[[], T]) -> T | Refusal:
    """What ``measure`` gives, or its refusal as a value."""
    try:
        return measure()
    except Refusal as reason:
        return reason


def analyse(study: StudyData) -> StudyAnalysis:
    """Measure every part of the study that its runs allow."""
    return StudyAnalysis(
        study=study,
        by_params=attempt(lambda: by_params.measure(study)),
        by_tokens=attempt(lambda: by_tokens.measure(study)),
        by_position=attempt(lambda: by_position.measure(study)),
        contexts=attempt(lambda: contexts.measure(study)),
        loops=attempt(lambda: loops.measure(study)),
    )
