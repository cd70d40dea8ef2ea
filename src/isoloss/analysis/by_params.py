"""Loss against non-embedding parameters N at one D: which family is ahead, and where the curves cross."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.families import Versus, compared, of_pair, pairs
from isoloss.analysis.points import (
    EQUAL_DEPTH,
    Curve,
    best_curve,
    curves_of,
    main_tokens,
    of_families,
    points_of,
)
from isoloss.errors import Refusal, attempt
from isoloss.laws import Crossing, Fit, crossing
from isoloss.noise import Key, nested_noise
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval, Noise, mean, t_interval

NEAR = 1.1
"""Sizes within this factor match: they are compared without a larger and a smaller one."""

Losses = dict[int, dict[int, float]]
"""Of one curve: loss by size and seed."""


@dataclass(frozen=True)
class Gap:
    """Reference minus ``curve``, a curve of the rival, in nats at N = ``params``: by seed, and their mean."""

    curve: str
    params: int
    by_seed: Mapping[int, float]
    difference: Interval


@dataclass(frozen=True)
class FamilyPair:
    """Two families at one D: the best curve of the reference against every curve of the rival.

    ``rival``: of these the one compared at most sizes, then with the lowest loss: the one whose law is said
    to cross. ``noise``: of one difference, by the rival, its curve and N. ``by_total``: the same at equal
    total parameters, with embeddings and heads, where ``measure`` was asked.
    """

    versus: Versus
    tokens: int
    reference: str
    rival: str
    noise: dict[Key, Noise] | Refusal
    gaps: tuple[Gap, ...]
    fits: Mapping[str, Fit | Refusal]
    by_total: "FamilyPair | None" = None

    @property
    def headline_gaps(self) -> list[Gap]:
        """At each size against the best curve of the rival.

        The intervals of all gaps hold together, so that the best may be picked.
        """
        ascending = sorted(self.gaps, key=lambda gap: gap.difference.value)
        best = {gap.params: gap for gap in ascending}
        count = len(self.gaps)
        return [
            replace(best[size], difference=bonferroni(best[size].difference, count)) for size in sorted(best)
        ]

    @property
    def best_rival(self) -> str:
        """The curve that is the rival's best at every size, else its family."""
        curves = {gap.curve for gap in self.headline_gaps}
        return curves.pop() if len(curves) == 1 else self.versus.rival

    @cached_property
    def crossings(self) -> Mapping[str, Crossing | Refusal]:
        """Where the reference's law meets that of each curve of the rival."""
        ours = self.fits[self.reference]
        return {name: meeting(ours, law) for name, law in self.fits.items() if name != self.reference}


@dataclass(frozen=True)
class ByParams:
    """Every family at the same ``tokens``, and each pair of them, or why it is not compared."""

    tokens: int
    points: pl.DataFrame
    curves: tuple[Curve, ...]
    pairs: Mapping[Versus, FamilyPair | Refusal]


def measure(study: StudyData) -> ByParams:
    """At the D of ``main_tokens``. Raises Refusal without a finished run, or a shared D."""
    points, families = family_points(study)
    tokens = main_tokens(points)
    measured, total = at_tokens(points, families, tokens), by_total_params(points, families, tokens)
    both = {
        versus: replace(pair, by_total=total[versus]) if isinstance(pair, FamilyPair) else pair
        for versus, pair in measured.pairs.items()
    }
    return replace(measured, pairs=both)


def by_total_params(
    points: pl.DataFrame, families: tuple[str, ...], tokens: int
) -> dict[Versus, FamilyPair | None]:
    """Each pair at equal total parameters, no laws fitted; None where it is not compared so."""
    points = points.filter(pl.col("tokens") == tokens).with_columns(params=pl.col("params_total"))
    best = {family: best_curve(points, family) for family in points["family"].unique()}
    names = points.select("curve", "family").unique(maintain_order=True).iter_rows()
    bare = tuple(Curve(name, family, points, Refusal("not asked")) for name, family in names)
    compared = {pair: attempt(compare, pair, best, points, bare) for pair in pairs(families)}
    return {versus: None if isinstance(pair, Refusal) else pair for versus, pair in compared.items()}


def family_points(study: StudyData) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The cooled points of the families that the study compares, and these, finished or not."""
    points, families = points_of(study), compared(study)
    points = points.filter(pl.col("family").is_in(families), ~pl.col("curve").str.ends_with(EQUAL_DEPTH))
    if points.is_empty():
        raise Refusal(f"no {text.listed(families)} run has finished", mend="let the study run on")
    return points, families


def at_tokens(points: pl.DataFrame, families: tuple[str, ...], tokens: int) -> ByParams:
    """The comparison at one D, from the cooled points of all families.

    A reference's curve is its best at the D of ``measure``, whatever the D.
    """
    main = points.filter(pl.col("tokens") == main_tokens(points))
    best = {family: best_curve(main, family) for family in main["family"].unique()}
    points = points.filter(pl.col("tokens") == tokens)
    curves = curves_of(points)
    return ByParams(
        tokens=tokens,
        points=points,
        curves=curves,
        pairs={pair: attempt(compare, pair, best, points, curves) for pair in pairs(families)},
    )


def compare(
    versus: Versus, best: Mapping[str, str], points: pl.DataFrame, curves: tuple[Curve, ...]
) -> FamilyPair:
    """One pair at one D. Raises Refusal if one of the two has no run there."""
    points = of_pair(points, versus)
    reference = best[versus.reference]
    fits = {each.name: each.fit for each in curves if each.family == versus.rival}
    ours = losses_of(points, reference)
    gaps = {name: seed_gaps(ours, losses_of(points, name)) for name in fits}
    noise = nested_noise(
        {
            (versus.rival, name, params): list(seeds.values())
            for name in fits
            for params, seeds in gaps[name].items()
        }
    )
    sums = {name: [float(np.mean(list(seeds.values()))) for seeds in gaps[name].values()] for name in fits}
    rival = max(fits, key=lambda name: (len(sums[name]), sum(sums[name])))
    return FamilyPair(
        versus=versus,
        tokens=int(points["tokens"][0]),
        reference=reference,
        rival=rival,
        noise=noise,
        gaps=tuple(
            Gap(name, params, by_seed, mean_gap(by_seed, noise, (versus.rival, name, params)))
            for name in fits
            for params, by_seed in gaps[name].items()
        ),
        fits=fits | {each.name: each.fit for each in curves if each.name == reference},
    )


def bonferroni(one: Interval, count: int) -> Interval:
    """As one of ``count`` that hold together at its level (Bonferroni); itself where it has none."""
    if not one.df:
        return one
    known = t_interval(one.value, one.se, one.n, one.df, 1 - (1 - one.level) / count)
    return replace(known, level=one.level)


def losses_of(points: pl.DataFrame, curve: str) -> Losses:
    """Of a curve at one D."""
    losses: Losses = {}
    rows = points.filter(pl.col("curve") == curve).sort("params", "seed").select("params", "seed", "loss")
    for params, seed, loss in rows.iter_rows():
        losses.setdefault(params, {})[seed] = loss
    return losses


def seed_gaps(ours: Losses, theirs: Losses) -> Losses:
    """Ours minus theirs at each of our sizes within theirs, give or take ``NEAR``, seed by seed.

    Runs of one seed read the same text in the same order, so their difference has less noise than either.
    Where no seed is shared, seeds are paired as they come.
    """
    gaps: Losses = {}
    for params, losses in ours.items() if theirs else ():
        if not min(theirs) / NEAR <= params <= max(theirs) * NEAR:
            continue
        other = moved(theirs, params)
        shared = [(seed, seed) for seed in losses if seed in other] or list(zip(losses, other, strict=False))
        gaps[params] = {seed: losses[seed] - other[its] for seed, its in shared}
    return gaps


def moved(losses: Losses, params: int) -> dict[int, float]:
    """Losses by seed at the nearest size, moved to N = ``params`` on the line in log N to the next size.

    A curve bends little over that distance, so seeds dominate the error.
    """
    sizes = np.array(list(losses))
    if len(sizes) == 1:
        return losses[int(sizes[0])]
    above = min(max(int(np.searchsorted(sizes, params)), 1), len(sizes) - 1)
    near, far = sorted(sizes[above - 1 : above + 1].tolist(), key=lambda size: abs(np.log(size / params)))
    share = float(np.log(params / near) / np.log(far / near))
    middle = float(np.mean(list(losses[far].values())))
    return {
        seed: loss + share * (losses[far].get(seed, middle) - loss) for seed, loss in losses[near].items()
    }


def fall(data: ByParams, family: str) -> tuple[str, int, int, Interval]:
    """A family's best curve, its smallest and largest N, and by how many nats the loss falls between them.

    Seeds are paired as in ``seed_gaps``. Raises Refusal for a family without two sizes.
    """
    points = of_families(data.points, family)
    curve = best_curve(points, family)
    losses = losses_of(points, curve)
    small, large = min(losses), max(losses)
    if small == large:
        raise Refusal(f"{curve} has one size alone", mend="train two sizes or more")
    falls = seed_gaps({large: losses[small]}, {large: losses[large]})[large]
    return curve, small, large, mean(list(falls.values()))


def mean_gap(by_seed: Mapping[int, float], noise: dict[Key, Noise] | Refusal, key: Key) -> Interval:
    return mean(list(by_seed.values()), noise=None if isinstance(noise, Refusal) else noise[key])


def meeting(ours: Fit | Refusal, theirs: Fit | Refusal) -> Crossing | Refusal:
    """Where two laws meet, or the refusal of the first that has none."""
    if isinstance(ours, Refusal):
        return ours
    if isinstance(theirs, Refusal):
        return theirs
    if ours.covariance is None or theirs.covariance is None:
        return Refusal("a curve through sizes has no interval", mend="add sizes, until its law is determined")
    return crossing(ours, theirs, "params", level=LEVEL)


def gaps_table(pair: FamilyPair) -> pl.DataFrame:
    """Reference minus rival at equal N, for every curve of the rival."""
    rows = [(gap.curve, gap.params, gap.difference.value, *gap.difference.ends) for gap in pair.gaps]
    kinds = {"curve": pl.String, "params": pl.Int64}
    kinds |= dict.fromkeys(("difference", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")
