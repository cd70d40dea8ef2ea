"""Everything that is said about a study, measured once; a part that cannot be measured is its refusal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from isoloss.analysis import by_params, by_position, contexts, families, gap_by_tokens, loops, shape
from isoloss.analysis.families import Versus
from isoloss.errors import Refusal, attempt
from isoloss.records import StudyData

PairResult = TypeVar("PairResult", covariant=True)


class Paired(Protocol[PairResult]):
    """An analysis of every pair of families."""

    @property
    def pairs(self) -> Mapping[Versus, PairResult | Refusal]: ...


def of_pair(data: Paired[PairResult] | Refusal, pair: Versus) -> PairResult | Refusal:
    """What an analysis says of one pair, or its refusal."""
    return data if isinstance(data, Refusal) else data.pairs[pair]


@dataclass(frozen=True)
class StudyAnalysis:
    """Loss by size, by tokens and by position, context laws, loops and shapes of one study.

    ``contexts`` by family. ``shape`` is None where no shapes of one size were planned.
    """

    study: StudyData
    by_params: by_params.ByParams | Refusal
    gaps: gap_by_tokens.GapByTokens | Refusal
    by_position: by_position.ByPosition | Refusal
    contexts: Mapping[str, contexts.Contexts | Refusal]
    loops: loops.LoopedStudy | Refusal
    shape: shape.Shapes | Refusal | None

    @property
    def planned(self) -> tuple[str, ...]:
        return families.planned(self.study)

    @property
    def pairs(self) -> list[Versus]:
        """Each of the families compared with every other."""
        return families.pairs(families.compared(self.study))


def analyse(study: StudyData) -> StudyAnalysis:
    """Measure every part of the study that its runs allow."""
    return StudyAnalysis(
        study=study,
        by_params=attempt(by_params.measure, study),
        gaps=attempt(gap_by_tokens.measure, study),
        by_position=attempt(by_position.measure, study),
        contexts=contexts.measure(study),
        loops=attempt(loops.measure, study),
        shape=attempt(shape.measure, study) if shape.planned(study) else None,
    )
