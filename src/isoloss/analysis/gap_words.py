"""What the gap between two families does with training tokens, in sentences."""

from isoloss import text
from isoloss.analysis.families import name_of
from isoloss.analysis.gap_by_tokens import PairByTokens
from isoloss.stats import Interval


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
    ahead = name_of(pair.versus.rival if pair.lead > 0 else pair.versus.reference)
    if not pair.lead:
        moves = "falls" if pair.change < 0 else "rises"
        return f"{names} {moves} by {size_words(pair.slope)} {pair.doubling}"
    moves = "grows" if pair.change == pair.lead else "shrinks"
    mean = "" if pair.shared else "mean "
    return f"the {ahead}'s {mean}lead {moves} {size_words(pair.slope)} {pair.doubling}"


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


def crossing_words(pair: PairByTokens) -> str:
    """Where a lead that shrinks is gone, as a sentence without its full stop; empty where none shrinks."""
    if not pair.change or pair.change != -pair.lead:
        return ""
    most = max(size.fitted for size in pair.sizes)
    zeros = [(size.zero, size) for size in pair.sizes if size.zero is not None]
    if not zeros:
        return f"It ends at no size by {text.count(most)} tokens"
    zero, size = min(zeros, key=lambda each: each[0].value)
    where = f"{text.count(zero.value)} tokens ({text.interval(zero.ends, text.count)})"
    ends = "end" if zero.value <= max(size.gaps) else "would end"
    return f"{text.count(size.params)} parameters {ends} it at {where}"


def beyond_words(pair: PairByTokens) -> str:
    """How far off their lines those gaps lie that no line was fitted to, in sentences; empty without any."""
    off = [
        f"At N = {text.count(size.params)} and D = {text.count(tokens)} the gap lies "
        f"{text.signed(gap.difference.value - float(size.at(tokens)))} nats off its line."
        for size in pair.sizes
        for tokens, gap in size.gaps.items()
        if tokens > size.fitted
    ]
    return " ".join(["Few seeds trained longest; no line was fitted there.", *off]) if off else ""


def single_words(pair: PairByTokens) -> str:
    """Which sizes have one seed, as a sentence; empty without any."""
    single = [text.count(size.params) for size in pair.sizes if len(size.gaps[size.fitted].by_seed) == 1]
    known = len(single) < len(pair.sizes) and single
    return (
        f"One seed alone at N = {text.listed(single)}: its noise is that of the other sizes." if known else ""
    )


def stopped_words(pair: PairByTokens) -> str:
    """Where another curve of the rival was better until it stopped, in sentences; empty without any."""
    stopped = [(size.params, *size.stopped) for size in pair.sizes if size.stopped]
    return " ".join(
        f"At N = {text.count(params)} the {curve} was better, but stopped at D = {text.count(tokens)}."
        for params, curve, tokens in stopped
    )
