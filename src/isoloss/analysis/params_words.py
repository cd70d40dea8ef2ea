"""Which family is ahead at which N, and where their curves cross, in sentences."""

from collections.abc import Iterable, Sequence

from isoloss import text
from isoloss.analysis.by_params import FamilyPair, Gap
from isoloss.analysis.families import name_of
from isoloss.errors import Refusal
from isoloss.laws import Crossing, CrossingOutcome


def verdict(pair: FamilyPair) -> str:
    """Who is ahead at which N, in one clause; only what the intervals support."""
    gaps = pair.headline_gaps
    if not gaps:
        return (
            f"no size of the {pair.reference} lies within the sizes of the {pair.rival}, so nothing is "
            "compared at equal N"
        )
    if isinstance(pair.noise, Refusal):
        values = [gap.difference.value for gap in gaps]
        return (
            f"no verdict on the {pair.reference} against the {called(pair.best_rival, pair)}: "
            f"{pair.noise.what} (measured "
            f"difference {text.signed(min(values))} to {text.signed(max(values))} nats at {len(gaps)} sizes)"
        )
    clauses: list[str] = []
    reference, rival = (f"the {called(curve, pair)}" for curve in (pair.reference, pair.best_rival))
    for name, sign in ((rival, 1), (reference, -1), ("neither", 0)):
        ahead = [gap.difference.sign == sign for gap in gaps]
        if any(ahead):
            sizes = f"N = {sizes_words([gap.params for gap in gaps], ahead)}"
            share = f"all {len(gaps)} sizes" if all(ahead) else text.plural(sum(ahead), "size")
            which = "the one size" if len(gaps) == 1 else share
            alone = [len(gap.by_seed) for gap, one in zip(gaps, ahead, strict=True) if one] == [1]
            seeds = " (one seed)" if alone else ""
            rest = f"at {sizes}{seeds}" if sum(ahead) == 1 else f"at others ({sizes})"
            clauses.append(f"{name} {rest if clauses else f'is ahead at {which} compared ({sizes})'}")
    return ", ".join(clauses)


def called(curve: str, pair: FamilyPair) -> str:
    """As a sentence calls a curve: a user's family is a model."""
    return name_of(curve) if curve in pair.versus.families else curve


def sizes_words(sizes: Sequence[int], chosen: Sequence[bool]) -> str:
    """The chosen of sizes in order: as a range where none between them is left out."""
    some = [size for size, one in zip(sizes, chosen, strict=True) if one]
    first = sizes.index(some[0])
    if len(some) > 1 and list(sizes[first : first + len(some)]) == some:
        return text.counts(some[0], some[-1])
    return text.listed([text.count(size) for size in some])


def total_words(pair: FamilyPair) -> str:
    """The verdict at equal total parameters, as a sentence; empty where that is not compared."""
    if pair.by_total is None:
        return ""
    return f"With embeddings and heads counted in N, {verdict(pair.by_total)}."


def single_words(seeds: Iterable[tuple[int, int]]) -> str:
    """Of sizes with their seeds: which have one, as a sentence; empty where none or all have."""
    seeds = list(seeds)
    single = [text.count(params) for params, count in seeds if count == 1]
    if not single or len(single) == len(seeds):
        return ""
    return f"One seed alone at N = {text.listed(single)}: its noise is that of the other sizes."


def crossover(meets: Crossing | Refusal, pair: FamilyPair, rival: str) -> str:
    """Where the laws cross, or why that cannot be said."""
    if isinstance(meets, Refusal):
        return f"where the {pair.reference}'s curve meets that of the {rival} is refused: {meets.what}"
    if meets.outcome is CrossingOutcome.NO_CROSSING or meets.value is None:
        return f"the two fitted curves do not cross at any size near those trained{open_crossing(meets)}"
    where = f"N = {text.count(meets.value)} ({text.interval(meets.interval or (None, None), text.count)})"
    if meets.outcome is CrossingOutcome.CROSSES_INSIDE:
        who = sides(pair, [gap for gap in pair.gaps if gap.curve == rival], rival)
        inside = "at the edge of" if meets.at_edge else "inside"
        return f"the fitted laws cross {inside} the data, at {where}{f': {who}' if who else ''}"
    side = (
        "no size is shared"
        if meets.overlap is None
        else f"the shared sizes are {text.counts(*meets.overlap)}"
    )
    return f"the fitted laws would cross at {where}, which lies outside the data ({side}): an extrapolation"


def sides(pair: FamilyPair, gaps: Sequence[Gap], rival: str) -> str:
    """Who is ahead below a crossing and above it, where the measured gaps to the rival say so."""
    values = [value for _, value in sorted((gap.params, gap.difference.value) for gap in gaps)]
    if not values or values[0] * values[-1] >= 0:
        return ""
    small, large = (rival, pair.reference) if values[0] > 0 else (pair.reference, rival)
    return f"below it the {called(small, pair)} is ahead, above it the {called(large, pair)}"


def open_crossing(missed: Crossing) -> str:
    """Where a crossing remains compatible with the data, though the laws themselves do not cross."""
    low, high = missed.interval or (None, None)
    if low is None and high is None:
        return ""
    if low is None:
        return f"; one below N = {text.count(high)} is not excluded"
    if high is None:
        return f"; one above N = {text.count(low)} is not excluded"
    return f"; one at N = {text.counts(low, high)} is not excluded"
