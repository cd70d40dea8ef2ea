"""A fit in sentences: the law, how sure it is, what the objective and single runs do to it."""

from collections.abc import Mapping
from dataclasses import asdict

from isoloss import text
from isoloss.analysis.findings import Finding, unanswered
from isoloss.analysis.fit_doubts import doubts
from isoloss.analysis.fit_rows import brief_formula, row_words, spread_words
from isoloss.analysis.fit_tables import exponents, most_moved, moved_words, run_words
from isoloss.analysis.refits import LeaveOneOut, Refits
from isoloss.errors import Refusal
from isoloss.laws import OURO_BETA, Fit, FitStatus, entropy_share
from isoloss.plans import allocation_exponent
from isoloss.plans.curve import AllocationExponent

HARDLY = 0.25
"""Of the noise of one run: a smaller shift of the law is none to speak of."""

MOST_NAMED = 3
"""Of more exponents, and of more inputs of a run, the table alone has the numbers."""


def findings(fit: Fit, refits: Refits | Refusal, without: LeaveOneOut | Refusal) -> tuple[Finding, ...]:
    against = doubts(fit)
    out = [*_against(against), _law(fit)]
    if (exponent := allocation_exponent(fit)) is not None:
        out.append(_allocation(exponent))
    out.append(_certainty(fit, against))
    if fit.law == "loop-total":
        out.append(_bonus(fit))
    return (*out, _objective(fit, refits), _influence(fit, without))


def _against(against: Mapping[str, str]) -> list[Finding]:
    """What the runs say against the law, before the law."""
    if not against:
        return []
    sentence = f"The runs speak against this law: {text.listed(list(against))}."
    caveats = tuple(f"{text.capital(words)}." for words in against.values())
    return [Finding("against", "What speaks against it", sentence, {"doubts": list(against)}, caveats)]


def _law(fit: Fit) -> Finding:
    origin = fit.source.get("citation") or row_words(fit)
    status = list[str]()
    if fit.status not in (FitStatus.CONVERGED, FitStatus.PUBLISHED):
        why = "" if fit.reason == fit.status.value else f"; {fit.reason}"
        status.append(f"Status: {fit.status.value}{why}.")
    sentence = f"{brief_formula(fit)}, from {origin}."
    return Finding("law", "The law", sentence, {"params": dict(fit.params)}, tuple(status))


def _certainty(fit: Fit, against: Mapping[str, str]) -> Finding:
    intervals = {name: fit.intervals[name] for name in exponents(fit) if fit.intervals[name] is not None}
    numbers, more = {"intervals": intervals, "level": fit.level}, list[str]()
    if not intervals:
        sentence = f"No interval: {_why(fit)}."
    else:
        each = [
            f"{name} = {text.brief(fit.params[name])} ({text.interval(ends, text.brief)})"
            for name, ends in list(intervals.items())[:MOST_NAMED]
        ]
        by = f" by {fit.intervals_by} with {text.plural(fit.df, 'degree')} of freedom"
        by = " as printed" if fit.status is FitStatus.PUBLISHED else by
        sentence = f"{text.listed(each)}."
        more.append(f"Brackets hold {text.level(fit.level)} intervals{by}.")
    if fit.sigma is not None:
        more.append(f"One run scatters by {spread_words(fit, fit.sigma)} about the law.")
    if fit.seeds is not None:
        verb = "shows" if fit.seeds.p < 0.05 else "does not show"
        more.append(
            f"The spread between seeds, {spread_words(fit, fit.seeds.sd)}, {verb} that the law misses "
            f"(p = {fit.seeds.p:.2g})."
        )
    more += [warning for warning in fit.warnings if warning not in against.values()]
    return Finding("certainty", "How sure it is", sentence, numbers, tuple(more))


def _why(fit: Fit) -> str:
    if fit.status not in (FitStatus.CONVERGED, FitStatus.PUBLISHED):
        return fit.reason
    reasons = [w.removeprefix("no interval: ").removesuffix(": no interval") for w in fit.warnings]
    return "; ".join(reasons) or "the data support none"


def _allocation(exponent: AllocationExponent) -> Finding:
    a, ends = exponent
    between = "" if ends is None else f" ({text.interval(ends, text.loss)})"
    sentence = f"The best N grows as C^{a:.3f}{between} and the best D as C^{1 - a:.3f}, with C = 6 N D."
    return Finding("allocation", "What the law says to do", sentence, {"a": a, "interval": ends}, ())


def _bonus(fit: Fit) -> Finding:
    share = entropy_share(fit, OURO_BETA)
    title = "What the entropy bonus could do"
    caveat = (
        "The bonus is at most beta times the logarithm of the number of exits; total loss hides what it was."
    )
    part = text.percent(share.share, 0)
    sentence = (
        f"An entropy bonus of weight {share.beta:g} alone could give {part} of what loops lower the loss by."
    )
    return Finding("entropy-bonus", title, sentence, asdict(share), (share.sentence, caveat))


def _objective(fit: Fit, refits: Refits | Refusal) -> Finding:
    title = "What the objective does"
    if isinstance(refits, Refusal):
        return unanswered("objective", title, refits)
    solved = [(_name(objective, delta), law) for objective, delta, law in refits if isinstance(law, Fit)]
    refused = len(refits) - len(solved)
    if len(refits) == 1:
        sentence = "Losses at or below 0 have no logarithm: squared is the only objective for them."
        return Finding("objective", title, sentence, {}, ())
    beyond: list[str] = []
    numbers: dict[str, dict[str, float]] = {}
    for name in exponents(fit):
        numbers[name] = {objective: law.params[name] for objective, law in solved}
        values = numbers[name].values()
        low, high = fit.intervals[name] or (None, None)
        if low is not None and high is not None and not low <= min(values) <= max(values) <= high:
            beyond.append(name)
    most = most_moved(fit, *(law.params for _, law in solved))
    low, high = (text.brief(end(numbers[most].values())) for end in (min, max))
    moves = "no exponent moves in three digits" if low == high else f"{most} moves most, from {low} to {high}"
    sentence = f"Over {len(solved)} objectives {moves}."
    if beyond:
        each = "each of " if len(beyond) > 1 else ""
        sentence += f" Here {each}{text.listed(beyond)} moves beyond its interval."
    if refused:
        sentence += f" {refused} more refuse the data."
    caveat = "An interval holds for its own objective: it does not cover the choice of another."
    return Finding("objective", title, sentence, numbers, (caveat,))


def _name(objective: str, delta: float | None) -> str:
    return objective if delta is None else f"{objective} {delta:g}"


def _influence(fit: Fit, without: LeaveOneOut | Refusal) -> Finding:
    title = "Which run it rests on"
    if isinstance(without, Refusal):
        return unanswered("influence", title, without)
    worst = without.each[0]
    lost = sum(run.moved is None for run in without.each)
    run = f"run at {run_words(worst)}" if len(worst.inputs) <= MOST_NAMED else "first run of the table"
    if worst.moved is None or worst.params is None:
        sentence = f"Without the {run} the rest does not determine the law."
        sentence += "" if lost == 1 else f" So it is with {lost} of {len(without.each)} runs."
        return Finding("influence", title, sentence, {"left_out": run_words(worst), "moved": None}, ())
    hardly = "hardly " if worst.moved < HARDLY else ""
    sentence = f"Leaving out the {run} {hardly}shifts the law."
    by = f"It shifts by {worst.moved:.2f} times the noise of one run."
    numbers = {"left_out": run_words(worst), "moved": worst.moved, "params": dict(worst.params)}
    moved = f"Without it {moved_words(fit, worst.params)}."
    return Finding("influence", title, sentence, numbers, (by, moved))
