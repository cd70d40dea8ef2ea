"""Shape at fixed size: how far loss lies above that of the best shape of one N, ratio by ratio.

    increase of shape x = (L_x / L_best) (N_x / N_best)^a - 1          L(N) = (Nc / N)^a, the study's own

after Kaplan et al. 2020 (arXiv 2001.08361), Fig. 5. A study does not say which shapes belong together: those
of one N are a curve where they share what its panel holds fixed. All differences of a curve hold at once at
their level, since the best one is picked by its loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import expm1, inf, log

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.points import best_rate, finished_points
from isoloss.errors import Refusal, attempt
from isoloss.noise import LEAST_DF
from isoloss.records import StudyData
from isoloss.stats import Interval, mean, simultaneous

NEAR = 0.01
"""Shapes within this share of the best loss are as good."""
SAME_SIZE = 1.12
"""Shapes whose N lie within this factor have one size."""
FEWEST = 3
"""Distinct ratios that make a curve."""
SHAPE = ("n_layer", "d_model", "n_head", "d_head", "d_ff")
PANELS = ("d_ff / d_model", "d_model / n_layer", "d_head")
FF, ASPECT, HEADS = PANELS
HELD = (
    (FF, ("n_layer", "n_head")),
    (FF, ("n_layer", "d_head")),
    (ASPECT, ("ff_class", "n_head")),
    (ASPECT, ("ff_class", "d_head")),
    (HEADS, ("n_layer", "d_ff", "d_model")),
)
"""Panel, and what the shapes of a curve share beside their size."""


@dataclass(frozen=True)
class Flat:
    """Between which ratios around the best the increase stays within ``NEAR``, if it rises away from it.

    ``measured``: where lines through the estimates pass it. ``sure``: the last shapes whose intervals end
    below it; ``possible``: the first whose intervals begin above it, None where there is none.
    """

    measured: tuple[float, float]
    sure: tuple[float, float]
    possible: tuple[float | None, float | None]

    @property
    def fold(self) -> float:
        return self.measured[1] / self.measured[0]

    @property
    def interval(self) -> tuple[float, float | None]:
        low, high = self.possible
        return self.sure[1] / self.sure[0], None if low is None or high is None else high / low


@dataclass(frozen=True)
class Curve:
    """Shapes of one size in one panel: ``rows`` in order of ``x``, with increase, low and high.

    ``flat`` is None where seeds allow no interval.
    """

    panel: str
    name: str
    params: float
    rows: pl.DataFrame
    best: float
    flat: Flat | None

    @property
    def verdict(self) -> str:
        """Where the best shape lies, as far as the noise lets it be seen."""
        if self.flat is None:
            return "no verdict: seeds do not tell the noise"
        worse = [name for name, end in (("low", 0), ("high", -1)) if self.rows["low"][end] > 0]
        if not worse:
            return "no difference beyond the noise between the best and either end"
        place = f"best near {text.number(self.best, 3)}"
        return (
            f"{place}, both ends worse" if len(worse) == 2 else f"{place}, only the {worse[0]} end is worse"
        )


@dataclass(frozen=True)
class Shapes:
    """All curves at ``tokens``; ``exponent``: a of the study's own L(N); ``missing``: planned shapes."""

    tokens: int
    curves: tuple[Curve, ...]
    exponent: Interval | Refusal
    missing: int

    @property
    def compute(self) -> tuple[float, tuple[float, float] | None] | None:
        """1.01^(1/a) - 1: the share of compute, spent on N at the same tokens, that 1% of loss is worth."""
        if isinstance(self.exponent, Refusal) or self.exponent.value <= 0:
            return None
        low, high = self.exponent.low, self.exponent.high
        return worth(self.exponent.value), (worth(high), worth(low)) if 0 < low < high < inf else None

    def shared(self) -> dict[str, Flat | None]:
        """Of each panel the ratios that are flat in all its curves, as far as seeds judge them."""
        judged = {
            panel: [c.flat for c in self.curves if c.panel == panel and c.flat is not None]
            for panel in PANELS
        }
        return {panel: shared(flats) for panel, flats in judged.items() if flats}


def shared(flats: Sequence[Flat]) -> Flat | None:
    """Where all of ``flats`` are flat; None where no ratio is."""
    if not flats:
        return None

    def meet(ranges: list[tuple[float | None, float | None]]) -> tuple[float | None, float | None]:
        lows, highs = ([end for end in ends if end is not None] for ends in zip(*ranges, strict=True))
        return max(lows, default=None), min(highs, default=None)

    low, high = meet([flat.measured for flat in flats])
    if low is None or high is None or low >= high:
        return None
    first, last = meet([flat.sure for flat in flats])
    sure = (first, last) if first is not None and last is not None and first < last else (low, low)
    return Flat((low, high), sure, meet([flat.possible for flat in flats]))


def worth(exponent: float) -> float:
    """(1 + NEAR)^(1/exponent) - 1; 0.22 of Kaplan's 0.050."""
    return expm1(log(1 + NEAR) / exponent)


def planned(study: StudyData) -> bool:
    """Does the study hold shapes of one size that differ in a ratio?"""
    return bool(curves_of(shapes_of(study)))


def shapes_of(study: StudyData) -> pl.DataFrame:
    """Every planned Transformer run with its shape, its ratios, and the class of its size."""
    rows = []
    for run in study.plan["runs"]:
        settings, shape = run["settings"], dict(run["settings"]["shape"])
        if settings["family"] == "transformer":
            shape["d_head"] = shape.get("d_head") or shape["d_model"] // shape["n_head"]
            shape["d_ff"] = shape.get("d_ff") or 4 * shape["d_model"]
            kind = str([*sorted(shape.items() - {(key, shape[key]) for key in SHAPE}), settings["context"]])
            own = {key: shape[key] for key in SHAPE}
            rows.append({"run_id": run["run_id"], "params": run["counts"]["params"], "kind": kind, **own})
    if not rows:
        return pl.DataFrame()
    table = pl.DataFrame(rows).sort("params", maintain_order=True)
    first, sizes = 0, list[int]()
    for params in table["params"]:
        first = first if params <= SAME_SIZE * first else params
        sizes.append(first)
    ratio = pl.col("d_ff") / pl.col("d_model")
    return table.with_columns(
        pl.Series("size", sizes),
        # classes of d_ff / d_model half an octave wide, the usual 4 in the middle of one
        (2 * ratio.log(2)).round().alias("ff_class"),
        ratio.alias(FF),
        (pl.col("d_model") / pl.col("n_layer")).alias(ASPECT),
        pl.concat_str(*SHAPE, "kind", separator=" ").alias("curve"),
    )


def curves_of(shapes: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """Panel, name, and one row a shape in order of ``x``, of every curve.

    A size has one of d_model / n_layer, and one of d_ff / d_model for each of n_head and d_head held fixed.
    """
    by_place: dict[tuple[object, ...], tuple[str, str, pl.DataFrame]] = {}
    for panel, held in HELD if shapes.height else ():
        for key, runs in shapes.group_by("size", "kind", *held, maintain_order=True):
            x = pl.col(panel).cast(pl.Float64)
            rows = runs.with_columns(x.alias("x")).unique("x", maintain_order=True).sort("x")
            mean_n = float(np.exp(rows["params"].log().to_numpy().mean()))
            name = f"N = {text.count(mean_n)}" if panel == ASPECT else f"{held[-1]} = {key[-1]}"
            place = (panel, *key[:2], {FF: held[-1], ASPECT: None, HEADS: key}[panel])
            if rows.height >= max(FEWEST, by_place[place][2].height + 1 if place in by_place else 0):
                by_place[place] = (panel, name, rows)
    return list(by_place.values())


def measure(study: StudyData) -> Shapes:
    """At the largest D. Raises Refusal unless ``FEWEST`` shapes of a curve have finished."""
    shapes = shapes_of(study)
    points = finished_points(study.table()).join(shapes.select("run_id", "size", "curve"), on="run_id")
    points = best_rate(points.filter(pl.col("tokens") == pl.col("tokens").max()))
    curves = curves_of(shapes.join(points, on="curve", how="semi"))
    if not curves:
        what = f"no {FEWEST} shapes of one size that differ in one ratio have finished"
        raise Refusal(what, mend="let the study run on, then report")
    exponent = attempt(exponent_of, points)
    a = 0.0 if isinstance(exponent, Refusal) else exponent.value
    effects = {size: Effects(rows, a) for (size,), rows in points.group_by("size", maintain_order=True)}
    total, df = sum(each.squares for each in effects.values()), sum(each.df for each in effects.values())
    for each in effects.values():
        if each.df < LEAST_DF:
            each.squares, each.df = total, df
    missing = shapes["curve"].n_unique() - points["curve"].n_unique()
    made = [curve_of(panel, name, rows, effects[rows["size"][0]]) for panel, name, rows in curves]
    return Shapes(int(points["tokens"][0]), tuple(made), exponent, missing)


def exponent_of(points: pl.DataFrame) -> Interval:
    """a of L(N) = (Nc / N)^a, seed by seed by least squares in logarithms, through each size's best shape.

    The mean exponent over the sizes where these do not lie on a line. Raises Refusal for a single size.
    """
    means = points.group_by("size", "curve", maintain_order=True).agg(pl.col("loss").mean()).sort("loss")
    best = points.join(means.unique("size", keep="first", maintain_order=True), on="curve", how="semi")
    sizes = best["size"].n_unique()
    each = [(r["params"].log(), r["loss"].log()) for _, r in best.group_by("seed") if r.height == sizes]
    if sizes < 2 or not each:
        raise Refusal("no seed was trained at two sizes", mend="add shapes of another size")
    return mean([-np.polyfit(log_n.to_numpy(), log_loss.to_numpy(), 1)[0] for log_n, log_loss in each])


class Effects:
    """log(L N^a) of the runs of one size as shape + seed + noise, by least squares: seeds share a text.

    The noise is that of the size, or of all sizes where it has fewer than ``LEAST_DF`` degrees of freedom.
    """

    def __init__(self, points: pl.DataFrame, a: float):
        self.shapes = points["curve"].unique(maintain_order=True).to_list()
        columns = [points["curve"] == shape for shape in self.shapes]
        columns += [points["seed"] == seed for seed in points["seed"].unique().sort()[1:]]
        design = np.column_stack(columns).astype(float)
        y_n = (points["loss"].log() + a * points["params"].log()).to_numpy()
        self.effect, _, rank, _ = np.linalg.lstsq(design, y_n, rcond=None)
        self.df, left_n = len(y_n) - int(rank), y_n - design @ self.effect
        self.squares, self.spread = float(left_n @ left_n), np.linalg.pinv(design.T @ design)
        self.seeds = np.add.reduce(columns[: len(self.shapes)], axis=1)

    def above(self, shape: str, best: str, among: int) -> Interval:
        """log of the loss of a shape over that of the best of ``among`` shapes."""
        c = np.zeros(len(self.effect))
        c[self.shapes.index(shape)] += 1
        c[self.shapes.index(best)] -= 1
        n = int(self.seeds[self.shapes.index(shape)])
        se = (float(c @ self.spread @ c) * self.squares / max(1, self.df)) ** 0.5
        return simultaneous(float(c @ self.effect), se, n, self.df, among)


def curve_of(panel: str, name: str, rows: pl.DataFrame, effects: Effects) -> Curve:
    """A curve with the increase of each of its shapes."""
    shapes = rows["curve"].to_list()
    at = [effects.effect[effects.shapes.index(shape)] for shape in shapes]
    best = int(np.argmin(at))
    above = [effects.above(shape, shapes[best], len(shapes)) for shape in shapes]
    ends = [[None if end is None else expm1(end) for end in interval.ends] for interval in above]
    columns = {"increase": [expm1(interval.value) for interval in above]}
    columns |= {"low": [low for low, _ in ends], "high": [high for _, high in ends]}
    kinds = dict.fromkeys(columns, pl.Float64)
    seeds = pl.Series("seeds", [interval.n for interval in above])
    rows = rows.select("x", *SHAPE, "params", seeds).hstack(pl.DataFrame(columns, schema=kinds))
    flat = flat_of(rows, best) if effects.df else None
    return Curve(panel, name, float(rows["params"].to_numpy().mean()), rows, float(rows["x"][best]), flat)


def flat_of(rows: pl.DataFrame, best: int) -> Flat:
    """How far from the best shape the increase stays within ``NEAR``, towards either side."""
    sides = [side_of(rows[: best + 1].reverse()), side_of(rows[best:])]
    measured, sure, possible = zip(*sides, strict=True)
    return Flat(measured, sure, possible)


def side_of(rows: pl.DataFrame) -> tuple[float, float, float | None]:
    """``Flat``'s measured, sure and possible end, of shapes in order of distance from the best."""
    x = rows["x"].to_list()

    def passes(column: str) -> int:
        return next((i for i, value in enumerate(rows[column]) if i and value > NEAR), len(x))

    past, increase = passes("increase"), rows["increase"].to_list()
    measured = x[past - 1]
    if past < len(x):
        share = (NEAR - increase[past - 1]) / (increase[past] - increase[past - 1])
        measured *= (x[past] / x[past - 1]) ** share
    excluded = passes("low")
    return measured, x[passes("high") - 1], x[excluded] if excluded < len(x) else None


def fold_words(data: Shapes) -> str:
    """'Changing d_ff / d_model 6-fold (4 to 9) or d_head 12-fold (8 to open) costs at most 1% of loss'.

    Of ratios that all curves of a panel share; where they share none, that.
    """
    panels = data.shared()
    if not panels:
        return "no shape is judged: seeds do not tell the noise"
    flats = {panel: flat for panel, flat in panels.items() if flat is not None}
    apart = [panel for panel in panels if panel not in flats]
    unsure = all(flat.interval == (1.0, None) for flat in flats.values())
    parts = [f"{panel} {fold(flat, unsure=unsure)}" for panel, flat in flats.items()]
    words = [f"changing {text.listed(parts, 'or')} costs at most 1% of loss"] if parts else []
    if apart:
        none = f"no {text.listed(apart, 'or')}"
        words.append(f"{none} does so" if parts else f"{none} is within 1% of the best in every curve")
    return "; ".join(words) + ". No range is sure" * (unsure and bool(parts))


def fold(flat: Flat, *, unsure: bool = False) -> str:
    """'12-fold (8 to open)'; ``unsure``: without an interval that would say nothing."""
    number = partial(text.number, digits=2)
    ends = "" if unsure else f" ({text.interval(flat.interval, number)})"
    return f"{number(flat.fold)}-fold{ends}"


def compute_words(data: Shapes) -> str:
    """'11% more compute (9.5% to 13%) makes up for 1% of loss', or why that is not known."""
    if data.compute is None:
        reason = data.exponent.what if isinstance(data.exponent, Refusal) else "loss does not fall with N"
        return f"what 1% of loss is in compute is not known, nor is N corrected: {reason}"
    value, ends = data.compute
    return f"{text.percent(value)} more compute ({text.interval(ends, text.percent)}) makes up for 1% of loss"
