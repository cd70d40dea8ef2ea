"""How the difference between two families changes with training tokens D, and where it is gone.

At each N the difference of the losses is a line in log2 D, or on the scale of ``bent_scale`` where the seeds
show a bend, fitted seed by seed to the D that they share:

    gap(D) = a + b (u(D) - middle)        b: nats per doubling of D, the last one on a bent scale

Its error has two parts: the spread between the seeds' lines, pooled over sizes, and how far the means lie
from their line. Where the sizes' slopes are not told apart they share one. The interval of the D at which a
line is zero is Fieller's (1954), every D at which it may be, over every bend that the seeds allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.analysis.bent_scale import Scale, scale_of
from isoloss.analysis.by_params import ByParams, FamilyPair, Gap, at_tokens, family_points
from isoloss.analysis.families import Versus, pairs
from isoloss.analysis.points import shared_tokens
from isoloss.analysis.straight_lines import Line, fitted_lines, line_through, one_slope
from isoloss.errors import Refusal, attempt
from isoloss.records import StudyData
from isoloss.stats import Interval, t_interval

Seeds = tuple[list[int], NDArray[np.float64]]
"""The D that a size's seeds share, and their differences (S, K)."""
Lines = tuple[Scale, tuple[Line, ...]]
"""A line a size, straight on the scale."""
LEAST = 0.0005
"""A change of fewer nats is none in the digits that losses are printed with."""
FAR = 4.0
"""A crossing farther than this factor from the tokens trained is not in sight."""


@dataclass(frozen=True)
class SizeGaps:
    """The gaps of one size of the reference against the best curve of the rival, by D.

    ``line``: on the ``scale`` of D, up to ``fitted``: a longer D of fewer seeds stands beside it. ``zero``:
    the D where it is zero, None where its interval has no end, or it is not in sight of the tokens trained.
    ``checks``: by longer D, how far the gap there lies off the line, with all the noise of both.
    ``stopped``: a curve of the rival that was better where it stopped earlier, with that D.
    """

    params: int
    curve: str
    gaps: Mapping[int, Gap]
    line: Line
    scale: Scale
    fitted: int
    zero: Interval | None
    checks: Mapping[int, Interval]
    stopped: tuple[str, int] | None = None

    def at(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """The line's difference."""
        return self.line.at(self.scale.at(tokens))

    def ends(self, tokens: int) -> tuple[float | None, float | None]:
        """Of a gap's interval. Beyond the line it holds the noise of both: a miss leaves the line out."""
        check = self.checks.get(tokens)
        if check is None or check.interval is None:
            return self.gaps[tokens].difference.ends
        line = float(self.at(tokens))
        return line + check.low, line + check.high

    @property
    def seeds(self) -> int:
        """Behind its line."""
        return len(self.gaps[self.fitted].by_seed)

    @property
    def slope(self) -> Interval:
        """Nats for a doubling of D, for the last one where the line is bent."""
        return scaled(self.line.change(), self.scale.doubling)


@dataclass(frozen=True)
class PairByTokens:
    """``slope``: change of the gap with a doubling of D, ``shared`` by all sizes or their average; ``bent``:
    with the last doubling, since it flattens or grows steeper.

    ``level_at``: the N at which the two families are level, by D, where it lies within the sizes.
    """

    versus: Versus
    sizes: tuple[SizeGaps, ...]
    slope: Interval
    shared: bool
    level_at: Mapping[int, Interval]

    @property
    def bent(self) -> bool:
        return any(size.scale.power for size in self.sizes)

    @property
    def doubling(self) -> str:
        last = self.sizes[0].scale.last
        if self.bent:
            return f"from {text.count(last / 2)} to {text.count(last)} tokens"
        return "per doubling of D"

    @property
    def checks(self) -> list[Interval]:
        """Of all sizes; one whose interval leaves out 0 missed."""
        return [check for size in self.sizes for check in size.checks.values()]

    @property
    def change(self) -> int | None:
        """The sign of the slope; 0 where it is not told from 0, None without a seed noise."""
        return 0 if self.slope.sign and abs(self.slope.value) < LEAST else self.slope.sign

    @property
    def lead(self) -> int:
        """Who is ahead at the fewest tokens of every size: 1 the rival, -1 the reference, 0 neither."""
        signs = {size.gaps[min(size.gaps)].difference.sign for size in self.sizes}
        return signs.pop() or 0 if len(signs) == 1 else 0


@dataclass(frozen=True)
class GapByTokens:
    """``each``: the comparison at every D that two families reached, ascending."""

    each: tuple[ByParams, ...]
    pairs: Mapping[Versus, PairByTokens | Refusal]


def measure(study: StudyData) -> GapByTokens:
    """Raises Refusal without a finished run, or a shared D."""
    points, families = family_points(study)
    reached = reached_by_two(points) or shared_tokens(points)
    each = tuple(at_tokens(points, families, tokens) for tokens in reached)
    return GapByTokens(each, {versus: attempt(pair_of, each, versus) for versus in pairs(families)})


def reached_by_two(points: pl.DataFrame) -> list[int]:
    """Every D that two families reached, ascending: a third one takes nothing from their comparison."""
    families = points.group_by("tokens").agg(pl.col("family").n_unique())
    return families.filter(pl.col("family") > 1)["tokens"].sort().to_list()


def pair_of(each: tuple[ByParams, ...], versus: Versus) -> PairByTokens:
    """Raises Refusal if a family is missing, or no size has two D."""
    by_tokens = {data.tokens: data.pairs[versus] for data in each}
    known = {tokens: pair for tokens, pair in by_tokens.items() if isinstance(pair, FamilyPair)}
    for refused in by_tokens.values() if not known else ():
        if isinstance(refused, Refusal):
            raise refused
    chosen = gaps_by_size(known)
    if not chosen:
        raise Refusal(
            f"no size of the {versus.reference} is compared with the {versus.rival} at two numbers of tokens",
            mend="give the study two D points or more, and sizes that match",
        )
    seeds = [by_seed(gaps) for gaps in chosen.values()]
    scale = scale_of(seeds)
    lines = lines_on(scale, seeds)
    common = one_slope(lines)
    fits = fits_on(scale, seeds)
    sizes = tuple(
        SizeGaps(
            params,
            next(iter(gaps.values())).curve,
            gaps,
            line,
            scale,
            tokens[-1],
            in_sight(zero_on(fits, index), list(gaps), FAR),
            {longer: check_on(fits, index, tokens, gaps, longer) for longer in gaps if longer > tokens[-1]},
            better_before(known, params, gaps),
        )
        for index, ((params, gaps), line, (tokens, _)) in enumerate(
            zip(chosen.items(), common or lines, seeds, strict=True)
        )
    )
    level_at = {tokens: level for tokens in known if (level := level_size(sizes, tokens)) is not None}
    slope = scaled(average_slope(lines, common), scale.doubling)
    return PairByTokens(versus, sizes, slope, common is not None, level_at)


def lines_on(scale: Scale, seeds: Sequence[Seeds]) -> tuple[Line, ...]:
    return fitted_lines([(scale.at(tokens), gaps_SK) for tokens, gaps_SK in seeds])


def fits_on(scale: Scale, seeds: Sequence[Seeds]) -> list[Lines]:
    """On the scale, and on those at the ends of the bends that the seeds allow."""
    fits = [(at, lines_on(at, seeds)) for at in (scale, *scale.at_ends())]
    return [(at, one_slope(lines) or lines) for at, lines in fits]


def zero_on(fits: Sequence[Lines], size: int) -> Interval | None:
    """The D at which the line of a size is zero, with every D at which it may be over all bends allowed.

    None where one of them has no such D.
    """
    return around([at.tokens(lines[size].zero()) for at, lines in fits])


def check_on(
    fits: Sequence[Lines], size: int, fitted: Sequence[int], gaps: Mapping[int, Gap], tokens: int
) -> Interval:
    """How far a gap that no line was fitted to lies off the line of its size, over all bends allowed."""
    held, gap = gaps[tokens].by_seed, gaps[tokens].difference.value
    shared = len(set(held).intersection(*(gaps[D].by_seed for D in fitted)))
    return outmost([lines[size].off(float(at.at(tokens)), gap, len(held), shared) for at, lines in fits])


def around(places: Sequence[Interval | None]) -> Interval | None:
    """The first place with the outmost ends of all; None where one is none."""
    known = [place for place in places if place is not None]
    return outmost(known) if len(known) == len(places) else None


def outmost(known: Sequence[Interval]) -> Interval:
    """The first with the outmost ends of all."""
    return replace(known[0], low=min(one.low for one in known), high=max(one.high for one in known))


def scaled(change: Interval, factor: float) -> Interval:
    ends = {name: factor * getattr(change, name) for name in ("value", "low", "high", "se")}
    return replace(change, **ends)


def gaps_by_size(by_tokens: Mapping[int, FamilyPair]) -> dict[int, dict[int, Gap]]:
    """By N and D, for sizes compared at two D: against the curve that is the rival's best at the last."""
    best: dict[int, dict[int, Gap]] = {}
    for (params, _), gap in sorted(gaps_by_curve(by_tokens).items()):
        if len(gap) > 1 and (params not in best or longest(gap) > longest(best[params])):
            best[params] = gap
    return best


def gaps_by_curve(by_tokens: Mapping[int, FamilyPair]) -> dict[tuple[int, str], dict[int, Gap]]:
    """By N and curve of the rival: by D."""
    gaps: dict[tuple[int, str], dict[int, Gap]] = {}
    for tokens, pair in by_tokens.items():
        for gap in pair.gaps:
            gaps.setdefault((gap.params, gap.curve), {})[tokens] = gap
    return gaps


def better_before(
    by_tokens: Mapping[int, FamilyPair], params: int, chosen: Mapping[int, Gap]
) -> tuple[str, int] | None:
    """A curve that reached fewer D than the chosen one and was ahead of it at its last."""
    ends = [
        (curve, max(gaps), gaps[max(gaps)])
        for (size, curve), gaps in gaps_by_curve(by_tokens).items()
        if size == params and max(gaps) < max(chosen)
    ]
    better = [
        (curve, last)
        for curve, last, gap in ends
        if last in chosen and gap.difference.value > chosen[last].difference.value
    ]
    return max(better, key=lambda each: each[1], default=None)


def longest(gaps: Mapping[int, Gap]) -> tuple[int, float]:
    """The last D and the gap there: a rival that stops earlier must not hide one that goes on."""
    return max(gaps), gaps[max(gaps)].difference.value


def by_seed(gaps: Mapping[int, Gap]) -> tuple[list[int], np.ndarray]:
    """The D from the first to one that the most seeds share, counted seeds x D, and their gaps (S, K).

    Of the means, where no two D share a seed.
    """
    tokens = sorted(gaps)
    seeds = {
        n: set.intersection(*(set(gaps[D].by_seed) for D in tokens[:n])) for n in range(2, len(gaps) + 1)
    }
    most = max(seeds, key=lambda n: (n * len(seeds[n]), n))
    if not seeds[most]:
        return tokens, np.array([[gaps[D].difference.value for D in tokens]])
    used = tokens[:most]
    return used, np.array([[gaps[D].by_seed[seed] for D in used] for seed in sorted(seeds[most])])


def average_slope(lines: tuple[Line, ...], common: tuple[Line, ...] | None) -> Interval:
    if common is not None:
        return common[0].change()
    variance = sum(line.covariance[1, 1] for line in lines) / len(lines) ** 2
    slope = float(np.mean([line.slope for line in lines]))
    return t_interval(slope, float(np.sqrt(variance)), len(lines), lines[0].df)


def level_size(sizes: Sequence[SizeGaps], tokens: int) -> Interval | None:
    """N at which the gap is zero at this D, from its line in log N; None where it may be anywhere."""
    gaps = [size.gaps[tokens] for size in sizes if tokens in size.gaps]
    df = min((gap.difference.df or 0 for gap in gaps), default=0)
    if len(gaps) < 2 or df < 1:
        return None
    values = [gap.difference.value for gap in gaps]
    variance = [gap.difference.se**2 for gap in gaps]
    line = line_through(np.log([gap.params for gap in gaps]), values, variance, df)
    return in_sight(powered(line.zero(), np.e), [gap.params for gap in gaps])


def in_sight(place: Interval | None, data: Sequence[float], far: float = 1.0) -> Interval | None:
    """The place, if it lies within the data, give or take the factor ``far``."""
    near = place is not None and min(data) / far <= place.value <= max(data) * far
    return place if near else None


def powered(exponent: Interval | None, base: float) -> Interval | None:
    """base^x of an interval in x, ends beyond all numbers cut off."""
    if exponent is None:
        return None
    value, low, high = (
        np.power(base, np.clip([exponent.value, exponent.low, exponent.high], -200, 200))
    ).tolist()
    return replace(exponent, value=value, low=low, high=high)


def gaps_table(pair: PairByTokens) -> pl.DataFrame:
    """Every gap with its interval, and its line there."""
    rows = [
        (size.params, size.curve, tokens, gap.difference.value, *size.ends(tokens), line)
        for size in pair.sizes
        for (tokens, gap), line in zip(size.gaps.items(), size.at(list(size.gaps)), strict=True)
    ]
    names = ["params", "rival", "tokens", "difference", "low", "high", "line"]
    return pl.DataFrame(rows, schema=names, orient="row")


def ends_table(pair: PairByTokens) -> pl.DataFrame:
    """Of each size: slope and, where it is determined, the D at which the line is zero."""
    rows = []
    for size in pair.sizes:
        slope, zero = size.slope, size.zero
        ends = (None, None, None) if zero is None else (zero.value, *zero.ends)
        rows.append((size.params, size.curve, slope.value, *slope.ends, *ends))
    names = ["params", "rival", "slope", "low", "high", "tokens", "from", "to"]
    return pl.DataFrame(rows, schema=names, orient="row")
