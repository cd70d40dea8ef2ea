"""Loss against the token's index in the context: what longer context gives one family and not another.

Every model of a study reads the same targets at every index, so the text's noise leaves the difference
between two indices, and between two models. Gains are counted by octaves of the index, from tokens 9-16 on:
before that families differ in how soon they learn pairs of words, which is no use of context.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis import by_params
from isoloss.analysis.by_params import NEAR, FamilyPair
from isoloss.analysis.families import Versus, name_of
from isoloss.analysis.points import means
from isoloss.analysis.sliding import SlidingProfile, block_mean, octaves, sliding_profiles
from isoloss.distributions import t_quantile
from isoloss.errors import Refusal, attempt
from isoloss.noise import nested_noise
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval, mean

PAIRS = 3
SEEDS = "seeds"
"""What intervals are over, where some pair has two."""
LARGEST_RATIO = 2.0
"""Two models farther apart in N than this factor are no pair."""
START = 16
"""Gains count from the octave that ends here."""
LEAST = 0.001
"""A doubling of the context that surely gives fewer nats gives nothing."""
LEFT = 0.01
"""A model is flat only where all that is left to gain is surely below so many nats."""


class Use(Enum):
    FLAT = "no later token gains"
    GAINS = "the last octave still gains"
    UNSURE = "the noise is too large to tell"


@dataclass(frozen=True)
class ContextUse:
    """``tokens``: the last octave of the token index that is seen to gain on the one before, else START's."""

    use: Use
    tokens: tuple[int, int]


@dataclass(frozen=True)
class PositionCurve:
    """One size of a curve, mean of its seeds. ``rows``: first, last, position, loss, low and high seed."""

    curve: str
    family: str
    params: int
    rows: pl.DataFrame
    context_use: ContextUse

    @property
    def name(self) -> str:
        return f"{self.curve} {text.count(self.params)}"


@dataclass(frozen=True)
class Pair:
    """Two models of like size, their runs paired by seed. Differences are reference minus rival, in nats.

    ``changes``: by octave, the difference there minus that at START: below 0 the reference gained more since.
    ``ends``: the difference at START and at the last octave.
    """

    reference: PositionCurve
    rival: PositionCurve
    changes: Mapping[tuple[int, int], Interval]
    ends: tuple[Interval, ...]

    @property
    def ratio(self) -> float:
        return self.rival.params / self.reference.params

    @property
    def change(self) -> Interval:
        """From START to the last octave."""
        return self.changes[max(self.changes)]


@dataclass(frozen=True)
class FamilyPositions:
    """Pairs of two families, smallest first. ``over``: what the intervals are over."""

    versus: Versus
    tokens: int
    context: int
    pairs: tuple[Pair, ...]
    over: str


@dataclass(frozen=True)
class ByPosition:
    pairs: Mapping[Versus, FamilyPositions | Refusal]


def measure(study: StudyData) -> ByPosition:
    """At the D of the comparison by size. Raises Refusal without a finished run, or a shared D."""
    by_size = by_params.measure(study)
    return ByPosition(
        {versus: attempt(of_families, study, by_size, versus) for versus in by_size.pairs},
    )


def of_families(study: StudyData, by_size: by_params.ByParams, versus: Versus) -> FamilyPositions:
    """Raises Refusal if a family is missing, no two sizes are alike, or their losses were not measured so."""
    pair_curves = by_size.pairs[versus]
    if isinstance(pair_curves, Refusal):
        raise pair_curves
    both = by_size.points.filter(pl.col("curve").is_in([pair_curves.reference, pair_curves.rival]))
    if both["context"].n_unique() > 1:
        raise Refusal("the two families were trained at different contexts", mend="use one context length")
    context = int(both["context"][0])
    ours = pl.col("curve") == pair_curves.reference
    points = by_size.points.filter(ours | (pl.col("family") == versus.rival), context=context)
    sizes = matched_sizes(points, pair_curves)
    pairs, over = sliding_pairs(sliding_profiles(study, points), pair_curves, sizes)
    return FamilyPositions(versus, by_size.tokens, context, pairs, over)


Size = tuple[str, int]
"""A curve and one of its N."""


def matched_sizes(points: pl.DataFrame, pair: FamilyPair) -> list[tuple[Size, Size]]:
    """Up to PAIRS, smallest first: each size of the reference with the rival's best curve of like size.

    Sizes within ``NEAR`` where there are any, else the nearest within ``LARGEST_RATIO``. Raises Refusal
    without any.
    """
    ours = points.filter(pl.col("curve") == pair.reference)["params"].unique().sort().to_list()
    theirs = means(points.filter(pl.col("family") == pair.versus.rival))
    for most in (NEAR, LARGEST_RATIO):
        alike = [(size, other) for size in ours if (other := like(size, theirs, most))]
        if alike:
            chosen = np.unique(np.linspace(0, len(alike) - 1, PAIRS).round().astype(int))
            return [((pair.reference, alike[i][0]), alike[i][1]) for i in chosen]
    raise Refusal(
        f"no {pair.reference} and {pair.rival} are within a factor {LARGEST_RATIO:g} in N",
        mend="add sizes that match",
    )


def like(params: int, theirs: pl.DataFrame, most: float) -> Size | None:
    """Of curves within the factor ``most`` the one of lowest loss; above ``NEAR`` the nearest one."""
    away = (pl.col("params") / params).log().abs()
    near = theirs.with_columns(away.alias("away")).filter(pl.col("away") <= np.log(most))
    best = near.sort("loss" if most <= NEAR else "away", "curve")[:1]
    return None if best.is_empty() else (best["curve"][0], best["params"][0])


def sliding_pairs(
    read: Sequence[SlidingProfile], pair: FamilyPair, sizes: Sequence[tuple[Size, Size]]
) -> tuple[tuple[Pair, ...], str]:
    """Each pair with its differences by octave, and what their intervals are over.

    Raises Refusal where the context ends before a gain could be counted.
    """
    runs: dict[Size, dict[int, SlidingProfile]] = {}
    for profile in read:
        runs.setdefault((profile.curve, profile.params), {})[profile.seed] = profile
    sizes = [two for two in sizes if all(size in runs for size in two)]
    ends = octaves(read[0].context)
    start = next((i for i, (_, last) in enumerate(ends[:-1]) if last == START), None)
    if start is None or not sizes:
        what = f"a context of {ends[-1][1]} is too short" if sizes else "no pair was measured"
        raise Refusal(what, mend="use a context of 32 or more, and targets for every size")
    gaps = {two: seed_differences(runs[two[0]], runs[two[1]], ends) for two in sizes}
    curves: dict[Size, PositionCurve] = {}
    for curve, params in (size for two in sizes for size in two):
        family = pair.versus.reference if curve == pair.reference else pair.versus.rival
        seeds = runs[curve, params]
        use = use_of(seeds.values(), ends)
        curves[curve, params] = PositionCurve(curve, family, params, seed_rows(seeds), use)
    pairs = tuple(pair_of(curves[two[0]], curves[two[1]], gaps, two, ends, start) for two in sizes)
    most = max(len(gap_SOB) for gap_SOB in gaps.values())
    return pairs, SEEDS if most > 1 else "blocks of text, for one pair of runs"


def pair_of(
    ours: PositionCurve,
    theirs: PositionCurve,
    gaps: Mapping[tuple[Size, Size], np.ndarray],
    two: tuple[Size, Size],
    ends: Sequence[tuple[int, int]],
    start: int,
) -> Pair:
    """Two models with the change of their difference from octave ``start``; ``gaps`` tell the noise."""
    changes = {
        octave: interval_of({each: gap[:, i] - gap[:, start] for each, gap in gaps.items()}, two)
        for i, octave in enumerate(ends)
        if i != start
    }
    level = [interval_of({each: gap[:, i] for each, gap in gaps.items()}, two) for i in (start, -1)]
    return Pair(ours, theirs, changes, tuple(level))


def seed_differences(
    ours: Mapping[int, SlidingProfile], theirs: Mapping[int, SlidingProfile], ends: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Ours minus theirs (S, O, B) of runs of one seed, or as they come, by octave and block."""
    both = [(seed, seed) for seed in ours if seed in theirs] or list(zip(ours, theirs, strict=False))
    return np.array(
        [[ours[a].mean_B(*octave) - theirs[b].mean_B(*octave) for octave in ends] for a, b in both]
    )


def interval_of(values_SB: Mapping[tuple[Size, Size], np.ndarray], two: tuple[Size, Size]) -> Interval:
    """Over seeds where some pair has two, their noise as ``nested_noise`` pools it; else over blocks."""
    noise = nested_noise({(*theirs,): own.mean(axis=1) for (_, theirs), own in values_SB.items()})
    if isinstance(noise, Refusal):
        return block_mean(values_SB[two].mean(axis=0))
    return mean(values_SB[two].mean(axis=1), noise=noise[(*two[1],)])


def seed_rows(runs: Mapping[int, SlidingProfile]) -> pl.DataFrame:
    """By group of positions: the mean of the seeds, the lowest and the highest."""
    one, loss_SG = next(iter(runs.values())), np.array([run.loss_GB.mean(axis=1) for run in runs.values()])
    columns = {"first": one.first_G, "last": one.last_G, "position": one.position_G}
    return pl.DataFrame(
        {**columns, "loss": loss_SG.mean(axis=0), "low": loss_SG.min(axis=0), "high": loss_SG.max(axis=0)}
    )


def use_of(seeds: Iterable[SlidingProfile], ends: Sequence[tuple[int, int]]) -> ContextUse:
    """Up to where the mean of the seeds gains, octave by octave after START.

    A gain is seen if it exceeds ``LEAST`` by c standard errors over blocks, c being the t quantile at which
    noise alone makes any of the looks see one in 1 - LEVEL of all cases.
    """
    after = [i for i, (_, last) in enumerate(ends) if last > START]
    loss_OB = np.mean([[run.mean_B(*octave) for octave in ends] for run in seeds], axis=0)
    blocks = loss_OB.shape[1]
    c = t_quantile(1 - 2 * (1 - LEVEL) / len(after), blocks - 1)

    def bounds(gain_B: np.ndarray) -> tuple[float, float]:
        reach = c * float(gain_B.std(ddof=1)) / blocks**0.5
        return float(gain_B.mean()) - reach, float(gain_B.mean()) + reach

    seen = [i for i in after if bounds(loss_OB[i - 1] - loss_OB[i])[0] > LEAST]
    last = max(seen, default=after[0] - 1)
    if last == after[-1]:
        return ContextUse(Use.GAINS, ends[last])
    flat = bounds(loss_OB[last] - loss_OB[-1])[1] < LEFT
    return ContextUse(Use.FLAT if flat else Use.UNSURE, ends[last])


def flat_by(model: PositionCurve) -> int | None:
    """The token index after which the model gains no more, where it is seen to be flat."""
    use = model.context_use
    return use.tokens[1] if use.use is Use.FLAT else None


def use_words(use: ContextUse) -> str:
    """Where one model stops improving, as a clause."""
    if use.use is Use.FLAT:
        return f"gains next to nothing after token {use.tokens[1]}"
    if use.use is Use.GAINS:
        return f"still gains at tokens {use.tokens[0]}–{use.tokens[1]}"
    return "is too noisy to say where it stops improving"


def verdict(data: FamilyPositions) -> str:
    """Which family gains more from context, by the largest pair, in one clause."""
    pair = data.pairs[-1]
    names, change, span = data.versus.words, pair.change, f"after token {START}"
    if not change.sign:
        return f"this cannot tell whose loss falls more {span}: {names} changes by {text.difference(change)}"
    more, less = (data.versus.reference, data.versus.rival)[:: -change.sign]
    low, high = sorted((abs(change.low), abs(change.high)))
    seeds = " (one seed)" if data.over != SEEDS or change.n == 1 else ""
    return (
        f"{span} the {name_of(more)} gains {text.loss(abs(change.value))} nats "
        f"({text.interval((low, high), text.loss)}) more than the {name_of(less)} at N = "
        f"{text.count(pair.reference.params)}{seeds}"
    )


def gaps_table(data: FamilyPositions) -> pl.DataFrame:
    """Reference minus rival by octave, since the octave START."""
    rows = [
        (pair.reference.params, pair.rival.curve, pair.rival.params, *octave, change.value, *change.ends)
        for pair in data.pairs
        for octave, change in pair.changes.items()
    ]
    whole = dict.fromkeys(("params", "rival", "rival_params", "from_token", "to_token"), pl.Int64)
    kinds = whole | {"rival": pl.String} | dict.fromkeys(("change", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")
