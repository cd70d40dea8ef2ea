"""Numbers to sentences: the three findings of a study. No verdict without seeds and an interval."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from isoloss import text
from isoloss.analysis.by_params import ByParams, crossover
from isoloss.analysis.by_params import verdict as params_verdict
from isoloss.analysis.by_position import EARLY, ByPosition, gain_words, name_of, stop_words
from isoloss.analysis.by_position import verdict as position_verdict
from isoloss.analysis.loops import LoopedStudy, LoopGain, loops_verdict
from isoloss.analysis.points import seeds_phrase, sweeps
from isoloss.analysis.study import StudyAnalysis, analyse
from isoloss.errors import Refusal
from isoloss.laws import ContextStop, Crossing
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval


@dataclass(frozen=True)
class Finding:
    """``numbers`` are those of the sentence, unrounded; ``caveats`` say what it does not hold for."""

    key: str
    title: str
    sentence: str
    numbers: Mapping[str, Any]
    caveats: tuple[str, ...]


Parts = tuple[str, dict[str, Any], list[str]]
"""Sentence, numbers, caveats."""


def findings(study: StudyData) -> list[Finding]:
    """The three findings of a study, in order; one that cannot be had says what is missing."""
    return findings_of(analyse(study))


def findings_of(analysis: StudyAnalysis) -> list[Finding]:
    tuned = tuning_words(sweeps(analysis.study.table()))
    parts: tuple[tuple[str, str, Any, Callable[..., Parts]], ...] = (
        ("families", "Which family is ahead, and where the curves cross", analysis.by_params, families),
        ("positions", "Where in the context the difference lies", analysis.by_position, positions),
        ("loops", "What loops buy", analysis.loops, loops),
    )
    return [finding(key, title, data, say, tuned) for key, title, data, say in parts]


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
    sentence, numbers, caveats = say(data)
    return Finding(key, title, text.capital(sentence), numbers, (*caveats, *tuned))


def unanswered(key: str, title: str, reason: Refusal) -> Finding:
    sentence = f"Not answered: {reason.what}. What would answer it: {reason.mend}."
    return Finding(key, title, sentence, {}, ())


def families(data: ByParams) -> Parts:
    gaps = data.headline_gaps
    sentence = f"at D = {text.count(data.tokens)} training tokens {params_verdict(data)}."
    crossing = data.crossings.get(data.rival) if data.rival else None
    if gaps and not isinstance(data.noise, Refusal):
        ends = [gaps[0], gaps[-1]] if len(gaps) > 1 else gaps
        words = [f"{text.difference(gap.difference)} at N = {text.count(gap.params)}" for gap in ends]
        sentence += f" Transformer minus {data.rival} is {text.listed(words)}."
    if crossing is not None and data.rival is not None:
        sentence += f" {text.capital(crossover(crossing, data.rival))}."
    numbers = {
        "tokens": data.tokens,
        "rival": data.rival,
        "gaps": [{"params": g.params} | difference_numbers(g.difference) for g in gaps],
        "crossing": None if not isinstance(crossing, Crossing) else crossing.value,
        "crossing_interval": None if not isinstance(crossing, Crossing) else crossing.interval,
        "crossing_inside": None if not isinstance(crossing, Crossing) else crossing.inside,
    }
    caveats = [
        f"{text.capital(seeds_phrase(data.points))}; {interval_words('families, depths and sizes')}",
        "N counts non-embedding parameters; the LSTM's loss at the Transformer's N lies on the line through "
        "its two nearest sizes in log N.",
        "The LSTM depth named is the one with the lowest mean loss; the table has the others.",
    ]
    return sentence, numbers, caveats


def positions(data: ByPosition) -> Parts:
    pair = data.pairs[-1]
    late = f"{data.context // 2 + 1}–{data.context}"
    if data.noise_refused:
        sentence = f"{position_verdict(data)}."
    else:
        sentence = (
            f"{name_of(pair.transformer)} minus {name_of(pair.lstm)} (N ratio {pair.ratio:.2f}) is "
            f"{text.difference(pair.early)} at tokens 1–{EARLY} and {text.difference(pair.late)} at tokens "
            f"{late}, a change of {text.difference(pair.widening)}: "
            f"{gain_words(pair.widening, 'later context')}."
        )
    for model in (pair.transformer, pair.lstm):
        sentence += f" {text.capital(name_of(model))} {stop_words(model.stop)}."
    numbers = {
        "transformer_params": pair.transformer.profile.params,
        "lstm_params": pair.lstm.profile.params,
        "early": difference_numbers(pair.early),
        "late": difference_numbers(pair.late),
        "change": difference_numbers(pair.widening),
        "stops": {
            m.profile.family: m.stop.index if isinstance(m.stop, ContextStop) else None
            for m in (pair.transformer, pair.lstm)
        },
    }
    caveats = [
        text.capital(interval_words("families, depths and sizes")),
        f"The largest of {len(data.pairs)} size-matched pairs; the LSTM's state is reset at each window.",
        "Where improvement stops is judged by octaves of the token index, so it is known to a factor of two; "
        "only the first quarter of the context can be judged.",
    ]
    return sentence, numbers, caveats


def loops(data: LoopedStudy) -> Parts:
    sentence = f"{loops_verdict(data)}."
    gain = data.gains[-1] if data.gains else None
    if gain and not isinstance(data.noise, Refusal):
        sentence += (
            f" At the largest, N = {text.count(gain.params)}, last-exit loss changes by "
            f"{text.difference(gain.last_exit)} and total loss by {text.difference(gain.total)}. "
            f"{bonus_words(gain)}."
        )
    numbers: dict[str, Any] = {"tokens": data.tokens, "beta": data.beta}
    if gain:
        numbers |= {
            "params": gain.params,
            "loops": gain.loops,
            "last_exit": difference_numbers(gain.last_exit),
            "expected": difference_numbers(gain.expected),
            "total": difference_numbers(gain.total),
            "entropy_bonus": gain.bonus,
            "entropy_bonus_at_most": gain.cap,
        }
    caveats = [
        f"{text.capital(seeds_phrase(data.points))}; {interval_words('sizes')}",
        "At equal N, more loops execute more parameters and cost more compute for each token.",
    ]
    return sentence, numbers, caveats


def bonus_words(gain: LoopGain) -> str:
    """How much of the change in total loss is the entropy bonus."""
    bonus = f"The entropy bonus alone is −{gain.bonus:.3f} nats (at most −{gain.cap:.3f}) of the total"
    if gain.total.sign != -1:
        return f"{bonus}, which does not clearly fall"
    share = gain.bonus / -gain.total.value
    if share >= 1:
        return f"{bonus}: it explains the whole fall of the total, and more"
    return f"{bonus}: it explains {text.percent(share)} of the total's fall"


def difference_numbers(value: Interval) -> dict[str, Any]:
    return {"value": value.value, "interval": value.interval, "level": value.level}


def interval_words(over: str) -> str:
    return (
        f"intervals are {text.level(LEVEL)} t intervals from the spread between seeds, pooled over {over} as "
        "if all were equally noisy, each by itself; they do not cover another text or another recipe."
    )
