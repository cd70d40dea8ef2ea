"""Numbers to sentences: the findings of a study. No verdict without seeds and an interval."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from isoloss import text
from isoloss.analysis.answers import Parts, context, families, gap, level_of, loops, positions, shape, size
from isoloss.analysis.conditions import left_out, repeat_words
from isoloss.analysis.contexts import Contexts
from isoloss.analysis.points import sweeps
from isoloss.analysis.study import StudyAnalysis, analyse, of_pair
from isoloss.errors import Refusal, attempt
from isoloss.records import StudyData


@dataclass(frozen=True)
class Finding:
    """``numbers`` are those of the sentence, unrounded; ``caveats`` say what it does not hold for."""

    key: str
    title: str
    sentence: str
    numbers: Mapping[str, Any]
    caveats: tuple[str, ...]


LEFT_OUT = "left-out"
"""Key of the finding whose caveats are the runs that enter nothing."""


def findings(study: StudyData) -> list[Finding]:
    """What a study planned to answer, in order; what cannot be had says what is missing."""
    return findings_of(analyse(study))


def findings_of(analysis: StudyAnalysis) -> list[Finding]:
    tuned = tuning_words(sweeps(analysis.study.table())) + repeat_words(analysis.study)
    parts: list[tuple[str, str, Any, Callable[..., Parts]]] = []
    for pair in analysis.pairs:
        of = f": {pair.words}" if len(analysis.pairs) > 1 else ""
        parts += [
            (
                f"gap{pair.suffix}",
                f"What training longer does to the lead{of}",
                of_pair(analysis.gaps, pair),
                gap,
            ),
            (
                f"families{pair.suffix}",
                f"Which family is ahead, and where the curves cross{of}",
                of_pair(analysis.by_params, pair),
                partial(families, level=level_of(analysis, pair)),
            ),
            (
                f"positions{pair.suffix}",
                f"Where in the context the difference lies{of}",
                of_pair(analysis.by_position, pair),
                positions,
            ),
        ]
    if "looped" in analysis.planned:
        parts.append(("loops", "What loops buy", analysis.loops, loops))
    elif len(analysis.planned) == 1 and analysis.shape is None:
        (family,) = analysis.planned
        of_context = analysis.contexts.get(family)
        if family == "transformer" or isinstance(of_context, Contexts):
            parts.append(("context", "How context is used", of_context, context))
        else:
            parts.append(("size", "What size buys", analysis.by_params, partial(size, family=family)))
    if analysis.shape is not None:
        parts.append(("shape", "How much the shape matters at one size", analysis.shape, shape))
    answers = [finding(key, title, data, say, tuned) for key, title, data, say in parts]
    return [*answers, *left_out_finding(analysis.study)]


def left_out_finding(study: StudyData) -> list[Finding]:
    """Which runs enter nothing, and why; none where all that ended are used."""
    runs = left_out(study)
    if not runs:
        return []
    share = f"{len(runs)} of {text.plural(len(study.records), 'run')}"
    sentence = f"{share} that ended diverged; no figure, law or finding has them."
    return [Finding(LEFT_OUT, "Which runs are left out", sentence, {"diverged": len(runs)}, tuple(runs))]


def tuning_words(swept: pl.DataFrame) -> list[str]:
    """A caveat where learning rates were chosen by their outcome."""
    sizes = swept.select("curve", "params").n_unique()
    if not sizes:
        return []
    return [
        f"{sizes} sizes were trained at several learning rates; each enters with the rate of its lowest "
        "loss, a choice by outcome that flatters it."
    ]


def finding(key: str, title: str, data: Any, say: Callable[..., Parts], tuned: list[str]) -> Finding:
    if isinstance(data, Refusal):
        return unanswered(key, title, data)
    answer = attempt(say, data)
    if isinstance(answer, Refusal):
        return unanswered(key, title, answer)
    sentence, numbers, caveats = answer
    return Finding(key, title, text.capital(sentence), numbers, (*caveats, *tuned))


def unanswered(key: str, title: str, reason: Refusal) -> Finding:
    sentence = f"Not answered: {reason.what}. What would answer it: {reason.mend}."
    return Finding(key, title, sentence, {}, ())
