"""Where the law misses: observed against law, and residuals along each input."""

import altair as alt
import numpy as np
import polars as pl
from scipy.special import stdtr

from isoloss import text
from isoloss.figures.figure import Figure
from isoloss.figures.fit import PANEL, in_rows, levels_of
from isoloss.figures.fit_rows import (
    FEW,
    amount,
    axis,
    chart_of,
    on_logs,
    renamed,
    residual_words,
    row_words,
    rows,
    spread_words,
    value_words,
    varied,
    words,
)
from isoloss.figures.style import PREDICTED, QUIET, REAL
from isoloss.laws import Array, Fit, t_quantile

OUTSIDE = "#CC5500"
BINS = 6
DRIFTS = 0.05
"""A bin's mean counts as a drift if chance makes one so large among all bins less often than this."""


def real_against_predicted(fit: Fit) -> Figure:
    """Each row's loss over the law's, with the interval of one new run. Raises Refusal without rows."""
    points = rows(fit)
    known = points["low"].null_count() == 0
    inside = (points["low"] <= points["observed"]) & (points["observed"] <= points["high"])
    points = points.with_columns(
        inside.alias("inside"),
        pl.when(inside | (not known)).then(pl.lit(REAL)).otherwise(pl.lit(OUTSIDE)).alias("colour"),
    )
    # Two symbols besides two colours.
    points = points.with_columns(
        pl.when(pl.col("colour") == REAL).then(pl.lit("circle")).otherwise(pl.lit("cross")).alias("shape")
    )
    error = np.median(np.abs(points["residual"].to_numpy())) / (100 if on_logs(fit) else 1)
    if known:
        title = (
            f"{inside.sum()} of {points.height} rows lie inside their {text.level(fit.level)} interval; the "
            f"median row is {spread_words(fit, error)} off"
        )
        how = f"bars: {text.level(fit.level)} interval of one new run; crosses: rows outside it"
    else:
        title = f"The median of {points.height} rows is {spread_words(fit, error)} off the law"
        how = "the fit supports no interval"
    log = fit.form.gives != "loss"
    both = np.concatenate([points["law"], points["observed"]])
    x = axis(alt.X, "law", f"{value_words(fit)}, by the law", both, log=log)
    y = axis(alt.Y, "observed", f"{value_words(fit)}, observed", both, log=log)
    # The scales show a little more than the rows; the identity runs through.
    ends = pl.DataFrame({"law": x["scale"]["domain"], "observed": x["scale"]["domain"]})
    parts = [chart_of(ends).mark_line(color=QUIET, strokeDash=[5, 4], strokeWidth=1.3).encode(x, y)]
    if known:
        bars = chart_of(points.select("law", "low", "high")).mark_rule(
            color=PREDICTED, opacity=0.45, strokeWidth=2, clip=True
        )
        parts.append(bars.encode(x, renamed(y, "low"), y2="high:Q"))
    parts.append(
        chart_of(points.select("law", "observed", "colour", "shape"))
        .mark_point(filled=True, size=34, opacity=0.85, clip=True)
        .encode(x, y, color=alt.Color("colour:N", scale=None), shape=alt.Shape("shape:N", scale=None))
    )
    return Figure(
        name="real-against-predicted",
        chart=alt.layer(*parts).properties(width=440, height=440),
        title=title,
        subtitle=f"{row_words(fit)}, the same that were fitted; dashed: equal; {how}",
        characters=62,
        description="Observed loss against the law's, a point a row, along the line of equal values.",
        shows=f"{title}. These rows made the law, so this says how well it fits, not how well it predicts.",
        would_change="Rows that the fit has not seen: a backtest hides the largest and predicts them.",
        table=points.drop("colour", "shape", "label"),
    )


def residuals(fit: Fit) -> Figure:
    """Residuals along each input with the means of bins: a law of the wrong form leaves a bend in them.

    The interval of a bin's mean is t over what counts as independent in it (designs, or clusters), from the
    spread of one run. Raises Refusal for a fit without rows.
    """
    points = rows(fit)
    drawn = varied(fit)
    bins = means(fit, points)
    title = drift(fit, bins)
    y_values = np.concatenate([points["residual"], [0.0]])
    charts = []
    for place, name in enumerate(drawn):
        own = points.filter(pl.col(name) > 0).select(name, "residual")
        x = axis(alt.X, name, words(name), own[name].to_numpy(), narrow=len(drawn) > 1)
        y = axis(alt.Y, "residual", residual_words(fit) if place % 3 == 0 else "", y_values, log=False)
        middles = bins.filter(pl.col("input") == name).select(pl.col("at").alias(name), "mean", "low", "high")
        parts = [
            *levels_of(fit, y),
            chart_of(own).mark_point(filled=True, size=20, color=REAL, opacity=0.4).encode(x, y),
        ]
        if middles["low"].null_count() == 0:
            bars = chart_of(middles).mark_rule(color=OUTSIDE, strokeWidth=2, clip=True)
            parts.append(bars.encode(x, renamed(y, "low"), y2="high:Q"))
        dots = chart_of(middles).mark_point(filled=True, size=60, color=OUTSIDE, shape="diamond", opacity=1)
        parts.append(dots.encode(x, renamed(y, "mean")))
        width = PANEL if len(drawn) > 1 else 2 * PANEL
        charts.append(alt.layer(*parts).properties(width=width, height=PANEL - 30))
    bars = f" with {text.level(fit.level)} t intervals" if bins["low"].null_count() == 0 else ""
    return Figure(
        name="residuals",
        chart=in_rows(charts),
        title=title,
        subtitle=(
            f"{row_words(fit)}; diamonds: means of bins{bars}; dashed: one standard deviation of one run"
        ),
        characters=62 if len(drawn) < 3 else 88,
        description=f"Residuals against {text.listed([words(name) for name in drawn])}, with means of bins.",
        shows=(
            f"{title}. A law of the right form leaves means near 0 along every input; a bend says that the "
            "form is wrong there, and that it is wrong beyond."
        ),
        would_change="Another form with one more term, or runs at the ends of each input.",
        table=bins,
    )


def means(fit: Fit, points: pl.DataFrame) -> pl.DataFrame:
    """Mean residuals along each varied input, with their standard errors and intervals."""
    return pl.concat(_bins(fit, points, name) for name in varied(fit))


def _bins(fit: Fit, points: pl.DataFrame, name: str) -> pl.DataFrame:
    """Means of residuals at each value of an input, or in bins of equal counts where values are many."""
    own = points.filter(pl.col(name) > 0).sort(name)
    distinct = own[name].n_unique()
    if distinct <= FEW:
        number = own[name].rank("dense").cast(pl.Int64) - 1
    else:
        number = pl.Series((own[name].rank("ordinal").cast(pl.Int64) - 1) * BINS // own.height)
    binned = own.with_columns(number.alias("bin")).group_by("bin", maintain_order=True)
    means = binned.agg(
        pl.col(name).log().mean().exp().alias("at"),
        pl.col(name).min().alias("from"),
        pl.col(name).max().alias("to"),
        pl.col("residual").mean().alias("mean"),
        pl.col("residual").std().fill_null(0.0).alias("spread"),
        pl.len().alias("rows"),
        pl.col("label").n_unique().alias("independent"),
    )
    error = _error(fit, means)
    reach = None if error is None else t_quantile(fit.level, fit.df) * error
    nothing = pl.lit(None, pl.Float64)
    return means.select(
        pl.lit(name).alias("input"),
        pl.exclude("bin", "spread"),
        (nothing if error is None else pl.Series(error)).alias("standard_error"),
        (nothing if reach is None else pl.col("mean") - pl.Series(reach)).alias("low"),
        (nothing if reach is None else pl.col("mean") + pl.Series(reach)).alias("high"),
    )


def _error(fit: Fit, means: pl.DataFrame) -> Array | None:
    """Standard errors of the bins' means; None where the fit has no degrees of freedom.

    From the spread of one run, or of the bin's own rows where that is larger: outliers make a mean unsure.
    """
    if fit.sigma is None or fit.df < 1 or fit.sigma == 0:
        return None
    one_run = np.maximum(fit.sigma * (100 if on_logs(fit) else 1), means["spread"].to_numpy())
    return one_run / np.sqrt(means["independent"].to_numpy())


def drift(fit: Fit, bins: pl.DataFrame) -> str:
    """The largest bin mean in standard errors, and whether chance would leave one so large."""
    unit = 1 / (100 if on_logs(fit) else 1)
    if bins["standard_error"].null_count():
        return f"Residuals average at most {spread_words(fit, unit * bins['mean'].abs().max())} in any bin"
    z = bins["mean"] / bins["standard_error"]
    place = int(z.abs().arg_max())
    chance = min(1.0, 2 * len(z) * float(stdtr(fit.df, -abs(z[place]))))
    worst = bins.row(place, named=True)
    where = amount(worst["input"], worst["from"], worst["to"])
    size = f"{'+' if worst['mean'] > 0 else '−'}{spread_words(fit, abs(unit * worst['mean']))}"
    if chance < DRIFTS:
        return f"The law drifts off its runs: they average {size} at {where} ({abs(z[place]):.1f} s.e.)"
    return f"No drift is seen: the largest bin mean is {size}, at {where} ({abs(z[place]):.1f} s.e.)"
