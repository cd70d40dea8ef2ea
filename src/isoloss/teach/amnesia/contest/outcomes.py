"""From looks to outcomes: where each seed ended, how soon it got there, a side's best rate, who is ahead."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from statistics import fmean, median

import numpy as np
import polars as pl
from scipy.stats import PermutationMethod, mannwhitneyu

from isoloss.distributions import t_quantile
from isoloss.stats import LEVEL, Interval, difference, share
from isoloss.teach.amnesia.names import BIAS_1, BIAS_3, BLOCK, CHRONO, DEFAULT
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Family
from isoloss.teach.shares import ENOUGH, span
from isoloss.teach.versus import Claim, Versus, family_of
from isoloss.text import percent, plural

SECOND_LOOK = 0.025
say = partial(say_of, "amnesia")
SPOKEN = {
    DEFAULT: "default LSTM",
    BIAS_1: "nudged LSTM",
    BIAS_3: "LSTM told to remember",
    CHRONO: "LSTM with many clocks",
    BLOCK: "attention",
}
"""The one name of each side, on slides and in the terminal; keys of panels.toml say what it stands for."""


def spoken(side: str) -> str:
    return SPOKEN.get(side, side)


@dataclass(frozen=True)
class Outcome:
    """One side at one rate: per seed the last share and the update that first reached ``ENOUGH``, if any.

    ``every``: updates between looks, which is how coarsely ``reached`` is known; ``last``: the latest update.
    """

    side: str
    params: int
    rate: float
    shares: list[Interval]
    reached: list[int | None]
    every: int
    last: int
    seed_numbers: list[int]

    @property
    def name(self) -> str:
        return spoken(self.side)

    @property
    def mean(self) -> float:
        return fmean(share.value for share in self.shares)

    @property
    def seeds(self) -> int:
        return len(self.shares)

    @property
    def strings(self) -> str:
        return f"n = {self.shares[0].n:,} unseen strings a seed"

    @property
    def span(self) -> str:
        """The lowest and the highest seed."""
        return span([share.value for share in self.shares])

    @property
    def arrived(self) -> list[int]:
        return [update for update in self.reached if update is not None]

    @property
    def all_arrived(self) -> bool:
        return len(self.arrived) == self.seeds

    @property
    def times(self) -> list[float]:
        """Updates to arrive by seed; infinite where not within the cap: later than any that did."""
        return [inf if update is None else float(update) for update in self.reached]

    @property
    def arrivals(self) -> str:
        when = f" (median {median(self.arrived):,.0f} updates)" if self.arrived else ""
        return f"{len(self.arrived)} of {plural(self.seeds, 'seed')}{when}"


def outcomes(curves: pl.DataFrame) -> dict[str, list[Outcome]]:
    """The sides of one cell, each with an outcome a rate."""
    by_side: dict[str, list[Outcome]] = {}
    for (side, _), rows in curves.group_by("side", "rate", maintain_order=True):
        looks = rows["update"].unique().sort().to_list()
        ends = (
            rows.sort("seed", "update")
            .group_by("seed", maintain_order=True)
            .agg(
                pl.col("value", "n").last(),
                pl.col("update").filter(pl.col("value") >= ENOUGH).first().alias("reached"),
            )
        )
        outcome = Outcome(
            side=str(side),
            params=rows["params"][0],
            rate=rows["rate"][0],
            shares=[share(round(value * n), n) for value, n in ends.select("value", "n").iter_rows()],
            reached=ends["reached"].to_list(),
            every=looks[1] - looks[0] if len(looks) > 1 else 0,
            last=looks[-1],
            seed_numbers=ends["seed"].to_list(),
        )
        by_side.setdefault(outcome.side, []).append(outcome)
    return by_side


def best(rates: Sequence[Outcome]) -> Outcome:
    """The rate of the highest mean share; where all seeds arrive, that of the fewest updates."""
    return max(rates, key=lambda o: (min(o.mean, ENOUGH), -median(o.arrived or [o.last]), o.mean))


def order_of_arrival(a: Outcome, b: Outcome) -> tuple[float, float]:
    """Mann and Whitney's U of ``a``'s times less that of equals, and p of a two-sided permutation test on it.

    Seeds that did not arrive tie for the last rank. Exact up to 9,999 ways to deal the seeds out to the
    sides; three seeds a side give no p below 0.1. Not paired: five pairs can be turned in 32 ways, none of
    them with p below 0.06.
    """
    test = mannwhitneyu(a.times, b.times, method=PermutationMethod(n_resamples=9_999, rng=0))
    return float(test.statistic) - a.seeds * b.seeds / 2, float(test.pvalue)


def gap(a: Outcome, b: Outcome, ours: Sequence[float], theirs: Sequence[float], least: float) -> Interval:
    """Mean of ours minus theirs, a value a seed; ``least``: the least variance of such a difference.

    Paired where both have the same seeds, since a seed fixes the strings that its two networks read.
    """
    if a.seed_numbers != b.seed_numbers:
        return difference(ours, theirs, floor=least / 2)
    return difference(np.subtract(ours, theirs), np.zeros(len(ours)), floor=(least, 0.0))


def verdict(a: Outcome, b: Outcome) -> Claim:
    """Which of two sides is ahead: by updates where all seeds arrived, else by the share at the end.

    The variance of an arrival is at least every^2 / 12, that of a reading known to one look. Where the shares
    leave it open, by the order of arrival, at half the error rate as it is the second look.
    """
    paired = ", paired" if a.seed_numbers == b.seed_numbers else " a side"
    basis = f"{plural(a.seeds, 'seed')}{paired}, {a.strings}"
    within = plural(max(a.last, b.last), "update")
    if a.all_arrived and b.all_arrived:
        sooner = gap(a, b, a.arrived, b.arrived, (a.every**2 + b.every**2) / 12)
        versus = Versus(a.name, b.name, sooner, better="less")
        text = versus.sentence(
            f"both reached 99%, it did so {versus.clause('updates sooner', basis)}",
            f": both reached 99%, {versus.clause('updates apart', basis)}",
            few=f": both reached 99%, {a.name} in {a.arrivals}, {b.name} in {b.arrivals} ({basis})",
        )
        won = f"The {{winner}} learns it {abs(sooner.value):.0f} updates sooner than the {{loser}}."
        lead = f"{abs(sooner.value):.0f} updates sooner"
        return Claim(text, versus.short(won, "Both learn it, alike."), between(a, b, versus.winner), lead)
    ours, theirs = ([share.value for share in side.shares] for side in (a, b))
    # What a side's strings leave open of a share, from Wilson's interval, which no seeds that agree can undo.
    unsure = sum(fmean((share.high - share.low) ** 2 for share in side.shares) for side in (a, b))
    # Shares differ by at most 100 points; a t interval does not know that.
    shares = gap(a, b, ours, theirs, unsure / (2 * t_quantile(LEVEL, inf)) ** 2).within(-1.0, 1.0)
    versus = Versus(a.name, b.name, shares, number=".1f", scale=100.0)
    if versus.sign == 0:
        later, p = order_of_arrival(a, b)
        first, second = (b, a) if later > 0 else (a, b)
        if p < SECOND_LOOK:
            text = say("by-order", first=first, second=second, within=within, p=p)
            short = f"The {first.name} gets there sooner than the {second.name}."
            lead = sooner_by(first, second)
            return Claim(text, short, between(a, b, first.name), lead)
    text = versus.sentence(
        versus.clause(f"points more right within {within}", basis),
        f" within {within}: {versus.clause('points of accuracy', basis)}",
        few=f" within {within}: {a.name} ended at {a.span}, {b.name} at {b.span} ({basis})",
    )
    ahead = a if versus.winner == a.name else b
    won = f"The {{winner}} gets {percent(ahead.mean, 0)} right; the {{loser}} lags."
    lead = f"{100 * abs(shares.value):.0f} points more right"
    return Claim(text, versus.short(won), between(a, b, versus.winner), lead)


def sooner_by(first: Outcome, second: Outcome) -> str:
    """By the medians over all seeds, where both have one; else by how many seeds arrived."""
    later = median(second.times) - median(first.times)
    if 0 < later < inf:
        return f"{later:.0f} updates sooner"
    return f"{len(first.arrived)} of {first.seeds} seeds, against {len(second.arrived)}"


def between(a: Outcome, b: Outcome, winner: str | None) -> Family:
    """The family that is ahead; none where both sides are of one family."""
    return "" if family_of(a.side) == family_of(b.side) else family_of(winner)


def course(rates: Sequence[Outcome]) -> str:
    """What one side did at its best rate, and how much the rate mattered."""
    side = best(rates)
    by_rate = ""
    if len(rates) > 1:
        each = sorted(rates, key=lambda outcome: outcome.rate)
        means = ", ".join(f"{percent(outcome.mean, 1)} at {outcome.rate:g}" for outcome in each)
        by_rate = f"; mean over seeds by learning rate: {means}"
    return f"{side.name} ({side.params:,} parameters, rate {side.rate:g}) {_arrival(side)}{by_rate}."


def _arrival(outcome: Outcome) -> str:
    end, seeds = f"ended at {outcome.span} ({outcome.strings})", plural(outcome.seeds, "seed")
    cap = plural(outcome.last, "update")
    if not outcome.arrived:
        return f"did not reach 99% within {cap} in any of {seeds}: it {end}"
    when = f"median after {median(outcome.arrived):,.0f} updates"
    reached = f"reached 99% in {len(outcome.arrived)} of {seeds}, {when}"
    if outcome.all_arrived:
        return f"{reached} ({outcome.strings})"
    return f"{reached}, in the others not within {cap}: it {end}"
