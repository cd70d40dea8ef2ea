"""Mean residuals in bins of each input: where the law drifts off its runs."""

import numpy as np
import polars as pl

from isoloss import neighbours
from isoloss.analysis.fit_rows import amount, on_logs, spread_words, varied_inputs
from isoloss.distributions import f_tail, t_quantile
from isoloss.laws import Fit
from isoloss.stats import MEDIAN_TO_SD

BINS = 6
DRIFTS = 0.05
"""A bin's mean counts as a drift if chance makes one so large among all bins less often than this."""
FEW = 7
"""Up to so many distinct values of an input are a bin each."""


TAILED = 1.5
"""A spread so many times the one by medians comes from outliers."""
PAIRS = 8
"""So many pairs of neighbours say what the noise is."""


def means(fit: Fit, points: pl.DataFrame) -> pl.DataFrame:
    """Mean residuals along each varied input, with their standard errors and intervals."""
    noise, df = _noise(fit, points)
    return pl.concat(_bins(fit, points, name, noise, df) for name in varied_inputs(fit))


def _noise(fit: Fit, points: pl.DataFrame) -> tuple[float | None, int]:
    """Standard deviation of one run in the residuals' unit, and its degrees of freedom; None where unknown.

    A law that bends off its runs counts the bend as scatter. Two runs that are each other's nearest, by log
    inputs, share it: root of the mean of (r - r')^2 / 2 over such pairs, where it is the smaller of the two.
    """
    if fit.sigma is None or fit.df < 1 or fit.sigma == 0:
        return None, fit.df
    scatter = fit.sigma * (100 if on_logs(fit) else 1)
    inputs = points.select(varied_inputs(fit)).to_numpy()
    if points["label"].n_unique() < points.height or not (inputs > 0).all():
        return scatter, fit.df
    here = np.arange(points.height)
    two = neighbours.nearest(np.log(inputs), 2)[1]
    nearest = np.where(two[:, 0] == here, two[:, 1], two[:, 0])
    first = here[(nearest[nearest] == here) & (here < nearest)]
    if len(first) < PAIRS:
        return scatter, fit.df
    residuals = points["residual"].to_numpy()
    pure = float(np.sqrt(np.mean((residuals[first] - residuals[nearest[first]]) ** 2) / 2))
    return (pure, min(len(first), fit.df)) if 0 < pure < scatter else (scatter, fit.df)


def _bins(fit: Fit, points: pl.DataFrame, name: str, noise: float | None, df: int) -> pl.DataFrame:
    """Means of residuals at each value of an input, or in bins of equal counts where values are many."""
    points = points.filter(pl.col(name) > 0).sort(name)
    if points[name].n_unique() <= FEW:
        index = points[name].rank("dense").cast(pl.Int64) - 1
    else:
        index = pl.Series((points[name].rank("ordinal").cast(pl.Int64) - 1) * BINS // points.height)
    bins = points.with_columns(index.alias("bin")).group_by("bin", maintain_order=True)
    means = bins.agg(
        pl.col(name).log().mean().exp().alias("at"),
        pl.col(name).min().alias("from"),
        pl.col(name).max().alias("to"),
        pl.col("residual").mean().alias("mean"),
        pl.col("residual").std().fill_null(0.0).alias("spread"),
        (MEDIAN_TO_SD * (pl.col("residual") - pl.col("residual").median()).abs().median()).alias("bulk"),
        pl.len().alias("rows"),
        pl.col("label").n_unique().alias("independent"),
    )
    error = _error(noise)
    reach = t_quantile(fit.level, df) * error if noise is not None else error
    return means.select(
        pl.lit(name).alias("input"),
        pl.exclude("bin", "spread", "bulk"),
        error.alias("standard_error"),
        pl.lit(df).alias("df"),
        (pl.col("mean") - reach).alias("low"),
        (pl.col("mean") + reach).alias("high"),
    )


def _error(noise: float | None) -> pl.Expr:
    """Standard errors of the bins' means; null where the noise is not known.

    From the noise of one run, or the larger spread of the bin's own rows where that has tails: outliers
    make a mean unsure, a bend within the bin does not.
    """
    if noise is None:
        return pl.lit(None, pl.Float64)
    outliers = pl.col("spread") > TAILED * pl.col("bulk")
    one_run = pl.max_horizontal(pl.lit(noise), pl.when(outliers).then("spread").otherwise(0.0))
    return one_run / pl.col("independent").cast(pl.Float64).sqrt()


def drifts(bins: pl.DataFrame) -> bool:
    """Whether chance would leave a bin mean so large, among all bins, less often than ``DRIFTS``."""
    if bins["standard_error"].null_count():
        return False
    errors = float(np.abs((bins["mean"] / bins["standard_error"]).to_numpy()).max())
    return bins.height * f_tail(1, int(bins["df"][0]), errors**2) < DRIFTS


def drift(fit: Fit, bins: pl.DataFrame) -> str:
    """The largest bin mean in standard errors, and whether the law drifts."""
    unit = 1 / (100 if on_logs(fit) else 1)
    if bins["standard_error"].null_count():
        largest = float(np.abs(bins["mean"].to_numpy()).max())
        return f"Residuals average at most {spread_words(fit, unit * largest)} in any bin"
    z = (bins["mean"] / bins["standard_error"]).to_numpy()
    index = int(np.abs(z).argmax())
    errors = abs(z[index])
    worst = bins.row(index, named=True)
    where = amount(worst["input"], worst["at"])
    size = f"{'+' if worst['mean'] > 0 else '−'}{spread_words(fit, abs(unit * worst['mean']))}"
    if drifts(bins):
        return f"The law drifts off its runs: they average {size} about {where} ({errors:.1f} s.e.)"
    return f"No drift is seen: the largest bin mean is {size}, about {where} ({errors:.1f} s.e.)"
