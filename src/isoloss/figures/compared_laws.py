"""Laws on runs that they have not seen: each one's error, and how far it lies behind the best."""

import altair as alt
import polars as pl

from isoloss import text
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL
from isoloss.plans.compare import Comparison

WIDTH, ROW = 260, 30
PANELS = {"largest": "Error on the largest runs, hidden (%)", "folds": "Error on folds (%)"}
BEST, FORECAST = (PREDICTED, "diamond"), (INK, "square")


def figure(outcome: Comparison) -> Figure:
    """A panel for the hidden largest runs and one for the folds, a row a law.

    A bar is the interval of how many times the best one's errors the law's are, times the best one's error.
    """
    table = rows_of(outcome)
    order = table["law"].unique(maintain_order=True).to_list()
    panels = [_panel(table.filter(pl.col("split") == split), split, order) for split in PANELS]
    best, others = outcome.best, outcome.entries[1:]
    equal = sum(law.behind_largest is not None and not law.behind_largest.told_apart for law in others)
    title = f"{best.law} errs least on {outcome.hidden_words}"
    title += "" if best.largest is None else f" ({text.percent(best.largest)})"
    if equal:
        title += f"; {equal} of {text.plural(len(others), 'other')} are not told apart from it"
    refused = "".join(f" {law}: refused, {reason}." for law, reason in outcome.refused)
    return captioned(
        "compared-laws",
        alt.hconcat(*panels, spacing=24),
        title,
        table.drop("colour", "shape"),
        rule=outcome.rule,
        folds=outcome.fold_count,
        level=text.level(outcome.level),
        verdict=outcome.verdict(),
        refused=refused,
    )


def rows_of(outcome: Comparison) -> pl.DataFrame:
    """split, law, error, low, high (percent; the ends are null for the best), colour, shape."""
    rows = []
    for split in PANELS:
        errors = {law.law: getattr(law, split) for law in outcome.entries}
        least = min((error for error in errors.values() if error is not None), default=None)
        for law in outcome.entries:
            behind = getattr(law, f"behind_{split}")
            times = None if behind is None else behind.times
            low, high = (None, None) if times is None or least is None else (100 * least * t for t in times)
            error = None if errors[law.law] is None else 100 * errors[law.law]
            rows.append((split, law.law, error, low, high, *(BEST if behind is None else (REAL, "circle"))))
    if outcome.forecast is not None:
        rows.append(("largest", "forecast", 100 * outcome.forecast, None, None, *FORECAST))
    numbers = dict.fromkeys(("error", "low", "high"), pl.Float64)
    looks = {"colour": pl.String, "shape": pl.String}
    return pl.DataFrame(rows, schema={"split": pl.String, "law": pl.String} | numbers | looks, orient="row")


def _panel(table: pl.DataFrame, split: str, order: list[str]) -> alt.LayerChart:
    table = table.drop_nulls("error")
    least = table.filter(pl.col("law") != "forecast")["error"].min()
    # Intervals over few hidden runs reach far beyond the errors; they are clipped at the panel's edge.
    most = float(table["error"].to_numpy().max(initial=0.0))
    x = alt.X("error:Q", title=PANELS[split]).scale(domain=[0, 1.15 * most], nice=False).axis(tickCount=5)
    y = alt.Y("law:N", sort=order, title=None).scale(domain=order)
    y = y.axis(ticks=False, labelPadding=8, labelLimit=200)
    best = marks.chart_of(pl.DataFrame({"error": [least]}, schema={"error": pl.Float64}))
    bars = marks.chart_of(table.drop_nulls("low")).mark_rule(strokeWidth=2, clip=True)
    layers = [
        best.mark_rule(color=QUIET, strokeDash=[4, 4]).encode(x),
        bars.encode(marks.renamed(x, "low"), y, x2="high:Q", color=marks.COLOUR),
        marks.points(table, x, y, shape=marks.SHAPE, size=70),
    ]
    return marks.panel(layers, WIDTH, ROW * len(order))
