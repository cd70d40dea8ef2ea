"""How Transformers use context: a law in the token index for each size, and when each index is learned."""

from dataclasses import dataclass

import polars as pl

from isoloss import text
from isoloss.analysis.points import cooled_points, of_families
from isoloss.analysis.positions import PositionProfile, context_law, determined, profiles
from isoloss.errors import Refusal
from isoloss.laws import Fit, context_mean
from isoloss.records import StudyData

LEARNED = 0.9
"""A position counts as learned once it has this share of its whole improvement along the trunk."""


@dataclass(frozen=True)
class ContextSize:
    """One Transformer size; the context mean that its law implies should agree with the measured one."""

    profile: PositionProfile
    law: Fit | Refusal

    @property
    def measured_mean(self) -> float:
        return float(self.profile.mean_S(1, int(self.profile.position_T[-1])).mean())

    @property
    def implied_mean(self) -> float | None:
        if isinstance(self.law, Refusal):
            return None
        return context_mean(self.law, int(self.profile.position_T[-1]))


@dataclass(frozen=True)
class Contexts:
    """``steps``: the largest size's trunk, mean loss by training step and octave of the token index."""

    tokens: int
    context: int
    sizes: tuple[ContextSize, ...]
    steps: pl.DataFrame
    largest: int


def measure(study: StudyData) -> Contexts:
    """Raises Refusal without a finished Transformer."""
    points = of_families(cooled_points(study.table()), "transformer")
    tokens = int(points["tokens"].to_numpy().max())
    everyone = profiles(study, points.filter(pl.col("tokens") == tokens))
    sizes = tuple(ContextSize(profile, context_law(profile)) for profile in everyone)
    largest = sizes[-1].profile
    return Contexts(tokens, int(largest.position_T[-1]), sizes, steps_of(study, largest), largest.params)


def steps_of(study: StudyData, largest: PositionProfile) -> pl.DataFrame:
    """Trunk losses of the largest size by run, step and octave of positions (1, 2, 3-4, 5-8, ...)."""
    rows = study.positions().filter(
        pl.col("run_id").is_in(largest.run_ids)
        & ~pl.col("cooled")
        & (pl.col("part") == "exit_1")
        & (pl.col("step") > 0)
    )
    octave = (pl.col("position").log(2) - 1e-9).ceil().cast(pl.Int64).alias("octave")
    return (
        rows.group_by("run_id", "step", octave)
        .agg(
            (pl.col("sum").sum() / pl.col("count").sum()).alias("loss"),
            pl.col("position").min().alias("from_token"),
            pl.col("position").max().alias("to_token"),
        )
        .sort("octave", "run_id", "step")
        .drop("octave")
    )


def law_verdict(data: Contexts) -> str:
    """How the exponent moves with N, if the laws allow the comparison."""
    laws = [(size.profile.params, size.law) for size in data.sizes]
    fits = [(params, law) for params, law in laws if isinstance(law, Fit) and determined(law)]
    if len(fits) < 2:
        share = f"{len(fits)} of {len(data.sizes)}"
        return f"{share} sizes have a context law that the data determine, so no trend with N is stated"
    (small, first), (large, last) = fits[0], fits[-1]
    apart = exponents_apart(first, last)
    trend = "the exponents' intervals do not overlap" if apart else "their intervals overlap"
    return (
        f"the exponent of context is {exponent_words(first)} at N = {text.count(small)} and "
        f"{exponent_words(last)} at "
        f"N = {text.count(large)}" + ("; one seed gives no interval" if apart is None else f"; {trend}")
    )


def exponent_words(law: Fit) -> str:
    ends = law.intervals["p"]
    if ends is None or None in ends:
        return f"{law.params['p']:.2f}"
    return f"{law.params['p']:.2f} ({text.interval(ends, '{:.2f}'.format)})"


def exponents_apart(first: Fit, last: Fit) -> bool | None:
    """True if the two intervals of p are disjoint; None if one is missing."""
    ends = [law.intervals["p"] or (None, None) for law in (first, last)]
    (low, high), (other_low, other_high) = ends
    if low is None or high is None or other_low is None or other_high is None:
        return None
    return high < other_low or other_high < low


def learning_step(steps: pl.DataFrame) -> int:
    """The first recorded step by which one curve had LEARNED of its whole improvement."""
    first, last = steps["loss"][0], steps["loss"].min()
    return int(steps.filter(pl.col("loss") <= first - LEARNED * (first - last))["step"][0])


def steps_verdict(data: Contexts) -> str:
    """Whether the first token is learned before the last ones, seed by seed."""
    first, last = data.steps["from_token"].min(), data.steps["from_token"].max()
    pairs = [
        tuple(learning_step(run.filter(pl.col("from_token") == token)) for token in (first, last))
        for _, run in data.steps.group_by("run_id", maintain_order=True)
    ]
    early, late = (text.listed(sorted({str(pair[i]) for pair in pairs}, key=int)) for i in (0, 1))
    steps = (
        f"token {first} has {text.percent(LEARNED)} of its improvement by step {early}, "
        f"tokens {last} to {data.context} by step {late}"
    )
    if len(pairs) == 1:
        return f"in the one seed trained, {steps}"
    count = sum(pair[0] < pair[1] for pair in pairs)
    return f"early tokens are learned before late ones in {count or 'none'} of {len(pairs)} seeds: {steps}"
