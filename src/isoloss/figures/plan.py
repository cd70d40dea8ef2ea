"""A plan in three figures: the frontier it lies on, the sizes that are best, and what another size costs."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.frontier import PRINTED, RULES, Source, optimal_sizes, printed_sizes, runs_of
from isoloss.errors import InputError
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, POWERS, PREDICTED, QUIET, REAL, linear_axis, log_axis
from isoloss.laws import Fit
from isoloss.plans import Optima, Plan

WIDTH, HEIGHT = 640, 360
PANEL = 300
PANELS = {
    "params": "Parameters N",
    "tokens": "Training tokens D",
    "tokens_per_param": "Tokens a parameter, D / N",
}
DASHES = dict(zip([*RULES, *PRINTED], ([7, 4], [2, 3], [7, 3, 2, 3], [12, 3]), strict=True))


def name_of(source: Source) -> str:
    return f"the law {source.law}" if isinstance(source, Fit) else "the forecast, without a law"


def frontier(source: Source, plan: Plan) -> Figure:
    """Loss over training compute: the runs, the least loss that each budget buys, and the plan."""
    best, runs = optimal_sizes(source, plan), runs_of(source, plan)
    table = _frontier_table(best)
    x = _flops_axis(best, runs)
    losses = [table["loss"], [plan.loss]] if runs is None else [table["loss"], [plan.loss], runs["loss"]]
    low, high = marks.span(*losses)
    # Runs far above the frontier must not flatten it.
    top = float(np.nanmax(best.loss_F))
    y = linear_axis("loss", f"Loss ({source.loss_unit})", low, min(high, top + 0.6 * (top - low)))
    layers: list[alt.Chart] = []
    if runs is not None:
        layers.append(marks.points(runs, x, y, colour=REAL, size=28, opacity=0.55, clip=True))
    layers.append(marks.band(table, x, y, colour=PREDICTED, opacity=0.18, clip=True))
    layers.append(marks.line(table, x, y, colour=PREDICTED, width=2.5, clip=True))
    layers += _plan_mark(plan, x, y)
    interval = plan.intervals["loss"]
    between = f" ({text.interval(interval, text.brief)})" if interval else ""
    title = f"{text.power(plan.flops)} FLOPs buy a loss of {text.brief(plan.loss)}{between}{_beyond(plan)}"
    return captioned(
        "plan-frontier",
        marks.panel(layers, WIDTH, HEIGHT),
        title,
        table,
        points="" if runs is None else f"; points: the {runs.height} runs",
        law=name_of(source),
        rule=f"{plan.flops_per_token:g}",
        band=_band_name(source, plan),
    )


def _band_name(source: Source, plan: Plan) -> str:
    if plan.intervals["loss"] is None:
        return "the fit supports no interval"
    level = text.level(plan.level)
    if isinstance(source, Fit):
        return f"band: {level} interval of its mean, bar: of a run"
    return f"band and bar: {level} interval of a run"


def allocation(source: Source, plan: Plan) -> Figure:
    """The best N and D over compute, with intervals, beside rules and laws that papers print."""
    best, runs = optimal_sizes(source, plan), runs_of(source, plan)
    sizes, rules = _allocation_table(best), printed_sizes(best.flops_F, plan.flops_per_token)
    charts = [_allocation_panel(column, sizes, rules, best, runs, plan) for column in PANELS]
    ends = plan.intervals.get("params")
    model = "plan" if plan.penalty is None else "best model"
    title = f"The {model} for {text.power(plan.flops)} FLOPs has {text.count(plan.params)} parameters"
    if ends is not None:
        title += f" ({text.interval(ends, text.count)})"
    title += f", {text.power(plan.tokens_per_param)} tokens each"
    return captioned(
        "plan-allocation",
        alt.hconcat(*charts, spacing=20),
        title,
        sizes,
        law=name_of(source),
        level=text.level(best.level),
        slope=f"{best.exponent:.2f}",
        printed=text.listed(list(DASHES)),
    )


def penalty(plan: Plan, unit: str) -> Figure:
    """What another size costs: in loss, of this unit, for the same compute; in compute for the same loss.

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
    span = (1 / 8 if low is None else low, 8.0 if high is None else high)
    charts = [
        _penalty_panel(table, "extra_loss", f"Extra loss, same compute ({unit})", span, None),
        _penalty_panel(table, "extra_compute", "Extra compute, same loss (%)", span, 200.0),
    ]
    first = "less than 1/8" if low is None else f"{low:.2f}"
    last = "more than 8" if high is None else f"{high:.2f}"
    title = f"From {first} to {last} times the best size, the same loss costs at most 10% more compute"
    missing = table["extra_compute"].null_count()
    gap = "; left of the curve no number of tokens reaches the loss" if missing else ""
    return captioned(
        "plan-penalty",
        alt.hconcat(*charts, spacing=36),
        title,
        table,
        params=text.count(plan.params),
        flops=text.power(plan.total_flops),
        law=f"the law {plan.law}" if plan.law != "forecast" else "the forecast, without a law",
        gap=gap,
    )


def _frontier_table(best: Optima) -> pl.DataFrame:
    """A row a budget that has an optimum: flops, loss, low, high, params, tokens."""
    low, high = best.band or (best.loss_F, best.loss_F)
    columns = {"flops": best.flops_F, "loss": best.loss_F, "low": low, "high": high}
    return _finite(pl.DataFrame(columns | {"params": best.params_F, "tokens": best.tokens_F}))


def _allocation_table(best: Optima) -> pl.DataFrame:
    """A row a panel and budget that has an optimum: panel, flops, value, low, high.

    At one budget D falls as N grows, so each end of D / N has that end of D and the other of N.
    """
    params = best.params_ends or (best.params_F, best.params_F)
    tokens = best.tokens_ends or (best.tokens_F, best.tokens_F)
    triples = zip((best.params_F, *params), (best.tokens_F, *tokens[::-1]), strict=True)
    ratio, high, low = (tokens_F / params_F for params_F, tokens_F in triples)
    values = {
        "params": (best.params_F, *params),
        "tokens": (best.tokens_F, *tokens),
        "tokens_per_param": (ratio, low, high),
    }
    return _finite(
        pl.concat(
            pl.DataFrame({"flops": best.flops_F, "value": value, "low": low, "high": high}).select(
                pl.lit(panel).alias("panel"), pl.all()
            )
            for panel, (value, low, high) in values.items()
        )
    )


def _finite(table: pl.DataFrame) -> pl.DataFrame:
    """Without the budgets that have no optimum."""
    return table.filter(pl.all_horizontal(pl.col(pl.Float64).is_finite()))


def _flops_axis(best: Optima, runs: pl.DataFrame | None) -> alt.X:
    low, high = marks.span(best.flops_F)
    if runs is not None:
        low = min(low, marks.span(runs["flops"])[0])
    return log_axis(alt.X, "flops", "Compute C, FLOPs", low, high, room=1.3, labels=POWERS)


def printed_marks(rules: pl.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    """A dash for each, named below the picture."""
    look = {"orient": "bottom", "symbolStrokeColor": QUIET, "symbolSize": 700}
    dash = marks.key(alt.StrokeDash, "rule", DASHES, **look)
    return marks.line(rules, x, y, colour=QUIET, width=1.5, dash=dash, clip=True)


def _allocation_panel(
    column: str, sizes: pl.DataFrame, rules: pl.DataFrame, best: Optima, runs: pl.DataFrame | None, plan: Plan
) -> alt.LayerChart:
    sizes, rules = sizes.filter(panel=column), rules.filter(size=column)
    x = _flops_axis(best, None)
    low, high = marks.span(sizes["low"], sizes["high"], rules["value"])
    y = log_axis(alt.Y, "value", PANELS[column], low, high, room=1.5)
    layers: list[alt.Chart] = []
    if runs is not None:
        ratio = runs.with_columns(tokens_per_param=pl.col("tokens") / pl.col("params"))
        inside = ratio.filter(pl.col("flops") >= best.flops_F.min())
        points = inside.select("flops", pl.col(column).alias("value"))
        layers.append(marks.points(points, x, y, colour=REAL, size=16, opacity=0.4, clip=True))
    planned = pl.DataFrame({"flops": [plan.flops], "value": [getattr(plan, column)]})
    layers += [
        printed_marks(rules, x, y),
        marks.band(sizes, x, y, colour=PREDICTED, opacity=0.25, clip=True),
        marks.line(sizes, x, y, colour=PREDICTED, width=2.5, clip=True),
        marks.points(planned, x, y, colour=INK, shape="diamond", size=90),
    ]
    return marks.panel(layers, PANEL, PANEL)


def _penalty_panel(
    table: pl.DataFrame, column: str, title: str, span: tuple[float, float], most: float | None
) -> alt.LayerChart:
    table = table.filter(pl.col(column).is_not_null())
    top = marks.span(table[column])[1]
    top = top if most is None else min(top, most)
    x = log_axis(
        alt.X,
        "factor",
        "Parameters divided by the best N",
        1 / 8,
        8,
        ticks=[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8],
        labels="datum.value < 1 ? '1/' + format(1 / datum.value, 'd') : format(datum.value, 'd')",
    )
    y = alt.Y(f"{column}:Q", title=title).scale(domain=[0, top * 1.05], nice=False)
    shade = marks.chart_of(pl.DataFrame({"factor": [span[0]], "end": [span[1]]}))
    best = marks.chart_of(pl.DataFrame({"factor": [1.0]}))
    layers = [
        shade.mark_rect(color=PREDICTED, opacity=0.15).encode(x, x2="end:Q"),
        best.mark_rule(color=QUIET, strokeDash=[3, 3]).encode(x),
        marks.line(table, x, y, colour=PREDICTED, width=2.5, clip=True),
    ]
    return marks.panel(layers, PANEL, 260)


def _plan_mark(plan: Plan, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The plan as a diamond with its name, and the interval of one new run where there is one."""
    point = pl.DataFrame({"flops": plan.flops, "loss": plan.loss, "label": "this plan"})
    name = marks.chart_of(point).mark_text(
        align="right", dx=-10, dy=10, fontSize=12, fontWeight="bold", color=INK
    )
    layers: list[alt.Chart] = []
    if interval := plan.intervals["loss"]:
        bar = pl.DataFrame({"flops": plan.flops, "low": interval[0], "high": interval[1]})
        layers.append(marks.bars(bar, x, y, colour=INK))
    layers.append(marks.points(point, x, y, colour=INK, shape="diamond", size=60))
    return [*layers, name.encode(x, y, text="label:N")]


def _beyond(plan: Plan) -> str:
    ratio = plan.extrapolation["flops"]
    if ratio is None or ratio <= 1:
        return ""
    return f", {text.power(ratio)} times beyond the runs"
