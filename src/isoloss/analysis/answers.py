"""Each question of a study answered: a sentence, its numbers, and what it does not hold for."""

from typing import Any

from isoloss import text
from isoloss.analysis.by_params import ByParams, FamilyPair, fall
from isoloss.analysis.by_position import LEFT, START, FamilyPositions, flat_by, use_words
from isoloss.analysis.by_position import verdict as position_verdict
from isoloss.analysis.context_misses import misses_words
from isoloss.analysis.contexts import Contexts, late_words, law_sentence
from isoloss.analysis.families import Versus, name_of
from isoloss.analysis.gap_by_tokens import PairByTokens
from isoloss.analysis.gap_words import (
    check_words,
    first_end,
    headline,
    off_words,
    size_words,
    slope_range_words,
    stopped_words,
)
from isoloss.analysis.gap_words import verdict as gap_verdict
from isoloss.analysis.loop_worth import doubts_words, phi_words, worth_words
from isoloss.analysis.loops import LoopedStudy, LoopGain, fewer_loops_words, loops_verdict
from isoloss.analysis.params_words import (
    called,
    crossover,
    sides,
    single_words,
    sizes_words,
    total_words,
)
from isoloss.analysis.params_words import verdict as params_verdict
from isoloss.analysis.points import seeds_phrase
from isoloss.analysis.shape import Shapes, compute_words, fold_words
from isoloss.analysis.study import StudyAnalysis, of_pair
from isoloss.errors import Refusal
from isoloss.laws import Crossing, CrossingOutcome
from isoloss.noise import RANGES, range_words
from isoloss.stats import LEVEL, Interval

Parts = tuple[str, dict[str, Any], list[str]]
"""Sentence, numbers, caveats."""


def gap(data: PairByTokens) -> Parts:
    checks = text.capital(check_words(data))
    sentence = f"{headline(data)}." + (f" {checks}." if checks else "")
    numbers = {
        "nats_per_doubling": difference_numbers(data.slope),
        "one_slope": data.shared,
        "sizes": [
            {"params": size.params, "rival": size.curve, "slope": size.slope.value}
            | {"slope_interval": size.slope.interval}
            | {"zero_at": None if size.zero is None else difference_numbers(size.zero)}
            | {"held_out": {str(tokens): difference_numbers(off) for tokens, off in size.checks.items()}}
            for size in data.sizes
        ],
        "level_at": {str(tokens): difference_numbers(level) for tokens, level in data.level_at.items()},
    }
    caveats = [
        *([f"{text.capital(gap_verdict(data))}."] if first_end(data) else []),
        *filter(None, [slope_range_words(data), off_words(data)]),
        RANGES,
        "Here they rest on the spread between seeds, paired and pooled over sizes, and on how far the points "
        "lie from their lines.",
        f"{'One power of D' if data.bent else 'A straight line in log D'} is assumed. Each size meets the "
        "rival's best curve at its last D, at equal N: where no size matches, between the two nearest.",
        *filter(None, [single_words((size.params, size.seeds) for size in data.sizes), stopped_words(data)]),
    ]
    return sentence, numbers, caveats


def level_of(analysis: StudyAnalysis, pair: Versus) -> Interval | None:
    """The N at which both families are level at the D where they are compared; None where it is not known."""
    gaps, params = of_pair(analysis.gaps, pair), of_pair(analysis.by_params, pair)
    known = isinstance(gaps, PairByTokens) and isinstance(params, FamilyPair)
    return gaps.level_at.get(params.tokens) if known else None


def families(data: FamilyPair, level: Interval | None = None) -> Parts:
    gaps = data.headline_gaps
    judged = bool(gaps) and not isinstance(data.noise, Refusal)
    signs = {gap.difference.sign for gap in gaps}
    crossing = data.crossings[data.rival]
    inside = isinstance(crossing, Crossing) and crossing.outcome is CrossingOutcome.CROSSES_INSIDE
    known = isinstance(crossing, Crossing) and not crossing.at_edge
    meets = f"{text.capital(crossover(crossing, data, data.rival))}." if gaps else ""
    who = sides(data, gaps, data.best_rival)
    at_level = level if judged and who else None
    if at_level:
        sentence = (
            f"at D = {text.count(data.tokens)} the curves cross at N = {text.count(at_level.value)} "
            f"({text.interval(at_level.ends, text.count)}). {text.capital(who)}."
        )
    elif judged and len(signs) == 1 and 0 not in signs:
        last = gaps[-1]
        ahead = data.best_rival if last.difference.sign == 1 else data.reference
        which = "the one size compared" if len(gaps) == 1 else "every size compared"
        sentence = (
            f"at D = {text.count(data.tokens)} the {called(ahead, data)} is ahead at {which}, by "
            f"{size_words(last.difference)} at N = {text.count(last.params)}."
        )
    else:
        sentence = f"at D = {text.count(data.tokens)} {params_verdict(data)}."
    minus = f"{data.reference} minus {called(data.best_rival, data)} is"
    words = [f"{text.difference(gap.difference)} at N = {text.count(gap.params)}" for gap in gaps]
    in_sentence = inside and known and not at_level
    if in_sentence:
        sentence += f" {meets}"
    numbers = {
        "tokens": data.tokens,
        "rival": data.best_rival,
        "gaps": [{"params": g.params, "rival": g.curve} | difference_numbers(g.difference) for g in gaps],
        "level": None if level is None else difference_numbers(level),
        "crossing": None if not isinstance(crossing, Crossing) else crossing.value,
        "crossing_interval": None if not isinstance(crossing, Crossing) else crossing.interval,
        "crossing_inside": None if not isinstance(crossing, Crossing) else crossing.inside,
    }
    caveats = [] if in_sentence or not meets else [meets]
    if at_level:
        caveats.append(f"By size, {params_verdict(data)}.")
    if judged:
        caveats.append(" ".join([f"{minus} {words[0]}.", *(f"It is {each}." for each in words[1:])]))
        caveats.append(together_words(data))
    caveats += [
        RANGES,
        range_words(data.noise, "spread of the differences between seeds"),
        "N leaves out embeddings. Where no size matches, the loss is read between the two nearest.",
        *filter(None, [single_words((gap.params, len(gap.by_seed)) for gap in gaps), total_words(data)]),
    ]
    if level is not None and not at_level:
        ends = text.interval(level.ends, text.count)
        caveats.append(
            f"On the line of the gaps in log N both are level at N = {text.count(level.value)} ({ends})."
        )
    return sentence, numbers, caveats


def together_words(data: FamilyPair) -> str:
    """What the intervals of the headline's gaps hold for, and whom each size meets."""
    gaps, level = data.headline_gaps, text.level(LEVEL)
    if len(data.gaps) == len(gaps):
        return f"These {text.plural(len(gaps), 'interval')} hold together, at {level}."
    sizes, curves = [gap.params for gap in gaps], [gap.curve for gap in gaps]
    best = [
        f"The {curve} is best at N = {sizes_words(sizes, [other == curve for other in curves])}."
        for curve in dict.fromkeys(curves)
    ]
    return (
        f"Each size meets the best {name_of(data.versus.rival)} of its N. {' '.join(best)} "
        f"The intervals of all {len(data.gaps)} differences hold together, at {level}: any may be picked."
    )


def size(data: ByParams, family: str) -> Parts:
    """Of a study of one family: by how much its loss falls with N."""
    curve, small, large, change = fall(data, family)
    where = f"from N = {text.count(small)} to {text.count(large)} at D = {text.count(data.tokens)}"
    who = f"the {name_of(curve)}" if curve == family else f"the {curve}"
    if change.sign is None:
        sentence = (
            f"no verdict on what size buys {who}: the two ends share no two seeds (measured "
            f"{text.signed(-change.value)} nats {where})"
        )
    elif change.sign:
        moves = "falls" if change.sign > 0 else "rises"
        sentence = f"the loss of {who} {moves} {size_words(change)} {where}"
    else:
        sentence = f"no change of the loss of {who} is shown {where}: {text.difference(change)}"
    laws = [f"{each.label} ({each.law})." for each in data.curves]
    caveats = [
        *laws,
        RANGES,
        "Here they rest on pairs of one seed.",
    ]
    numbers = {"tokens": data.tokens, "params": [small, large], "fall": difference_numbers(change)}
    return f"{sentence}.", numbers, caveats


def positions(data: FamilyPositions) -> Parts:
    pair, sentence = data.pairs[-1], f"{position_verdict(data)}."
    models = (pair.reference, pair.rival)
    uses = [f"{m.name} {use_words(m.context_use)}." for m in models]
    if models[0].context_use == models[1].context_use:
        uses = [f"{models[0].name} and {models[1].name}: each {use_words(models[0].context_use)}."]
    numbers: dict[str, Any] = {"tokens": data.tokens}
    numbers |= {f"{model.family}_params": model.params for model in models}
    numbers |= {
        "early": difference_numbers(pair.ends[0]),
        "late": difference_numbers(pair.ends[1]),
        "change": difference_numbers(pair.change),
        "stops": {model.family: flat_by(model) for model in models},
    }
    caveats = [
        *map(text.capital, uses),
        RANGES,
        f"Here they are over {data.over}; every index and model read the same tokens.",
        f"The largest of {text.plural(len(data.pairs), 'pair')} of like size (N ratio {pair.ratio:.2f}); "
        "every window starts from nothing.",
        f"Counted from tokens {START // 2 + 1}–{START} on, by octaves: where a model becomes flat is known "
        f"to a factor of two. Next to nothing is less than {LEFT:g} nats.",
    ]
    return sentence, numbers, caveats


def loops(data: LoopedStudy) -> Parts:
    worth = data.worth
    sentence = f"{loops_verdict(data)}."
    if not isinstance(worth, Refusal):
        sentence += f" {text.capital(worth_words(worth))}."
    numbers: dict[str, Any] = {"tokens": data.tokens, "beta": data.beta}
    caveats = [
        RANGES,
        f"{text.capital(seeds_phrase(data.points))}. {range_words(data.noise)}",
        "At equal N, more loops execute more parameters and cost more compute for each token.",
    ]
    if isinstance(worth, Refusal):
        caveats.append(f"Loops at equal depth: {worth.what}.")
    if data.mean_gains:
        most = data.mean_gains[-1]
        numbers |= {
            "params": most.params[-1],
            "sizes": list(most.params),
            "loops": most.loops,
            "last_exit": difference_numbers(most.last_exit),
            "expected": difference_numbers(most.expected),
            "total": difference_numbers(most.total),
            "entropy_bonus": most.bonus,
            "entropy_bonus_at_most": most.cap,
            "by_loops": {gain.loops: gain.last_exit.value for gain in data.mean_gains},
        }
        caveats += [f"{words}." for words in (fewer_loops_words(data), bonus_words(most)) if words]
    if not isinstance(worth, Refusal):
        numbers["worth"] = {
            "loops": worth.loops,
            "parameters": difference_numbers(worth.worth),
            "compute": worth.cost,
            "phi": difference_numbers(worth.phi),
        }
        caveats.append(
            f"{phi_words(worth)}, where 1 means worth a layer of its own and 0 nothing; from runs of equal "
            "depth with one exit, over all their sizes and D, with this recipe."
        )
        caveats.append(doubts_words(worth))
    return sentence, numbers, caveats


def shape(data: Shapes) -> Parts:
    value, ends = data.compute or (None, None)
    folds = [
        {"panel": curve.panel, "curve": curve.name, "fold": curve.flat.fold, "interval": curve.flat.interval}
        | {"verdict": curve.verdict}
        for curve in data.curves
        if curve.flat is not None
    ]
    numbers = {"tokens": data.tokens, "compute": value, "compute_interval": ends, "folds": folds}
    caveats = [
        f"{text.capital(compute_words(data))}, spent on parameters at D = {text.count(data.tokens)} tokens.",
        "Of each ratio the range that all its curves share; the table has each. In brackets: "
        "what is sure, and what is possible; open where the shapes tried end first.",
        f"Intervals of a curve hold all at once, at {text.level(LEVEL)}, from seeds paired by their order of "
        "the text. Every shape of one N has the recipe's learning rate.",
    ]
    if data.missing:
        caveats.append(f"{text.plural(data.missing, 'planned shape')} did not finish and enter nothing.")
    return f"{fold_words(data)}.", numbers, caveats


def context(data: Contexts) -> Parts:
    steps = None if isinstance(data.steps, Refusal) else data.steps.later
    known = {"exponent_for_tenfold_params": data.trend, "late_loss_for_tenfold_params": data.late}
    numbers = {
        name: difference_numbers(value) for name, value in known.items() if isinstance(value, Interval)
    }
    numbers |= {"doublings_later": None if steps is None else difference_numbers(steps)}
    caveats = [f"{words}." for words in [late_words(data)] if words] + [
        "A slope's interval counts how sizes scatter about their line in log N, and blocks of text left out.",
        "The law is fitted from token 1 on, every octave counting alike.",
        *[f"{words}." for words in [misses_words(data.sizes)] if words],
    ]
    return f"{law_sentence(data)}.", {"tokens": data.tokens} | numbers, caveats


def bonus_words(gain: LoopGain) -> str:
    """How much of the fall of the objective is its entropy term, and whether prediction itself improves."""
    term = f"its entropy term (−{gain.bonus:.3f} nats)"
    itself = {-1: "improves too", 1: "gets worse", 0: "is not shown to improve"}[gain.expected.sign or 0]
    if gain.total.sign != -1:
        return f"With {term} the objective still does not clearly fall; prediction itself {itself}"
    share = gain.bonus / -gain.total.value
    if share >= 1:
        return f"The objective falls only because of {term}; prediction itself {itself}"
    return f"The objective falls by {text.percent(share)} because of {term}; prediction itself {itself}"


def difference_numbers(value: Interval) -> dict[str, Any]:
    return {"value": value.value, "interval": value.interval, "level": value.level}
