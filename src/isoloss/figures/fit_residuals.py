"""Where the law misses: observed against law, and residuals along each input."""

import altair as alt
import numpy as np
import polars as pl
from scipy.special import stdtr

from isoloss import text
from isoloss.analysis.residuals import on_logs
from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.fit import PANEL, PANELS_A_ROW, in_rows, levels_of
from isoloss.figures.fit_rows import (
    FEW,
    amount,
    axis,
    residual_words,
    row_words,
    rows,
    spread_words,
    value_words,
    varied,
    words,
)
from isoloss.figures.style import PREDICTED, QUIET, REAL
from isoloss.laws import Array, Fit
from isoloss.stats import t_quantile

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
    error = float(np.median(np.abs(points["residual"].to_numpy()))) / (100 if on_logs(fit) else 1)
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
    both = pl.concat([points["law"], points["observed"]])
    x = axis(alt.X, "law", f"{value_words(fit)}, by the law", both, log=log)
    y = axis(alt.Y, "observed", f"{value_words(fit)}, observed", both, log=log)
    # The scales show a little more than the rows; the identity runs through.
    low, high = marks.domain(x)
    ends = pl.DataFrame({"law": [low, high], "observed": [low, high]})
    layers = [marks.line(ends, x, y, colour=QUIET, dash=[5, 4], width=1.3)]
    if known:
        bars = points.select("law", "low", "high")
        layers.append(marks.bars(bars, x, y, colour=PREDICTED, opacity=0.45, width=2))
    shown = points.select("law", "observed", "colour", "shape")
    layers.append(marks.points(shown, x, y, shape=marks.SHAPE, size=34, opacity=0.85, clip=True))
    return Figure(
        name="real-against-predicted",
        chart=marks.panel(layers, 440, 440),
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
    points, inputs = rows(fit), varied(fit)
    bins = means(fit, points)
    title = drift(fit, bins)
    charts = [_along(fit, points, bins, inputs, place) for place in range(len(inputs))]
    bars = f" with {text.level(fit.level)} t intervals" if bins["low"].null_count() == 0 else ""
    return Figure(
        name="residuals",
        chart=in_rows(charts),
        title=title,
        subtitle=(
            f"{row_words(fit)}; diamonds: means of bins{bars}; dashed: one standard deviation of one run"
        ),
        characters=62 if len(inputs) < 3 else 88,
        description=f"Residuals against {text.listed(list(map(words, inputs)))}, with means of bins.",
        shows=(
            f"{title}. A law of the right form leaves means near 0 along every input; a bend says that the "
            "form is wrong there, and that it is wrong beyond."
        ),
        would_change="Another form with one more term, or runs at the ends of each input.",
        table=bins,
    )


def _along(
    fit: Fit, points: pl.DataFrame, bins: pl.DataFrame, inputs: list[str], place: int
) -> alt.LayerChart:
    """The panel of one input: residuals, and over them the means of its bins."""
    name, narrow = inputs[place], len(inputs) > 1
    shown = points.filter(pl.col(name) > 0).select(name, "residual")
    x = axis(alt.X, name, words(name), shown[name], narrow=narrow)
    y_title = residual_words(fit) if place % PANELS_A_ROW == 0 else ""
    y = axis(alt.Y, "residual", y_title, [*points["residual"], 0.0], log=False)
    middles = bins.filter(pl.col("input") == name).select(pl.col("at").alias(name), "mean", "low", "high")
    layers = [*levels_of(fit, y), marks.points(shown, x, y, colour=REAL, size=20, opacity=0.4)]
    if middles["low"].null_count() == 0:
        layers.append(marks.bars(middles, x, y, colour=OUTSIDE, width=2))
    mean = marks.renamed(y, "mean")
    layers.append(marks.points(middles, x, mean, colour=OUTSIDE, shape="diamond", size=60))
    return marks.panel(layers, PANEL if narrow else 2 * PANEL, PANEL - 30)


def means(fit: Fit, points: pl.DataFrame) -> pl.DataFrame:
    """Mean residuals along each varied input, with their standard errors and intervals."""
    return pl.concat(_bins(fit, points, name) for name in varied(fit))


def _bins(fit: Fit, points: pl.DataFrame, name: str) -> pl.DataFrame:
    """Means of residuals at each value of an input, or in bins of equal counts where values are many."""
    points = points.filter(pl.col(name) > 0).sort(name)
    if points[name].n_unique() <= FEW:
        index = points[name].rank("dense").cast(pl.Int64) - 1
    else:
        index = pl.Series((points[name].rank("ordinal").cast(pl.Int64) - 1) * BINS // points.height)
    binned = points.with_columns(index.alias("bin")).group_by("bin", maintain_order=True)
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
        largest = float(np.abs(bins["mean"].to_numpy()).max())
        return f"Residuals average at most {spread_words(fit, unit * largest)} in any bin"
    z = (bins["mean"] / bins["standard_error"]).to_numpy()
    place = int(np.abs(z).argmax())
    chance = min(1.0, 2 * len(z) * float(stdtr(fit.df, -abs(z[place]))))
    worst = bins.row(place, named=True)
    where = amount(worst["input"], worst["from"], worst["to"])
    size = f"{'+' if worst['mean'] > 0 else '−'}{spread_words(fit, abs(unit * worst['mean']))}"
    if chance < DRIFTS:
        return f"The law drifts off its runs: they average {size} at {where} ({abs(z[place]):.1f} s.e.)"
    return f"No drift is seen: the largest bin mean is {size}, at {where} ({abs(z[place]):.1f} s.e.)"
