"""What loops buy: one law over all looped runs, judged on runs it has not seen, and the entropy bonus apart.

The objective of a gated looped model is  total = expected cross-entropy - beta H,  H <= log T_m.  Part of
any fall of the total with T_m is that bonus, so total, expected and last-exit losses stand apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import law_at
from isoloss.analysis.points import cooled_points, losses_by_size, of_families, shared_tokens
from isoloss.errors import Refusal, attempt
from isoloss.laws import Fit, FitStatus, fit
from isoloss.records import StudyData
from isoloss.stats import Interval, Noise, difference, seed_noise

PARTS = {"total": "total loss", "expected": "expected cross-entropy", "last_exit": "last-exit loss"}
INPUTS = ("params", "tokens", "recurrence")
BINS = 40
BINS_A_DECADE = 20
LATE = 0.2
"""Share of a run's tokens left out of the fit: the law is not made for the early drop, which flatters R^2."""


@dataclass(frozen=True)
class HeldOut:
    """A law fitted without some points and judged on them, beside the nearest points it was given.

    ``error`` is the mean of |predicted / real - 1|; ``baseline`` the same when each held-out point is
    predicted by the loss of the nearest panel (or the last point) that was kept.
    """

    what: str
    points: int
    baseline: float
    error: float | None = None
    r2: float | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True)
class LoopGain:
    """Most loops minus one at equal N: differences in nats; ``bonus`` is beta H, ``cap`` beta log T_m."""

    params: int
    loops: int
    last_exit: Interval
    expected: Interval
    total: Interval
    bonus: float
    cap: float


@dataclass(frozen=True)
class LoopedStudy:
    """``curves``, ``log_curves``: training loss of each panel by bins of tokens, of log tokens.

    ``fits``: one law per part of the loss. ``beta``: the weight of the entropy bonus.
    """

    tokens: int
    curves: pl.DataFrame
    log_curves: pl.DataFrame
    points: pl.DataFrame
    noise: Noise | Refusal
    beta: float | None
    fits: Mapping[str, Fit | Refusal]
    held_out: tuple[HeldOut, ...]
    gains: tuple[LoopGain, ...]


def measure(study: StudyData) -> LoopedStudy:
    """Raises Refusal if no looped run has finished."""
    points = of_families(cooled_points(study.table()), "looped")
    steps = training_curves(study, points)
    width = pl.col("tokens").max().over("size", "recurrence") / BINS
    curves = bin_means(steps, ((pl.col("tokens") / width).ceil() - 1).clip(0, BINS - 1))
    points = points.filter(pl.col("tokens") == shared_tokens(points, "recurrence"))
    noise = seed_noise(losses_by_size(points))
    return LoopedStudy(
        tokens=int(points["tokens"][0]),
        curves=curves,
        # Bins of equal width in log tokens keep the early drop.
        log_curves=bin_means(steps, (pl.col("tokens").log10() * BINS_A_DECADE).floor()),
        points=points,
        noise=noise,
        beta=entropy_weight(points),
        fits={part: fit_law(late(curves), part) for part in PARTS},
        held_out=validate(late(curves)),
        gains=loop_gains(points),
    )


def training_curves(study: StudyData, points: pl.DataFrame) -> pl.DataFrame:
    """Trunk training losses of the runs in ``points``: total, expected and last exit at every step."""
    widths = points.select("run_id", "d_model").unique()
    curves = study.curves().filter(~pl.col("cooled") & (pl.col("step") > 0)).join(widths, on="run_id")
    exits = sorted((c for c in curves.columns if c.startswith("exit_")), key=lambda c: int(c[5:]))
    return curves.select(
        "run_id",
        "params",
        "recurrence",
        "tokens",
        "total",
        pl.concat_str("n_layer", pl.lit("x"), "d_model").alias("size"),
        # A run of one loop has one loss under all three names.
        pl.coalesce("expected" if "expected" in curves.columns else "total", "total").alias("expected"),
        pl.coalesce(*reversed(exits), "total").alias("last_exit"),
    )


def bin_means(curves: pl.DataFrame, bin_of: pl.Expr) -> pl.DataFrame:
    """Means over bins of tokens, seeds of a panel together; ``tokens`` is the bin's mean."""
    return (
        curves.group_by("size", "recurrence", bin_of.cast(pl.Int64).alias("bin"))
        .agg(pl.col("params").first(), pl.col("tokens", *PARTS).mean())
        .with_columns(pl.col("params").min().over("size").alias("size_params"))
        .sort("size_params", "recurrence", "bin")
    )


def late(curves: pl.DataFrame) -> pl.DataFrame:
    return curves.filter(pl.col("tokens") > LATE * pl.col("tokens").max().over("size", "recurrence"))


def fit_law(points: pl.DataFrame, part: str = "total") -> Fit | Refusal:
    """One loop law over every panel. Its intervals are not used: the points of one run share its noise.

    Where the data leave its parameters open, the curve that it draws through them is kept, and so marked.
    """
    return attempt(fit, "loop-total", inputs_of(points), points[part], curve_only=True)


def validate(points: pl.DataFrame) -> tuple[HeldOut, ...]:
    """Leave out the largest N, the most loops, both at once, and the last quarter of every run."""
    large = pl.col("size_params") == points["size_params"].max()
    deep = pl.col("recurrence") == points["recurrence"].max()
    last = pl.col("tokens") > 0.75 * pl.col("tokens").max().over("size", "recurrence")
    return (
        judge_held_out("largest N, all T_m", points, large, "size_params"),
        judge_held_out("largest T_m, all N", points, deep, "recurrence"),
        judge_held_out("largest N at largest T_m only", points, large & deep, "size_params"),
        judge_held_out("last quarter of every run", points, last, "tokens"),
    )


def judge_held_out(what: str, points: pl.DataFrame, out: pl.Expr, along: str) -> HeldOut:
    kept, unseen = points.filter(~out), points.filter(out)
    if kept.is_empty() or unseen.is_empty():
        refusal = Refusal("nothing is left to fit on", mend="add sizes, loops or tokens")
        return HeldOut(what, unseen.height, float("nan"), refusal=refusal)
    law, real = fit_law(kept), unseen["total"].to_numpy()
    baseline = relative_error(nearest_losses(kept, unseen, along), real)
    if isinstance(law, Refusal):
        return HeldOut(what, unseen.height, baseline, refusal=law)
    predicted = law_at(law, inputs_of(unseen))
    r2 = 1 - float(np.sum((real - predicted) ** 2) / np.sum((real - real.mean()) ** 2))
    return HeldOut(what, unseen.height, baseline, relative_error(predicted, real), r2)


def inputs_of(points: pl.DataFrame) -> dict[str, np.ndarray]:
    return {name: points[name].to_numpy().astype(float) for name in INPUTS}


def relative_error(predicted: np.ndarray, real: np.ndarray) -> float:
    return float(np.mean(np.abs(predicted / real - 1)))


def nearest_losses(kept: pl.DataFrame, unseen: pl.DataFrame, along: str) -> np.ndarray:
    """For each unseen point the loss of the kept point that agrees in the rest, nearest in ``along``."""
    axes = ("size_params", "recurrence", "tokens")
    kept_3n, unseen_3n = (
        np.log(np.stack([p[a].to_numpy().astype(float) for a in axes])) for p in (kept, unseen)
    )
    # The axis left out may differ freely; the other two must agree as well as they can.
    stiffness_3 = np.array([1.0 if axis == along else 100.0 for axis in axes])[:, None, None]
    distance_uk = np.sum(stiffness_3 * np.abs(unseen_3n[:, :, None] - kept_3n[:, None, :]), axis=0)
    return kept["total"].to_numpy()[distance_uk.argmin(axis=1)]


def entropy_weight(points: pl.DataFrame) -> float | None:
    """beta, recovered from the records as (expected - total) / entropy; None without a gated run."""
    gated = points.filter(pl.col("entropy") > 0)
    if gated.is_empty():
        return None
    return float(np.median(((gated["loss_expected"] - gated["loss_total"]) / gated["entropy"]).to_numpy()))


def loop_gains(points: pl.DataFrame) -> tuple[LoopGain, ...]:
    """Most loops minus one at every size that has both; N differs by the gate's d_model + 1 only."""
    beta, gains = entropy_weight(points) or 0.0, list[LoopGain]()
    columns = {"last_exit": "loss", "expected": "loss_expected", "total": "loss_total"}
    noises = {name: seed_noise(losses_by_size(points, column)) for name, column in columns.items()}
    for _, size in points.group_by("n_layer", "d_model", maintain_order=True):
        loops = int(size["recurrence"].to_numpy().max())
        single, deep = (size.filter(pl.col("recurrence") == t) for t in (1, loops))
        if loops == 1 or single.is_empty():
            continue
        changes = {
            name: difference(deep[column].to_numpy(), single[column].to_numpy(), noises[name])
            for name, column in columns.items()
        }
        bonus = float((deep["loss_expected"] - deep["loss_total"]).to_numpy().mean())
        params = int(single["params"][0])
        gains.append(LoopGain(params=params, loops=loops, bonus=bonus, cap=beta * log(loops), **changes))
    return tuple(sorted(gains, key=lambda gain: gain.params))


def loops_verdict(data: LoopedStudy) -> str:
    """Last exit with most loops against one loop at equal N, in one clause."""
    if not data.gains:
        return "no size was trained both with one loop and with more, so what loops buy is not measured"
    loops = data.gains[-1].loops
    if isinstance(data.noise, Refusal):
        return f"no verdict on {loops} loops against one: {data.noise.what}"
    clauses = []
    for sign, words in ((-1, "lowers"), (1, "raises"), (0, "does not clearly change")):
        sizes = [text.count(g.params) for g in data.gains if g.last_exit.sign == sign]
        if sizes:
            clauses.append(f"{words} the last-exit loss at N = {text.listed(sizes)}")
    return f"at equal N, T_m = {loops} instead of 1 {'; it '.join(clauses)}"


def fit_words(data: LoopedStudy) -> str:
    """How well the one law does where it was fitted, or why there is none."""
    law = data.fits["total"]
    if isinstance(law, Refusal):
        return f"one law over all panels is refused: {law.what}"
    rows = late(data.curves)
    error = np.abs(law_at(law, inputs_of(rows)) / rows["total"].to_numpy() - 1)
    shapes = rows.select("size", "recurrence").n_unique()
    undetermined = f"; its parameters are not determined: {law.reason}"
    return (
        f"one law over {shapes} panels is within {text.percent(float(error.mean()))} of the total loss on "
        f"average, {text.percent(float(error.max()))} at worst, where it was fitted"
        f"{undetermined if law.status is FitStatus.CURVE_ONLY else ''}"
    )


def gains_table(data: LoopedStudy) -> pl.DataFrame:
    """Most loops minus one loop: differences with intervals beside the bonus and its cap."""
    rows = []
    for gain in data.gains:
        changes = {"last exit": gain.last_exit, "expected": gain.expected, "total": gain.total}
        for name, change in changes.items():
            rows.append((gain.params, gain.loops, name, change.value, *change.ends, gain.bonus, gain.cap))
    names = ("params", "loops", "loss", "change", "low", "high", "entropy_bonus", "bonus_at_most")
    kinds = dict(zip(names, (pl.Int64, pl.Int64, pl.String, *[pl.Float64] * 5), strict=True))
    return pl.DataFrame(rows, schema=kinds, orient="row")


def held_out_table(data: LoopedStudy) -> pl.DataFrame:
    rows = [
        (h.what, h.points, h.error, h.r2, h.baseline, h.refusal.what if h.refusal else None)
        for h in data.held_out
    ]
    names = ("left_out", "points", "relative_error", "r2", "error_of_nearest_panel", "refused")
    kinds = dict(zip(names, (pl.String, pl.Int64, *[pl.Float64] * 3, pl.String), strict=True))
    return pl.DataFrame(rows, schema=kinds, orient="row")
