"""A backtest drawn: hidden runs beside their prediction and its interval, and the law among the baselines."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import COUNTS, INK, POWERS, PREDICTED, REAL, linear_axis, log_axis
from isoloss.laws import Array
from isoloss.plans.backtest import Backtest
from isoloss.plans.standing import Standing

WIDTH, HEIGHT = 480, 360
ERROR_WIDTH = 230
LEFT_OUT, BASELINE = "#b5b5b5", "#6b6b6b"
NEAREST = 3.0
"""Visible runs are drawn from at most this factor below the hidden ones, or as far below as those reach."""
ROOM = 1.25

_UNITS = {
    "flops": "Training FLOPs C, 6 N D",
    "params": "Parameters N",
    "tokens": "Training tokens D",
    "recurrence": "Recurrence",
    "position": "Position in the context T",
}
_TITLES = {
    Standing.AHEAD: "beats the best baseline",
    Standing.BEHIND: "is beaten by the best baseline",
    Standing.NOT_TOLD_APART: "is not told apart from the best baseline",
    Standing.TOO_FEW: "has too few hidden points for a verdict",
}


def figure(outcome: Backtest) -> Figure:
    """Left: loss over scale, visible runs grey. Right: the mean miss of the law and of every baseline."""
    best, count = outcome.best_baseline, len(outcome.runs)
    title = (
        f"{outcome.law} misses {text.plural(count, 'hidden run')} by "
        f"{text.percent(outcome.score.mean_abs_error)} and {_TITLES[outcome.standing]} "
        f"({best.words}: {text.percent(best.mean_abs_error)})"
    )
    held = "the fit supports no interval"
    if outcome.coverage is not None:
        low, high = outcome.coverage.interval
        share, low, high = (text.percent(share, 0) for share in (outcome.coverage.share, low, high))
        held = (
            f"the {text.level(outcome.level)} interval held {share} of {outcome.coverage.points} points "
            f"(share between {low} and {high})"
        )
    table = table_of(outcome)
    return captioned(
        "backtest",
        alt.hconcat(_scale_panel(outcome, table), _error_panel(outcome), spacing=28),
        title,
        table,
        rule=text.capital(outcome.rule),
        held=held,
        law=outcome.law,
        level=text.level(outcome.level),
        best=best.words,
        scale=_UNITS.get(outcome.scale, outcome.scale),
        visible=len(outcome.visible_loss),
        hidden=count,
        baselines=len(outcome.baselines),
        verdict=outcome.verdict(),
    )


def table_of(outcome: Backtest) -> pl.DataFrame:
    """Every run drawn: visible ones with their loss, hidden ones also with every prediction of it."""
    visible = pl.DataFrame({"scale": outcome.visible_scale, "observed": outcome.visible_loss}).with_columns(
        pl.lit("visible").alias("run")
    )
    rows = [
        (run.scale, run.observed, run.predicted, *(run.interval or (None, None)), run.inside)
        for run in outcome.runs
    ]
    numbers = dict.fromkeys(("scale", "observed", "predicted", "low", "high"), pl.Float64)
    hidden = pl.DataFrame(rows, schema=numbers | {"inside": pl.Boolean}, orient="row").with_columns(
        *(pl.Series(score.name, score.predicted) for score in outcome.baselines), run=pl.lit("hidden")
    )
    return pl.concat([visible, hidden], how="diagonal").select(
        "run", "scale", "observed", pl.exclude("run", "scale", "observed")
    )


def _scale_panel(outcome: Backtest, table: pl.DataFrame) -> alt.LayerChart:
    best = outcome.best_baseline.name
    apart = _spread(table["scale"].to_numpy(), table["observed"].to_numpy())
    table = table.with_columns(pl.Series("scale", apart))
    table = _near_hidden(table)
    hidden, visible = (table.filter(pl.col("run") == kind) for kind in ("hidden", "visible"))
    x = log_axis(
        alt.X,
        "scale",
        _UNITS.get(outcome.scale, outcome.scale),
        *marks.span(table["scale"]),
        room=ROOM,
        labels=POWERS if outcome.scale == "flops" else COUNTS,
    )
    # Intervals may reach far beyond the losses; they are clipped at the panel's edge.
    low, high = marks.span(table["observed"], hidden["predicted"], hidden[best])
    y = linear_axis("observed", f"Loss ({outcome.fit.loss_unit})", low, high)
    baseline, predicted = marks.renamed(y, "baseline"), marks.renamed(y, "predicted")
    runs = hidden.rename({best: "baseline"})
    layers = [marks.points(visible.select("scale", "observed"), x, y, colour=LEFT_OUT, size=36, opacity=0.9)]
    if outcome.coverage is not None:
        layers.append(marks.bars(runs, x, y, colour=PREDICTED, width=2.5, opacity=0.55, clip=True))
    layers += [
        marks.points(runs, x, baseline, colour=BASELINE, shape="cross", opacity=0.7, clip=True),
        marks.points(runs, x, predicted, colour=PREDICTED, shape="diamond", size=44),
        marks.points(runs, x, y, colour=REAL, size=30),
    ]
    return marks.panel(layers, WIDTH, HEIGHT)


def _near_hidden(table: pl.DataFrame) -> pl.DataFrame:
    """The hidden runs and the visible ones near them in scale and loss: others would make them small."""
    hidden = table.filter(run="hidden")
    first, last = marks.span(hidden["scale"])
    low, high = marks.span(hidden["observed"], hidden["predicted"])
    above = max(high - low, 0.2 * float(np.ptp(table["observed"].to_numpy())))
    near = (pl.col("scale") >= first / max(last / first, NEAREST)) & (pl.col("observed") <= high + above)
    return table.filter((pl.col("run") == "hidden") | near)


def _spread(scale_n: Array, order_n: Array) -> Array:
    """Runs of one scale side by side in order of loss, over at most half the way to the next scale."""
    log_n = np.log(scale_n)
    distinct = np.unique(np.round(log_n, 3))
    steps = np.diff(distinct)
    room = min(0.6 * float(np.min(steps, initial=np.inf)), 0.1 * float(np.ptp(log_n)))
    out = log_n.copy()
    for value in distinct:
        runs = np.flatnonzero(np.round(log_n, 3) == value)
        rank = np.argsort(np.argsort(order_n[runs], kind="stable"))
        out[runs] += room * ((rank + 0.5) / len(runs) - 0.5)
    return np.exp(out)


def _error_panel(outcome: Backtest) -> alt.LayerChart:
    """A bar for each predictor, smallest miss first; bars start at 0, labels stand on them."""
    forecasts = () if outcome.forecast is None else (outcome.forecast.score,)
    scores = sorted((outcome.score, *forecasts, *outcome.baselines), key=lambda score: score.mean_abs_error)
    rows = pl.DataFrame(
        {
            "name": [score.words for score in scores],
            "miss": [100 * score.mean_abs_error for score in scores],
            "colour": [PREDICTED if score is outcome.score else LEFT_OUT for score in scores],
            "label": [text.percent(score.mean_abs_error) for score in scores],
        }
    )
    y = alt.Y("name:N", title=None, sort=rows["name"].to_list())
    y = y.axis(labelLimit=200, ticks=False, domain=False)
    x = alt.X("miss:Q", title="Mean absolute error (%)").scale(domain=[0, 1.2 * marks.span(rows["miss"])[1]])
    chart = marks.chart_of(rows).encode(x, y)
    labels = chart.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(text="label:N")
    bars = chart.mark_bar(height=16).encode(color=marks.COLOUR)
    return marks.panel([bars, labels], ERROR_WIDTH, HEIGHT)
