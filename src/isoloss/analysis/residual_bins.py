"""Mean residuals in bins of each input: where the law drifts off its runs."""

import numpy as np
import polars as pl
from scipy.special import stdtr

from isoloss.analysis.fit_rows import amount, on_logs, spread_words, varied_inputs
from isoloss.laws import Fit
from isoloss.stats import t_quantile

BINS = 6
DRIFTS = 0.05
"""A bin's mean counts as a drift if chance makes one so large among all bins less often than this."""
FEW = 7
"""Up to so many distinct values of an input are a bin each."""


def means(fit: Fit, points: pl.DataFrame) -> pl.DataFrame:
    """Mean residuals along each varied input, with their standard errors and intervals."""
    return pl.concat(_bins(fit, points, name) for name in varied_inputs(fit))


def _bins(fit: Fit, points: pl.DataFrame, name: str) -> pl.DataFrame:
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
        pl.len().alias("rows"),
        pl.col("label").n_unique().alias("independent"),
    )
    error = _error(fit)
    reach = t_quantile(fit.level, fit.df) * error
    return means.select(
        pl.lit(name).alias("input"),
        pl.exclude("bin", "spread"),
        error.alias("standard_error"),
        (pl.col("mean") - reach).alias("low"),
        (pl.col("mean") + reach).alias("high"),
    )


def _error(fit: Fit) -> pl.Expr:
    """Standard errors of the bins' means; null where the fit has no degrees of freedom.

    From the spread of one run, or of the bin's own rows where that is larger: outliers make a mean unsure.
    """
    if fit.sigma is None or fit.df < 1 or fit.sigma == 0:
        return pl.lit(None, pl.Float64)
    one_run = pl.max_horizontal(pl.lit(fit.sigma * (100 if on_logs(fit) else 1)), "spread")
    return one_run / pl.col("independent").cast(pl.Float64).sqrt()


def drift(fit: Fit, bins: pl.DataFrame) -> str:
    """The largest bin mean in standard errors, and whether chance would leave one so large."""
    unit = 1 / (100 if on_logs(fit) else 1)
    if bins["standard_error"].null_count():
        largest = float(np.abs(bins["mean"].to_numpy()).max())
        return f"Residuals average at most {spread_words(fit, unit * largest)} in any bin"
    z = (bins["mean"] / bins["standard_error"]).to_numpy()
    index = int(np.abs(z).argmax())
    errors = abs(z[index])
    chance = min(1.0, 2 * len(z) * float(stdtr(fit.df, -errors)))
    worst = bins.row(index, named=True)
    where = amount(worst["input"], worst["from"], worst["to"])
    size = f"{'+' if worst['mean'] > 0 else '−'}{spread_words(fit, abs(unit * worst['mean']))}"
    if chance < DRIFTS:
        return f"The law drifts off its runs: they average {size} at {where} ({errors:.1f} s.e.)"
    return f"No drift is seen: the largest bin mean is {size}, at {where} ({errors:.1f} s.e.)"
