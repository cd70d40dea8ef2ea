"""Everything a report says about a study, measured once; a part that cannot be measured is its refusal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from isoloss.analysis import loops
from isoloss.errors import Refusal
from isoloss.figures import context_laws, loss_by_params, loss_by_position, loss_by_tokens
from isoloss.records import StudyData

T = TypeVar("T")


@dataclass(frozen=True)
class Analysis:
    study: StudyData
    by_params: loss_by_params.ByParams | Refusal
    by_tokens: loss_by_tokens.ByTokens | Refusal
    by_position: loss_by_position.ByPosition | Refusal
    contexts: context_laws.Contexts | Refusal
    loops: loops.LoopedStudy | Refusal


def attempt(measure: Callable[[], T]) -> T | Refusal:
    try:
        return measure()
    except Refusal as reason:
        return reason


def analyse(study: StudyData) -> Analysis:
    return Analysis(
        study=study,
        by_params=attempt(lambda: loss_by_params.measure(study)),
        by_tokens=attempt(lambda: loss_by_tokens.measure(study)),
        by_position=attempt(lambda: loss_by_position.measure(study)),
        contexts=attempt(lambda: context_laws.measure(study)),
        loops=attempt(lambda: loops.measure(study)),
    )
