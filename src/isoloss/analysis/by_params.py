"""Loss against non-embedding parameters N at one D: which family is ahead, and where the curves cross."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.points import (
    Curve,
    cooled_points,
    curves_of,
    losses_by_size,
    means,
    of_families,
    shared_tokens,
)
from isoloss.errors import Refusal
from isoloss.laws import Crossing, CrossingOutcome, Fit, crossing
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval, Noise, contrast, seed_noise

TRANSFORMER = "Transformer"
NEAR = 1.1


@dataclass(frozen=True)
class Gap:
    """Transformer minus LSTM in nats at N = ``params``, the LSTM read between its two neighbouring sizes."""

    curve: str
    params: int
    difference: Interval


@dataclass(frozen=True)
class ByParams:
    """Both families at the same ``tokens``. ``crossings``: where the Transformer meets each LSTM curve."""

    tokens: int
    points: pl.DataFrame
    curves: tuple[Curve, ...]
    noise: Noise | Refusal
    gaps: tuple[Gap, ...]
    crossings: Mapping[str, Crossing | Refusal]

    @cached_property
    def rival(self) -> str | None:
        """The LSTM curve of the headline: most sizes compared, then lowest loss. None without any."""
        curves = {
            gap.curve: [g.difference.value for g in self.gaps if g.curve == gap.curve] for gap in self.gaps
        }
        return max(curves, key=lambda name: (len(curves[name]), float(np.mean(curves[name]))), default=None)

    @property
    def headline(self) -> str:
        """The rival, or any LSTM curve where no size was compared."""
        return self.rival or next(curve.name for curve in self.curves if curve.name != TRANSFORMER)

    @property
    def headline_gaps(self) -> list[Gap]:
        return [gap for gap in self.gaps if gap.curve == self.rival]


def measure(study: StudyData) -> ByParams:
    """At the largest D that both reached. Raises Refusal if a family is missing or no D is shared."""
    points = of_families(cooled_points(study.table()), "transformer", "lstm")
    return at_tokens(points, shared_tokens(points))


def at_tokens(points: pl.DataFrame, tokens: int) -> ByParams:
    """The comparison at one D, from the cooled points of both families."""
    points = points.filter(pl.col("tokens") == tokens)
    curves, noise = curves_of(points), seed_noise(losses_by_size(points))
    fits = {curve.name: curve.fit for curve in curves}
    rivals = [name for name in fits if name != TRANSFORMER]
    return ByParams(
        tokens=tokens,
        points=points,
        curves=curves,
        noise=noise,
        gaps=gaps_at_equal_params(means(points), rivals, noise),
        crossings={name: meeting(fits[TRANSFORMER], fits[name]) for name in rivals},
    )


def meeting(ours: Fit | Refusal, theirs: Fit | Refusal) -> Crossing | Refusal:
    """Where two laws meet, or the refusal of the first that has none."""
    if isinstance(ours, Refusal):
        return ours
    if isinstance(theirs, Refusal):
        return theirs
    return crossing(ours, theirs, "params", level=LEVEL)


def gaps_at_equal_params(mean: pl.DataFrame, rivals: list[str], noise: Noise | Refusal) -> tuple[Gap, ...]:
    """Transformer minus rival at each Transformer size within the rival's sizes, give or take a tenth.

    The rival's loss there is interpolated in log N between its two nearest sizes; a curve bends little over
    that distance, so seeds dominate the error.
    """
    gaps: list[Gap] = []
    ours = mean.filter(pl.col("curve") == TRANSFORMER)
    for rival in rivals:
        theirs = mean.filter(pl.col("curve") == rival)
        log_n = np.log(theirs["params"].to_numpy())
        for params, loss, seeds in ours.select("params", "loss", "seeds").iter_rows():
            if not theirs["params"][0] / NEAR <= params <= theirs["params"][-1] * NEAR:
                continue
            above = min(max(int(np.searchsorted(log_n, np.log(params))), 1), len(log_n) - 1)
            parts: list[tuple[float, float, int]] = [(1.0, loss, seeds)]
            if len(log_n) == 1:
                parts.append((-1.0, theirs["loss"][0], theirs["seeds"][0]))
            else:
                share = float((np.log(params) - log_n[above - 1]) / (log_n[above] - log_n[above - 1]))
                parts.append((share - 1, theirs["loss"][above - 1], theirs["seeds"][above - 1]))
                parts.append((-share, theirs["loss"][above], theirs["seeds"][above]))
            gaps.append(Gap(rival, params, contrast(parts, noise)))
    return tuple(gaps)


def verdict(data: ByParams) -> str:
    """Who is ahead at which N, in one clause; only what the intervals support."""
    gaps = data.headline_gaps
    if not gaps:
        return "no Transformer size lies within the sizes of an LSTM curve, so nothing is compared at equal N"
    if isinstance(data.noise, Refusal):
        values = [gap.difference.value for gap in gaps]
        return (
            f"no verdict on the Transformer against the {data.rival}: {data.noise.what} (measured difference "
            f"{text.signed(min(values))} to {text.signed(max(values))} nats at {len(gaps)} sizes)"
        )
    clauses: list[str] = []
    for name, sign in ((f"the {data.rival}", 1), ("the Transformer", -1), ("neither", 0)):
        sizes = [text.count(gap.params) for gap in gaps if gap.difference.sign == sign]
        if sizes:
            share = f"all {len(gaps)}" if len(sizes) == len(gaps) else f"{len(sizes)} of {len(gaps)}"
            which = "the one size" if len(gaps) == 1 else f"{share} sizes"
            clauses.append(f"{name} is ahead at {which} compared (N = {text.listed(sizes)})")
    return "; ".join(clauses)


def crossover(meets: Crossing | Refusal, rival: str) -> str:
    """Where the laws cross, or why that cannot be said."""
    if isinstance(meets, Refusal):
        return f"where the Transformer's curve meets that of the {rival} is refused: {meets.what}"
    if meets.outcome is CrossingOutcome.NO_CROSSING or meets.value is None:
        return (
            f"the fitted laws do not cross anywhere from N = {text.count(meets.range[0])} to "
            f"{text.count(meets.range[1])}, so no crossover is claimed{open_crossing(meets)}"
        )
    where = f"N = {text.count(meets.value)} ({text.interval(meets.interval or (None, None), text.count)})"
    if meets.outcome is CrossingOutcome.CROSSES_INSIDE:
        return f"the fitted laws cross inside the data, at {where}"
    side = (
        "no size is shared"
        if meets.overlap is None
        else f"the shared sizes are {text.counts(*meets.overlap)}"
    )
    return f"the fitted laws would cross at {where}, which lies outside the data ({side}): an extrapolation"


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


def gaps_table(data: ByParams) -> pl.DataFrame:
    """Transformer minus LSTM at equal N, for every LSTM depth."""
    rows = [(gap.curve, gap.params, gap.difference.value, *gap.difference.ends) for gap in data.gaps]
    kinds = {"curve": pl.String, "params": pl.Int64}
    kinds |= dict.fromkeys(("transformer_minus_lstm", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")
