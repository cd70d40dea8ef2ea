"""A backtest drawn: hidden runs beside their prediction and its interval, and the law among the baselines."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.figures.figure import Figure
from isoloss.figures.lines import chart_of
from isoloss.figures.style import INK, PREDICTED, REAL, linear_axis, log_axis, log_ticks
from isoloss.plans.backtest import Backtest, Standing

WIDTH, HEIGHT = 480, 360
ERROR_WIDTH = 230
LEFT_OUT, BASELINE = "#b5b5b5", "#6b6b6b"
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


def figure(found: Backtest) -> Figure:
    """Left: loss over scale, visible runs grey. Right: the mean miss of the law and of every baseline."""
    best, count = found.best_baseline, len(found.runs)
    title = (
        f"{found.law} misses {text.plural(count, 'hidden run')} by "
        f"{text.percent(found.score.mean_abs_error)} and {_TITLES[found.standing]} "
        f"({best.name}: {text.percent(best.mean_abs_error)})"
    )
    held = "the fit supports no interval"
    if found.coverage is not None:
        low, high = found.coverage.interval
        held = (
            f"the {text.level(found.level)} interval held {found.coverage.share:.0%} of "
            f"{found.coverage.points} points (share between {low:.0%} and {high:.0%})"
        )
    subtitle = (
        f"{text.capital(found.rule)}; {held}. Grey: visible runs. Blue: hidden runs. Orange: predicted by "
        f"{found.law} from the visible runs, with the {text.level(found.level)} interval of one new run. "
        f"Crosses: {best.name}. Runs of one scale are spread sideways. Right: mean absolute relative error "
        f"over the hidden runs."
    )
    table = table_of(found)
    return Figure(
        name="backtest",
        chart=alt.hconcat(_scale_panel(found, table), _error_panel(found), spacing=28),
        title=title,
        subtitle=subtitle,
        description=(
            f"Left, loss against {_axis_title(found)} on a log axis for {len(found.visible_loss)} visible "
            f"and {count} hidden runs, the latter beside their prediction with its interval. Right, one bar "
            f"for {found.law} and for each of {len(found.baselines)} baselines."
        ),
        shows=f"{found.verdict()} {text.capital(found.rule)}.",
        would_change=(
            "Hiding other runs, or more of them; a larger range of visible runs. The interval takes the law "
            "as true: a wrong law misses together, so a few hidden points say less than their number."
        ),
        table=table,
    )


def table_of(found: Backtest) -> pl.DataFrame:
    """Every run drawn: visible ones with their loss, hidden ones also with every prediction of it."""
    visible = pl.DataFrame({"scale": found.visible_scale, "observed": found.visible_loss}).with_columns(
        pl.lit("visible").alias("run")
    )
    hidden = pl.DataFrame(
        {
            "scale": [run.scale for run in found.runs],
            "observed": [run.observed for run in found.runs],
            "predicted": [run.predicted for run in found.runs],
            "low": [None if run.interval is None else run.interval[0] for run in found.runs],
            "high": [None if run.interval is None else run.interval[1] for run in found.runs],
            "inside": [run.inside for run in found.runs],
        }
        | {score.name: score.predicted for score in found.baselines},
        schema_overrides={"low": pl.Float64, "high": pl.Float64, "inside": pl.Boolean},
    ).with_columns(pl.lit("hidden").alias("run"))
    return pl.concat([visible, hidden], how="diagonal").select(
        "run", "scale", "observed", pl.exclude("run", "scale", "observed")
    )


def _scale_panel(found: Backtest, table: pl.DataFrame) -> alt.LayerChart:
    best = found.best_baseline.name
    apart = _spread(table["scale"].to_numpy(), table["observed"].to_numpy())
    table = table.with_columns(pl.Series("scale", apart))
    hidden = table.filter(pl.col("run") == "hidden")
    drawn = [table["observed"], hidden["predicted"], hidden[best]]
    # Intervals may reach far beyond the losses; they are clipped at the panel's edge.
    low, high = min(s.min() for s in drawn), max(s.max() for s in drawn)
    ends = table["scale"].min(), table["scale"].max()
    x = log_axis(alt.X, "scale", _axis_title(found), *ends, room=ROOM)
    if found.scale == "flops":  # 1e20 says more than 100E
        x = x.axis(values=log_ticks(ends[0] / ROOM, ends[1] * ROOM), format="~e", labelFlush=False)

    def y(column: str) -> alt.Y:
        return linear_axis(column, "Loss (nats per token)", low, high)

    visible = chart_of(table.filter(pl.col("run") == "visible").select("scale", "observed"))
    own = chart_of(hidden.rename({best: "baseline"}))
    parts = [
        visible.mark_point(filled=True, size=36, color=LEFT_OUT, opacity=0.9).encode(x, y("observed")),
        own.mark_point(shape="cross", filled=True, size=40, color=BASELINE, clip=True).encode(
            x, y("baseline")
        ),
        own.mark_point(shape="diamond", filled=True, size=44, opacity=1, color=PREDICTED).encode(
            x, y("predicted")
        ),
        own.mark_point(filled=True, size=30, opacity=1, color=REAL).encode(x, y("observed")),
    ]
    if found.coverage is not None:
        bars = own.mark_rule(strokeWidth=2.5, opacity=0.55, color=PREDICTED, clip=True)
        parts.insert(1, bars.encode(x, y("low"), y2="high:Q"))
    return alt.layer(*parts).properties(width=WIDTH, height=HEIGHT)


def _spread(scale_n: np.ndarray, order_n: np.ndarray) -> np.ndarray:
    """Runs of one scale side by side in order of loss, over at most half the way to the next scale."""
    log_n = np.log(scale_n)
    distinct = np.unique(np.round(log_n, 3))
    steps = np.diff(distinct)
    room = min(0.6 * float(np.min(steps, initial=np.inf)), 0.1 * float(np.ptp(log_n)))
    out = log_n.copy()
    for value in distinct:
        own = np.flatnonzero(np.round(log_n, 3) == value)
        place = np.argsort(np.argsort(order_n[own], kind="stable"))
        out[own] += room * ((place + 0.5) / len(own) - 0.5)
    return np.exp(out)


def _error_panel(found: Backtest) -> alt.LayerChart:
    """A bar for each predictor, smallest miss first; bars start at 0, labels stand on them."""
    scores = sorted((found.score, *found.baselines), key=lambda score: score.mean_abs_error)
    rows = pl.DataFrame(
        {
            "name": [score.name for score in scores],
            "miss": [100 * score.mean_abs_error for score in scores],
            "colour": [PREDICTED if score is found.score else LEFT_OUT for score in scores],
            "label": [text.percent(score.mean_abs_error) for score in scores],
        }
    )
    names = rows["name"].to_list()
    y = alt.Y("name:N", title=None, sort=names).axis(labelLimit=200, ticks=False, domain=False)
    x = alt.X("miss:Q", title="Mean absolute error (%)").scale(domain=[0, rows["miss"].max() * 1.2])
    colour = alt.Color("colour:N", scale=None)
    bars = chart_of(rows).mark_bar(height=16).encode(x, y, color=colour)
    labels = chart_of(rows).mark_text(align="left", dx=5, fontSize=12, color=INK).encode(x, y, text="label:N")
    return alt.layer(bars, labels).properties(width=ERROR_WIDTH, height=HEIGHT)


def _axis_title(found: Backtest) -> str:
    return _UNITS.get(found.scale, found.scale)
