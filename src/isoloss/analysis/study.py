"""Everything that is said about a study, measured once; a part that cannot be measured is its refusal."""

from dataclasses import dataclass

from isoloss.analysis import by_params, by_position, by_tokens, contexts, loops
from isoloss.errors import Refusal, attempt
from isoloss.records import StudyData


@dataclass(frozen=True)
class StudyAnalysis:
    """Loss by size, by tokens and by position, context laws and loops of one study."""

    study: StudyData
    by_params: by_params.ByParams | Refusal
    by_tokens: by_tokens.ByTokens | Refusal
    by_position: by_position.ByPosition | Refusal
    contexts: contexts.Contexts | Refusal
    loops: loops.LoopedStudy | Refusal


def analyse(study: StudyData) -> StudyAnalysis:
    """Measure every part of the study that its runs allow."""
    return StudyAnalysis(
        study=study,
        by_params=attempt(by_params.measure, study),
        by_tokens=attempt(by_tokens.measure, study),
        by_position=attempt(by_position.measure, study),
        contexts=attempt(contexts.measure, study),
        loops=attempt(loops.measure, study),
    )
