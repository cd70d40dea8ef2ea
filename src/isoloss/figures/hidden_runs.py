"""Hidden runs one by one: predicted against observed, and each one's error with its interval."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import inside_words, symbol
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import PREDICTED, QUIET, REAL, linear_axis
from isoloss.plans.backtest import Backtest

SIDE, ROWS = 340, 40
OUTSIDE = "#CC5500"


def figure(outcome: Backtest) -> Figure:
    """Left the hidden losses against the law's, right the error of each, the smallest run on top."""
    table = rows_of(outcome)
    held = int(table["inside"].sum()) if table["inside"].null_count() == 0 else None
    worst = table.sort(pl.col("error").abs()).row(-1, named=True)
    title = f"The farthest miss is {text.signed_percent(worst['error'] / 100)}, at {worst['run']}"
    if held is not None:
        title = inside_words("hidden runs", held, table.height, outcome.level)
    shown = table.sort("scale").tail(ROWS)
    return captioned(
        "hidden-runs",
        alt.hconcat(_losses(table, outcome.fit.loss_unit), _errors(shown), spacing=40),
        title,
        table.drop("colour", "shape"),
        law=outcome.law,
        rule=text.capital(outcome.rule),
        level=text.level(outcome.level),
        crosses="" if table["inside"].all() else "; crosses: runs outside it",
        worst=f"{text.signed_percent(worst['error'] / 100)} at {worst['run']}",
        shown="" if shown.height == table.height else f" The {ROWS} largest are drawn on the right.",
    )


def rows_of(outcome: Backtest) -> pl.DataFrame:
    """run, scale, observed, predicted, error (percent), low, high (of the error), inside, colour, shape."""
    rows = []
    for run in outcome.runs:
        name = ", ".join(f"{symbol(key)} {text.count(value)}" for key, value in run.inputs.items())
        ends = [100 * (end / run.observed - 1) for end in run.interval] if run.interval else [None, None]
        look = (OUTSIDE, "cross") if run.inside is False else (REAL, "circle")
        error = 100 * run.relative_error
        rows.append((name, run.scale, run.observed, run.predicted, error, *ends, run.inside, *look))
    numbers = dict.fromkeys(("scale", "observed", "predicted", "error", "low", "high"), pl.Float64)
    looks = {"inside": pl.Boolean, "colour": pl.String, "shape": pl.String}
    return pl.DataFrame(rows, schema={"run": pl.String} | numbers | looks, orient="row")


def _losses(table: pl.DataFrame, unit: str) -> alt.LayerChart:
    low, high = marks.span(table["observed"], table["predicted"])
    y = linear_axis("predicted", f"Predicted loss ({unit})", low, high)
    domain = list(marks.domain(y))
    x = alt.X("observed:Q", title=f"Observed loss ({unit})").scale(domain=domain, zero=False, nice=False)
    ends = pl.DataFrame({"observed": domain, "predicted": domain})
    layers = [
        marks.line(ends, x, y, colour=QUIET, dash=[5, 4], width=1.3),
        marks.points(table, x, y, shape=marks.SHAPE, size=42),
    ]
    return marks.panel(layers, SIDE, SIDE)


def _errors(table: pl.DataFrame) -> alt.LayerChart:
    reach = 1.1 * float(np.nanmax(np.abs(table.select("error", "low", "high").to_numpy().astype(float))))
    order = table["run"].unique(maintain_order=True).to_list()
    x = alt.X("error:Q", title="Predicted minus observed (%)").scale(domain=[-reach, reach], nice=False)
    y = alt.Y("run:N", sort=order, title=None).axis(labelLimit=220, labelPadding=8, ticks=False)
    zero = marks.chart_of(pl.DataFrame({"error": [0.0]})).mark_rule(color=QUIET).encode(x)
    bars = marks.chart_of(table.filter(pl.col("low").is_not_null())).mark_rule(strokeWidth=2.5, opacity=0.5)
    layers = [
        zero,
        bars.encode(marks.renamed(x, "low"), y, x2="high:Q", color=alt.ColorValue(PREDICTED)),
        marks.points(table, x, y, shape=marks.SHAPE, size=42),
    ]
    return marks.panel(layers, SIDE, max(SIDE, 16 * len(order)))
