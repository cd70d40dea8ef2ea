"""A plan in three figures: the frontier it lies on, the sizes that are best, and what another size costs."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import InputError
from isoloss.figures.figure import Figure
from isoloss.figures.lines import chart_of
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL, linear_axis, log_ticks
from isoloss.laws import Fit
from isoloss.plans import Plan
from isoloss.plans.curve import Optima, optima
from isoloss.plans.rules import kaplan, twenty_tokens
from isoloss.plans.setting import Setting, run_sizes

WIDTH, HEIGHT = 640, 360
PANEL = 330
POINTS, DRAWS = 49, 400
_POWERS = "replace(format(datum.value, '.0e'), 'e+', 'e')"
DECADES = 2.0
"""How far the curves go below the plan's budget where there are no data."""
PANELS = {"params": "Parameters N", "tokens": "Training tokens D"}
RULES = {"Kaplan et al. 2020, Table 6": kaplan, "20 tokens a parameter": twenty_tokens}


def curve(fit: Fit, plan: Plan) -> Optima:
    """The best models from the smallest run, or two decades below the plan, to a little above the plan."""
    runs = _runs(fit, plan)
    low = plan.flops / 10**DECADES if runs is None else min(runs["flops"].min(), plan.flops / 10)
    high = plan.flops if runs is None else max(runs["flops"].max(), plan.flops)
    setting = Setting(
        plan.given.get("unique_tokens", np.inf),
        plan.given.get("recurrence"),
        plan.given.get("recurrent_share"),
    )
    return optima(
        fit,
        np.geomspace(low, 3 * high, POINTS),
        setting=setting,
        flops_per_token=plan.flops_per_token,
        level=plan.level,
        draws=DRAWS,
    )


def frontier(fit: Fit, plan: Plan) -> Figure:
    """Loss over training compute: the runs, the least loss that the law gives each budget, and the plan."""
    best, runs = curve(fit, plan), _runs(fit, plan)
    table = _frontier_table(best)
    losses = [*table["loss"], plan.loss, *([] if runs is None else runs["loss"])]
    x = _flops_axis(best, runs)
    y = linear_axis("loss", "Loss (nats per token)", min(losses), _high(losses, best))
    parts = [
        chart_of(table)
        .mark_area(opacity=0.18, color=PREDICTED, clip=True)
        .encode(x, _as(y, "low"), y2="high:Q"),
        chart_of(table).mark_line(strokeWidth=2.5, color=PREDICTED, clip=True).encode(x, y),
    ]
    if runs is not None:
        parts.insert(
            0,
            chart_of(runs).mark_point(filled=True, size=28, color=REAL, opacity=0.55, clip=True).encode(x, y),
        )
    parts += _plan_mark(plan, x, y)
    interval = plan.intervals["loss"]
    between = f" ({text.interval(interval, text.loss)})" if interval else ""
    title = f"{text.power(plan.flops)} FLOPs buy a loss of {text.loss(plan.loss)}{between}{_beyond(plan)}"
    band = (
        f"band: {text.level(plan.level)} interval of the law's mean; bar: of one new run"
        if interval
        else ("the fit supports no interval")
    )
    points = "" if runs is None else f"points: the {runs.height} runs fitted; "
    return Figure(
        name="plan-frontier",
        chart=alt.layer(*parts).properties(width=WIDTH, height=HEIGHT),
        title=title,
        subtitle=(
            f"{points}line: the least loss for each budget by the law {fit.law}, C = "
            f"{plan.flops_per_token:g} N D; {band}"
        ),
        characters=80,
        description="Loss against training compute (log axis): runs, the law's frontier and band, the plan.",
        shows=f"{title}. The line is the law at the best split of each budget, not a curve through runs.",
        would_change="Runs at larger budgets: the band holds only if the law goes on as it was fitted.",
        table=table,
    )


def allocation(fit: Fit, plan: Plan) -> Figure:
    """The best N and D over compute, with intervals, beside two rules that papers print."""
    best, runs = curve(fit, plan), _runs(fit, plan)
    rows, rules = [], []
    drawn = {"params": (best.params_F, best.params_ends), "tokens": (best.tokens_F, best.tokens_ends)}
    for place, (panel, (values, ends)) in enumerate(drawn.items()):
        low, high = (values, values) if ends is None else ends
        rows += _rows(panel=panel, flops=best.flops_F, value=values, low=low, high=high)
        for name, rule in RULES.items():
            theirs = np.array([rule(c)[place] for c in best.flops_F])
            rules += _rows(panel=panel, flops=best.flops_F, value=theirs, rule=[name] * len(theirs))
    charts = [_allocation_panel(column, rows, rules, best, runs, plan) for column in PANELS]
    slope = np.polyfit(np.log(best.flops_F), np.log(best.params_F), 1)[0]
    sizes = plan.intervals.get("params")
    title = f"The best model for {text.power(plan.flops)} FLOPs has {text.count(plan.params)} parameters"
    if plan.penalty is None:
        title = f"The plan for {text.power(plan.flops)} FLOPs has {text.count(plan.params)} parameters"
    if sizes is not None:
        title += f" ({text.interval(sizes, text.count)})"
    title += f", {plan.tokens_per_param:.3g} tokens each"
    return Figure(
        name="plan-allocation",
        chart=alt.hconcat(*charts, spacing=36),
        title=title,
        subtitle=(
            f"line and band: the law {fit.law} and its {text.level(best.level)} interval; N grows as "
            f"C^{slope:.2f} here; grey: rules that papers print"
        ),
        characters=92,
        description="Two panels over compute (log axes): the best N and the best D, with two printed rules.",
        shows=f"{title}. Over the range drawn the best N grows as C^{slope:.2f}.",
        would_change="Another counting rule for N or C, or runs at larger budgets.",
        table=pl.DataFrame(rows),
    )


def penalty(plan: Plan) -> Figure:
    """What another size costs: in loss for the same compute, and in compute for the same loss.

    Raises InputError for a plan whose N or D was fixed: it has no optimum to leave.
    """
    if plan.penalty is None:
        raise InputError(
            "this plan fixes N or D: it has no penalty curve", mend="plan with flops or loss alone"
        )
    off = plan.penalty
    table = pl.DataFrame(
        {
            "factor": off.factor,
            "extra_loss": off.extra_loss,
            "extra_compute": [None if e is None else 100 * e for e in off.extra_compute],
        },
        schema=dict.fromkeys(("factor", "extra_loss", "extra_compute"), pl.Float64),
    )
    low, high = off.within_10_percent
    span = [1 / 8 if low is None else low, 8.0 if high is None else high]
    charts = [
        _penalty_panel(table, "extra_loss", "Extra loss, same compute (nats)", span, None),
        _penalty_panel(table, "extra_compute", "Extra compute, same loss (%)", span, 200.0),
    ]
    first = "less than 1/8" if low is None else f"{low:.2f}"
    last = "more than 8" if high is None else f"{high:.2f}"
    title = f"From {first} to {last} times the best size, the same loss costs at most 10% more compute"
    missing = table["extra_compute"].null_count()
    gap = "; left of the curve no number of tokens reaches the loss" if missing else ""
    return Figure(
        name="plan-penalty",
        chart=alt.hconcat(*charts, spacing=36),
        title=title,
        subtitle=(
            f"around N = {text.count(plan.params)} at {text.power(plan.total_flops)} FLOPs by the law "
            f"{plan.law}; shaded: at most 10%{gap}"
        ),
        characters=92,
        description="Two panels over N divided by the best N (log axis): extra loss, extra compute in %.",
        shows=f"{title}.",
        would_change="Another law or other exponents: the curve is the law's own, without an interval.",
        table=table,
    )


def _runs(fit: Fit, plan: Plan) -> pl.DataFrame | None:
    """N, D, training FLOPs and loss of the runs behind the fit, counted as the plan counts."""
    sizes = run_sizes(fit)
    if sizes is None:
        return None
    params, tokens, executed = sizes
    return pl.DataFrame(
        {
            "params": params,
            "tokens": tokens,
            "flops": plan.flops_per_token * executed * tokens,
            "loss": np.array(fit.data.loss),
        }
    )


def _frontier_table(best: Optima) -> pl.DataFrame:
    low, high = (best.loss_F, best.loss_F) if best.band is None else best.band
    return pl.DataFrame(
        _rows(
            flops=best.flops_F,
            loss=best.loss_F,
            low=low,
            high=high,
            params=best.params_F,
            tokens=best.tokens_F,
        )
    )


def _rows(panel: str | None = None, **columns) -> list[dict]:
    """One dictionary a row; rows without a number are left out."""
    rows = [
        {
            name: value if isinstance(value, str) else float(value)
            for name, value in zip(columns, row, strict=True)
        }
        for row in zip(*columns.values(), strict=True)
    ]
    rows = [row for row in rows if all(isinstance(v, str) or np.isfinite(v) for v in row.values())]
    return rows if panel is None else [{"panel": panel} | row for row in rows]


def _flops_axis(best: Optima, runs: pl.DataFrame | None) -> alt.X:
    low, high = best.flops_F.min(), best.flops_F.max()
    if runs is not None:
        low = min(low, runs["flops"].min())
    return (
        alt.X("flops:Q", title="Training compute C, FLOPs (log scale)")
        .scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
        .axis(values=log_ticks(low / 1.3, high * 1.3), labelExpr=_POWERS, labelFlush=False)
    )


def _allocation_panel(column: str, rows, rules, best: Optima, runs, plan: Plan) -> alt.LayerChart:
    own, theirs = (pl.DataFrame(each).filter(pl.col("panel") == column) for each in (rows, rules))
    low, high = min(own["low"].min(), theirs["value"].min()), max(own["high"].max(), theirs["value"].max())
    x = _flops_axis(best, None)
    y = (
        alt.Y("value:Q", title=f"{PANELS[column]} (log scale)")
        .scale(type="log", domain=[low / 1.5, high * 1.5], nice=False)
        .axis(values=log_ticks(low / 1.5, high * 1.5), format="~s")
    )
    dash = alt.StrokeDash(
        "rule:N",
        scale=alt.Scale(domain=list(RULES), range=[[7, 4], [2, 3]]),
        legend=alt.Legend(title=None, orient="bottom", symbolStrokeColor=QUIET, symbolSize=700),
    )
    parts = []
    if runs is not None:
        inside = runs.filter(pl.col("flops") >= best.flops_F.min()).select(
            "flops", pl.col(column).alias("value")
        )
        parts.append(
            chart_of(inside).mark_point(filled=True, size=16, color=REAL, opacity=0.4, clip=True).encode(x, y)
        )
    parts += [
        chart_of(theirs).mark_line(strokeWidth=1.5, color=QUIET, clip=True).encode(x, y, strokeDash=dash),
        chart_of(own)
        .mark_area(opacity=0.25, color=PREDICTED, clip=True)
        .encode(x, _as(y, "low"), y2="high:Q"),
        chart_of(own).mark_line(strokeWidth=2.5, color=PREDICTED, clip=True).encode(x, y),
        chart_of(pl.DataFrame({"flops": [plan.flops], "value": [getattr(plan, column)]}))
        .mark_point(filled=True, size=90, color=INK, shape="diamond", opacity=1)
        .encode(x, y),
    ]
    return alt.layer(*parts).properties(width=PANEL, height=PANEL)


def _penalty_panel(table: pl.DataFrame, column: str, title: str, span: list[float], most: float | None):
    drawn = table.filter(pl.col(column).is_not_null())
    top = float(drawn[column].max())
    top = top if most is None else min(top, most)
    x = (
        alt.X("factor:Q", title="Parameters divided by the best N (log scale)")
        .scale(type="log", base=2, domain=[1 / 8, 8], nice=False)
        .axis(
            values=[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8],
            labelExpr="datum.value < 1 ? '1/' + format(1 / datum.value, 'd') : format(datum.value, 'd')",
            labelFlush=False,
        )
    )
    y = alt.Y(f"{column}:Q", title=title).scale(domain=[0, top * 1.05], nice=False)
    shade = chart_of(pl.DataFrame({"factor": [span[0]], "end": [span[1]]})).mark_rect(
        color=PREDICTED, opacity=0.15
    )
    best = chart_of(pl.DataFrame({"factor": [1.0]})).mark_rule(color=QUIET, strokeDash=[3, 3])
    line = chart_of(drawn).mark_line(strokeWidth=2.5, color=PREDICTED, clip=True)
    return alt.layer(shade.encode(x, x2="end:Q"), best.encode(x), line.encode(x, y)).properties(
        width=PANEL, height=260
    )


def _plan_mark(plan: Plan, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    row: dict = {"flops": plan.flops, "loss": plan.loss, "label": "this plan"}
    parts = []
    if interval := plan.intervals["loss"]:
        bar = pl.DataFrame({"flops": [plan.flops], "low": [interval[0]], "high": [interval[1]]})
        parts.append(
            chart_of(bar).mark_rule(color=INK, strokeWidth=1.5).encode(x, _as(y, "low"), y2="high:Q")
        )
    point = chart_of(pl.DataFrame([row]))
    return [
        *parts,
        point.mark_point(filled=True, size=60, color=INK, shape="diamond", opacity=1).encode(x, y),
        point.mark_text(align="right", dx=-10, dy=10, fontSize=12, fontWeight="bold", color=INK).encode(
            x, y, text="label:N"
        ),
    ]


def _as(axis: alt.Y, column: str) -> alt.Y:
    other = axis.copy()
    other.shorthand = f"{column}:Q"
    return other


def _high(losses: list[float], best: Optima) -> float:
    """The top of the loss axis: runs far above the frontier must not flatten it."""
    top = float(np.nanmax(best.loss_F))
    return min(max(losses), top + 0.6 * (top - min(losses)))


def _beyond(plan: Plan) -> str:
    ratio = plan.extrapolation["flops"]
    if ratio is None or ratio <= 1:
        return ""
    return f", {ratio:.3g} times beyond the runs"
