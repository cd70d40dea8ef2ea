"""One law over every panel (N, T_m) of looped models: where it was fitted, and at what its fit has not seen.

Losses are those of held-out text along the trunk. Minibatch losses of one step share their noise over all
panels: nine tenths of the variance of their residuals.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import Refusal, attempt
from isoloss.laws import Fit, FitStatus, fit
from isoloss.stats import LEVEL

PARTS = {"total": "total loss", "expected": "expected cross-entropy", "last_exit": "last-exit loss"}
COLUMNS = {"total": "loss_total", "expected": "loss_expected", "last_exit": "loss"}
"""Of the loss table."""
INPUTS = ("params", "tokens", "recurrence")
EARLY = 0.1
"""Share of a run's tokens left out of the fit: the law is not made for the early drop, which flatters R^2."""
NEAR = 2.0
"""A law whose parameters the data leave open is a curve, not asked further outside them than this factor."""
FITTED, LOOPS_OUT, SIZE_OUT, HALF_OUT = "fitted", "a T_m left out", "an N left out", "the last half left out"


@dataclass(frozen=True)
class Judged:
    """A law at ``rows``: points that it was fitted to, or that were left out of its fit, as ``kind`` says.

    ``rows`` has ``predicted`` beside the points unless ``refusal`` says why not. ``error``: mean of
    |predicted / real - 1|; ``baseline``: the same when the nearest points kept are the prediction.
    ``inside``: how many points lie in their interval of one new run, None where there is none.
    """

    kind: str
    what: str
    rows: pl.DataFrame
    baseline: float | None
    error: float | None = None
    inside: int | None = None
    refusal: Refusal | None = None


def trace(table: pl.DataFrame, grid: pl.DataFrame) -> pl.DataFrame:
    """Losses by part of the runs of ``grid`` at every evaluation of their trunks, means over seeds."""
    trunk = table.filter(~pl.col("cooled") & (pl.col("step") > 0)).join(grid, on="run_id", how="semi")
    size = pl.concat_str("n_layer", pl.lit("x"), "d_model").alias("size")
    losses = {part: pl.col(column).mean() for part, column in COLUMNS.items()}
    return (
        trunk.group_by(size, "recurrence", "tokens")
        .agg(pl.col("params").first(), **losses)
        .with_columns(pl.col("params").min().over("size").alias("size_params"))
        .sort("size_params", "recurrence", "tokens")
    )


def late(curves: pl.DataFrame) -> pl.DataFrame:
    return curves.filter(pl.col("tokens") > EARLY * pl.col("tokens").max().over("size", "recurrence"))


def fit_law(points: pl.DataFrame, part: str = "total") -> Fit | Refusal:
    """One loop law over every panel; the points of a panel count once together.

    Where the data leave its parameters open, the curve that it draws through them is kept, and so marked.
    """
    panel = points.select(pl.concat_str("size", pl.lit(" "), "recurrence")).to_series()
    options = {"cluster": panel, "level": LEVEL, "curve_only": True}
    return attempt(fit, "loop-total", inputs_of(points), points[part], **options)


def judge(points: pl.DataFrame) -> tuple[Judged, ...]:
    """The law of total loss where it was fitted, at each T_m and N left out, and at every last half."""
    left_out = (
        judged(kind, what, points.filter(~out), points.filter(out), along)
        for kind, what, out, along in folds(points)
    )
    return judged(FITTED, "nothing", points, points), *left_out


def folds(points: pl.DataFrame) -> Iterator[tuple[str, str, pl.Expr, str]]:
    """Kind, name, rows and axis of what is left out, one after the other."""
    for loops in points["recurrence"].unique().sort().to_list():
        yield LOOPS_OUT, f"T_m = {loops}", pl.col("recurrence") == loops, "recurrence"
    for params in points["size_params"].unique().sort().to_list():
        yield SIZE_OUT, f"N = {text.count(params)}", pl.col("size_params") == params, "size_params"
    last = pl.col("tokens") > 0.5 * pl.col("tokens").max().over("size", "recurrence")
    yield HALF_OUT, "last half of every run", last, "tokens"


def judged(kind: str, what: str, kept: pl.DataFrame, rows: pl.DataFrame, along: str = "") -> Judged:
    """A law fitted to ``kept`` at ``rows``, which differ from what was kept ``along`` one axis."""
    law, real, baseline = fit_law(kept), rows["total"].to_numpy(), None
    if along and kept.height:
        baseline = relative_error(nearest_losses(kept, rows, along), real)
    if isinstance(law, Refusal):
        return Judged(kind, what, rows, baseline, refusal=law)
    prediction = law.predict(level=LEVEL, **inputs_of(rows))
    farthest = max(float(np.max(factor)) for factor in prediction.extrapolation.values())
    if law.status is FitStatus.CURVE_ONLY and farthest > NEAR * (1 + 1e-9):
        curve = Refusal(f"only a curve inside its data: {law.reason}", mend="add sizes, loops or tokens")
        return Judged(kind, what, rows, baseline, refusal=curve)
    low, high = prediction.interval or (None, None)
    inside = None if low is None else int(np.sum((low <= real) & (real <= high)))
    predicted = np.asarray(prediction.loss)
    rows = rows.with_columns(pl.Series("predicted", predicted))
    return Judged(kind, what, rows, baseline, relative_error(predicted, real), inside)


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


def errors_by_kind(outcomes: tuple[Judged, ...]) -> dict[str, float]:
    """Mean error over the points of each kind; a kind is absent where a law of it was refused."""
    error = (pl.col("relative_error") * pl.col("points")).sum() / pl.col("points").sum()
    kinds = judged_table(outcomes).group_by("kind", maintain_order=True).agg(error, pl.col("refused").count())
    return {kind: mean for kind, mean, refused in kinds.iter_rows() if not refused}


def judged_table(outcomes: tuple[Judged, ...]) -> pl.DataFrame:
    rows = [
        (j.kind, j.what, j.rows.height, j.error, j.inside, j.baseline, j.refusal.what if j.refusal else None)
        for j in outcomes
    ]
    names = ("kind", "left_out", "points", "relative_error", "inside", "error_of_nearest", "refused")
    kinds = (pl.String, pl.String, pl.Int64, pl.Float64, pl.Int64, pl.Float64, pl.String)
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")
