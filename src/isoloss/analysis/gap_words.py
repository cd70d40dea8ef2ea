"""What the gap between two families does with training tokens, in sentences."""

from isoloss import text
from isoloss.analysis.by_params import Gap
from isoloss.analysis.families import name_of
from isoloss.analysis.gap_by_tokens import PairByTokens, SizeGaps
from isoloss.stats import Interval


def headline(pair: PairByTokens) -> str:
    """What is said first, without the last full stop: where the lead ends, else how it changes."""
    size = first_end(pair)
    if size is not None and size.zero is not None:
        seeds = " (one seed)" if size.seeds == 1 else ""
        ends = "ends" if size.zero.value <= max(size.gaps) else "would end"
        where = f"{text.count(size.zero.value)} tokens ({text.interval(size.zero.ends, text.count)})"
        return f"at {text.count(size.params)} parameters{seeds} the {leader(pair)}'s lead {ends} at {where}"
    if shrinks(pair):
        most = max(size.fitted for size in pair.sizes)
        return f"{verdict(pair)}. It ends at no size by {text.count(most)} tokens"
    return verdict(pair)


def shrinks(pair: PairByTokens) -> bool:
    return bool(pair.change) and pair.change == -pair.lead


def first_end(pair: PairByTokens) -> SizeGaps | None:
    """The size at which a lead that shrinks is gone first, if its line says where."""
    ends = [(size.zero.value, size) for size in pair.sizes if size.zero is not None and shrinks(pair)]
    return min(ends, key=lambda each: each[0])[1] if ends else None


def leader(pair: PairByTokens) -> str:
    return name_of(pair.versus.rival if pair.lead > 0 else pair.versus.reference)


def verdict(pair: PairByTokens) -> str:
    """How the gap changes with D, in one clause; only what the intervals support."""
    names = pair.versus.words
    if pair.change is None:
        return (
            f"no verdict on how {names} changes with D: no size has two seeds of both, so the seed noise is "
            f"unknown (measured {text.signed(pair.slope.value)} nats {pair.doubling})"
        )
    if not pair.change:
        return f"no change of {names} with D is shown: {text.difference(pair.slope)} {pair.doubling}"
    if not pair.lead:
        moves = "falls" if pair.change < 0 else "rises"
        return f"{names} {moves} by {size_words(pair.slope)} {pair.doubling}"
    moves = "shrinks" if shrinks(pair) else "grows"
    mean = "" if pair.shared else "mean "
    return f"the {leader(pair)}'s {mean}lead {moves} {size_words(pair.slope)} {pair.doubling}"


def slope_range_words(pair: PairByTokens) -> str:
    """Of slopes that differ the least and the most, in sentences; empty where all sizes share one."""
    if pair.shared:
        return ""
    least, most = (end(pair.sizes, key=lambda size: abs(size.slope.value)) for end in (min, max))
    each = [f"{size_words(size.slope)} at N = {text.count(size.params)}" for size in (least, most)]
    return f"Sizes differ: it is least, {each[0]}. It is most, {each[1]}."


def size_words(slope: Interval) -> str:
    """'0.083 nats (0.075 to 0.091)', of either sign."""
    low, high = sorted(map(abs, (slope.low, slope.high)))
    return f"{text.loss(abs(slope.value))} nats ({text.interval((low, high), text.loss)})"


def check_words(pair: PairByTokens) -> str:
    """How many of the points beyond the lines missed them, as a clause; empty without any that is judged."""
    judged = [check.sign for check in pair.checks if check.sign is not None]
    if not judged:
        return ""
    missed = sum(map(abs, judged))
    if len(judged) == 1:
        return f"the one held-out point {'missed' if missed else 'did not miss'}"
    return f"{missed or 'none'} of {len(judged)} held-out points missed"


def off_words(pair: PairByTokens) -> str:
    """How far off their lines those gaps lie that no line was fitted to, in sentences; empty without any."""
    off = [
        f"At N = {text.count(size.params)} and D = {text.count(tokens)} ({seeds_of(gap)}) the gap lies "
        f"{text.difference(size.checks[tokens])} off its line."
        for size in pair.sizes
        for tokens, gap in size.gaps.items()
        if tokens in size.checks
    ]
    if not off:
        return ""
    side = "above" if pair.lead > 0 else "below"
    later = f" A gap {side} its line speaks for a later end." if shrinks(pair) else ""
    judged = " A point misses where its interval leaves out 0." if check_words(pair) else ""
    return (
        f"Few seeds trained longest: these points are held out of the lines. {' '.join(off)}{judged}{later}"
    )


def seeds_of(gap: Gap) -> str:
    return "one seed" if len(gap.by_seed) == 1 else text.plural(len(gap.by_seed), "seed")


def stopped_words(pair: PairByTokens) -> str:
    """Where another curve of the rival was better until it stopped, in sentences; empty without any."""
    stopped = [(size.params, *size.stopped) for size in pair.sizes if size.stopped]
    return " ".join(
        f"At N = {text.count(params)} the {curve} was better, but stopped at D = {text.count(tokens)}."
        for params, curve, tokens in stopped
    )
