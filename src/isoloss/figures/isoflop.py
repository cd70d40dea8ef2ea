"""IsoFLOP curves with their minima, and the compute frontier N*(C) as several methods see it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.figures.figure import Figure
from isoloss.figures.lines import chart_of
from isoloss.figures.style import INK, QUIET, RAMP, linear_axis, log_axis, log_ticks, spread
from isoloss.laws import Fit
from isoloss.laws.envelope import Envelope
from isoloss.laws.frontier import Frontier
from isoloss.laws.isoflop import Budget, Flag, IsoFlop, Method, curve
from isoloss.plans.curve import ALLOCATION_DRAWS, allocation_exponent, optima
from isoloss.plans.opinions import Opinions

WIDTH, HEIGHT = 560, 400
RISE = 1.25
"""Losses up to this many times the largest minimum are drawn; steeper arms would flatten every minimum."""
CURVE, GRID = 90, 25
COLOURS = ("#0072B2", "#CC5500", "#00845f", "#3f3f3f")
SHAPES = ("circle", "square", "triangle-up", "diamond")
METHODS = {Method.AKIMA: "Akima interpolation", Method.PARABOLA: "a parabola"}
SHORT = {
    Flag.FEW_SIZES: "few sizes",
    Flag.EDGE: "edge",
    Flag.OPENS_DOWN: "downward",
    Flag.WEAK: "flat",
    Flag.OFTEN_EDGE: "often edge",
}


@dataclass(frozen=True)
class Opinion:
    """One method's frontier: its optima, what it left out, and its law with a band over ``flops``."""

    name: str
    exponent: float
    interval: tuple[float, float] | None
    level: float
    points: pl.DataFrame  # flops, params, used
    law: pl.DataFrame  # flops, params, low, high

    @property
    def label(self) -> str:
        ends = "" if self.interval is None else f" ({text.interval(self.interval, text.loss)})"
        return f"{self.name}: a = {self.exponent:.3f}{ends}"


def curves_figure(found: IsoFlop, *, counting: str = "") -> Figure:
    """Loss against N at each budget. ``counting`` names the rule under which N was counted."""
    used, total = len(found.used), len(found.budgets)
    ends = text.interval(found.params.interval, text.loss)
    title = (
        f"Optimal size grows as C^{found.params.exponent:.3f} ({ends}), "
        f"read off {used} of {total} compute budgets"
    )
    left_out = [budget for budget in found.budgets if not budget.used]
    subtitle = (
        f"Minima by {METHODS[found.method]} of log loss over log N{f', N: {counting}' if counting else ''}; "
        f"filled: used; {f'open: {len(left_out)} left out; ' if left_out else ''}"
        f"interval: {text.level(found.level)} t over budgets. Noise {found.noise}. "
        f"Losses over {RISE:g} times the largest minimum are not drawn."
    )
    return Figure(
        name="isoflop-curves",
        chart=_curves_chart(found),
        title=title,
        subtitle=subtitle,
        description=(
            f"Loss against parameters on a log axis, one curve a compute budget, {total} budgets from "
            f"{found.budgets[0].flops:.3g} to {found.budgets[-1].flops:.3g} FLOP; each minimum is marked."
        ),
        shows=f"{title}. " + " ".join(_left_out_words(budget) for budget in left_out),
        would_change=(
            "Sizes beyond an edge bring back a budget that was left out; closer sizes sharpen each minimum; "
            "budgets further apart narrow the exponent."
        ),
        table=_curves_table(found),
    )


def frontier_figure(opinions: Sequence[Opinion]) -> Figure:
    """N*(C) of one or more methods on log-log axes, each with its band. Raises InputError for none."""
    if not opinions:
        raise InputError("there is no frontier to draw", mend="give one opinion or more")
    title = _verdict(opinions)
    levels = text.listed(sorted({text.level(one.level) for one in opinions}))
    subtitle = (
        f"Optimal parameters N* by training compute C; a: exponent of N* = G C^a with its {levels} interval; "
        "filled: used, open: left out; bands: the law's mean."
    )
    return Figure(
        name="compute-frontier",
        chart=_frontier_chart(opinions),
        title=title,
        subtitle=subtitle,
        characters=110,
        description="Optimal parameters against compute, both on log axes: "
        + "; ".join(one.label for one in opinions),
        shows=f"{title}. {'; '.join(one.label for one in opinions)}. {_at_the_end(opinions)}",
        would_change=(
            "Another counting rule for N or C, another learning-rate schedule or untuned sizes move the "
            "exponent by more than these intervals."
        ),
        table=pl.concat(one.points.select(pl.lit(one.name).alias("method"), pl.all()) for one in opinions),
    )


def isoflop_opinion(found: IsoFlop) -> Opinion:
    rows = [(one.flops, one.params, one.used) for one in found.budgets]
    return Opinion(
        f"IsoFLOP, {found.method.value}",
        found.params.exponent,
        found.params.interval,
        found.level,
        _points(rows),
        _band(found.params, rows),
    )


def envelope_opinion(found: Envelope) -> Opinion:
    rows = [(one.flops, one.params, one.cut is None) for one in found.handovers]
    return Opinion(
        f"envelope, {found.choice.value}",
        found.params.exponent,
        found.params_interval,
        found.level,
        _points(rows),
        _band(found.params, rows),
    )


def parametric_opinion(fit: Fit, low: float, high: float, *, level: float = 0.9) -> Opinion:
    """N* of a law of params and tokens at C = 6 N D; its band from draws of its parameters.

    Raises InputError for a law of other inputs or a range that is none, and Refusal where there is no
    optimum that grows with C.
    """
    if set(fit.ranges) != {"params", "tokens"}:
        raise InputError(
            f"{fit.law} takes {', '.join(fit.ranges)}, not params and tokens", mend="fit another"
        )
    if not 0 < low < high < np.inf:
        raise InputError(f"compute runs from {low} to {high}", mend="give 0 < low < high")
    C = np.geomspace(low, high, GRID)
    best = optima(fit, C, level=level, draws=ALLOCATION_DRAWS)
    if not np.all(np.diff(best.params_F) > 0):
        raise Refusal(
            f"N* of {fit.law} does not grow with C everywhere from {low:.3g} to {high:.3g} FLOP",
            mend="choose compute nearer to the data",
        )
    ends = best.params_ends or (best.params_F, best.params_F)
    law = pl.DataFrame({"flops": C, "params": best.params_F, "low": ends[0], "high": ends[1]})
    exponent, interval = allocation_exponent(fit, C, level=level)
    return Opinion(f"law, {fit.law}", exponent, interval, level, _points([]), law)


def pictures(found: Opinions) -> list[Figure]:
    """The curves by budget, and the compute frontier by every method that gives one."""
    curves = [] if found.isoflop is None else [curves_figure(found.isoflop)]
    opinions = all_opinions(found)
    return [*curves, frontier_figure(opinions)] if opinions else curves


def all_opinions(found: Opinions) -> list[Opinion]:
    """The budgets' reading, the envelope and the law, as far as there are any, for one picture."""
    drawn = []
    if found.isoflop is not None:
        drawn.append(isoflop_opinion(found.isoflop))
    if found.envelope is not None:
        drawn.append(envelope_opinion(found.envelope))
    if found.law is not None and drawn:
        flops = np.concatenate([one.points["flops"].to_numpy() for one in drawn]).tolist()
        with suppress(Refusal):
            drawn.append(parametric_opinion(found.law, min(flops), max(flops), level=found.level))
    return drawn


def _points(rows: Sequence[tuple[float, float, bool]]) -> pl.DataFrame:
    kinds = {"flops": pl.Float64, "params": pl.Float64, "used": pl.Boolean}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _band(law: Frontier, rows: Sequence[tuple[float, float, bool]]) -> pl.DataFrame:
    C = np.geomspace(min(row[0] for row in rows), max(row[0] for row in rows), GRID)
    middle, low, high = law.at(C)
    return pl.DataFrame({"flops": C, "params": middle, "low": low, "high": high})


def _verdict(opinions: Sequence[Opinion]) -> str:
    numbers = text.listed([f"{one.exponent:.3f}" for one in opinions])
    if len(opinions) == 1:
        return f"The optimal size grows as {opinions[0].label.replace(': a = ', ', C to the power ')}"
    known = [one.interval for one in opinions if one.interval is not None]
    if len(known) < len(opinions):
        return f"{len(opinions)} methods read the exponent of N*(C) as {numbers}; not all give an interval"
    shared = max(low for low, _ in known) <= min(high for _, high in known)
    words = "their intervals share a value" if shared else "their intervals do not all overlap"
    return f"{len(opinions)} methods read the exponent of N*(C) as {numbers}; {words}"


def _at_the_end(opinions: Sequence[Opinion]) -> str:
    """N* at the largest compute that all laws reach: equal exponents may still differ in size."""
    C = min(one.law["flops"][-1] for one in opinions)
    sizes = [
        float(np.exp(np.interp(np.log(C), np.log(one.law["flops"]), np.log(one.law["params"]))))
        for one in opinions
    ]
    return f"At C = {C:.3g} N* is {text.listed([text.count(size) for size in sizes])}."


def _left_out_words(budget: Budget) -> str:
    why = "; ".join(flag.value.removeprefix("discarded: ") for flag in budget.flags if flag.discards)
    return f"C = {budget.flops:.3g} is left out: {why}."


def _curves_chart(found: IsoFlop) -> alt.LayerChart:
    top = RISE * max(budget.loss for budget in found.budgets)
    points = _curves_table(found).filter(pl.col("loss") <= top)
    lines = []
    for budget in found.budgets:
        N = np.geomspace(budget.sizes[0], budget.sizes[-1], CURVE)
        drawn = pl.DataFrame({"flops": budget.flops, "params": N, "loss": curve(budget, found.method, N)})
        lines.append(drawn.filter(pl.col("loss").is_not_nan() & (pl.col("loss") <= top)))
    marks = pl.DataFrame(
        {
            "flops": [one.flops for one in found.budgets],
            "params": [one.params for one in found.budgets],
            "loss": [one.loss for one in found.budgets],
            "used": [one.used for one in found.budgets],
            "why": [" + ".join(SHORT[f] for f in one.flags if f.discards) for one in found.budgets],
            "right": [one.params**2 > one.sizes[0] * one.sizes[-1] for one in found.budgets],
        }
    )
    smallest, largest = points["params"].min(), points["params"].max()
    room = 1.15
    if not marks["used"].all():  # for the words beside open marks
        words_px = 14 + 7 * marks["why"].str.len_chars().max()
        room = (largest / smallest) ** (words_px / (WIDTH - 2 * words_px))
    x = log_axis(alt.X, "params", "Parameters N", smallest, largest, room=room)
    lowest = min(points["loss"].min(), marks["loss"].min())
    y = linear_axis("loss", "Loss (nats per token)", lowest, top)
    first, last = marks["flops"].min(), marks["flops"].max()
    scale = alt.Scale(type="log", range=list(RAMP), domain=[first, last])
    bar = alt.Legend(
        title="Training compute C (FLOP, log scale)",
        type="gradient",
        format=".0e",
        orient="bottom",
        direction="horizontal",
        gradientLength=320,
        values=log_ticks(first, last),
    )
    colour = alt.Color("flops:Q", scale=scale, legend=bar)
    used, left_out = marks.filter("used"), marks.filter(~pl.col("used"))
    gap = 16 * (top - lowest) / HEIGHT
    words = [
        layer
        for right in (False, True)
        for layer in _reasons(left_out.filter(pl.col("right") == right), right, gap, x, y)
    ]
    parts = [
        chart_of(pl.concat(lines))
        .mark_line(strokeWidth=1.5, opacity=0.75, clip=True)
        .encode(x, y, color=colour, detail="flops:N"),
        *words,
        chart_of(points)
        .mark_circle(size=22, opacity=0.8)
        .encode(x, y, color=alt.Color("flops:Q", scale=scale, legend=None)),
        chart_of(used).mark_line(strokeWidth=1.2, strokeDash=[5, 4], color=INK).encode(x, y),
        chart_of(used).mark_point(filled=True, shape="diamond", size=110, color=INK, opacity=1).encode(x, y),
        chart_of(left_out)
        .mark_point(filled=False, shape="diamond", size=130, stroke=INK, strokeWidth=1.8, opacity=1)
        .encode(x, y),
    ]
    # Points that shared the lines' scale would turn the colour bar into a row of dots.
    drawn = alt.layer(*parts).resolve_scale(color="independent")
    return drawn.properties(width=WIDTH, height=HEIGHT)


def _reasons(marks: pl.DataFrame, right: bool, gap: float, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Words beside open marks, on the side away from the curve, moved apart to ``gap``.

    White below the words keeps lines out of them; points are drawn over both.
    """
    if marks.is_empty():
        return []
    placed = marks.with_columns(pl.Series("loss", spread(marks["loss"].to_list(), gap)))
    words = {"align": "left" if right else "right", "dx": 11 if right else -11, "fontSize": 12}
    text_of = chart_of(placed).encode(x, y, text="why:N")
    halo = text_of.mark_text(**words, stroke="white", strokeWidth=5, strokeJoin="round")
    return [halo, text_of.mark_text(**words, color=QUIET)]


def _curves_table(found: IsoFlop) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "flops": one.flops,
                "params": one.sizes,
                "tokens": one.size_tokens,
                "loss": one.losses,
                "optimal_params": one.params,
                "optimal_tokens": one.tokens,
                "optimal_log_se": one.log_se,
                "used": one.used,
                "flags": "; ".join(flag.value for flag in one.flags),
            },
            schema_overrides={"optimal_log_se": pl.Float64},
        )
        for one in found.budgets
    )


def _frontier_chart(opinions: Sequence[Opinion]) -> alt.LayerChart:
    laws = pl.concat(one.law for one in opinions)
    points = pl.concat(one.points for one in opinions)
    C, N = (pl.concat([laws[name], points[name]]) for name in ("flops", "params"))
    low, high = N.min() / 1.3, N.max() * 1.3
    x = log_axis(alt.X, "flops", "Training compute C, FLOP", C.min(), C.max(), room=1.3).axis(
        values=log_ticks(C.min() / 1.3, C.max() * 1.3), format=".0e"
    )

    def y(column: str) -> alt.Y:
        return (
            alt.Y(f"{column}:Q", title="Optimal parameters N* (log scale)")
            .scale(type="log", domain=[low, high], nice=False)
            .axis(values=log_ticks(low, high), format="~s")
        )

    parts, ends = [], []
    for i, one in enumerate(opinions):
        colour, shape = COLOURS[i % len(COLOURS)], SHAPES[i % len(SHAPES)]
        band = chart_of(one.law).mark_area(opacity=0.14, color=colour, clip=True)
        line = chart_of(one.law).mark_line(strokeWidth=2, color=colour, clip=True)
        parts += [band.encode(x, y("low"), y2="high:Q"), line.encode(x, y("params"))]
        for used in (True, False):
            rows = one.points.filter(pl.col("used") == used)
            mark = chart_of(rows).mark_point(
                filled=used, shape=shape, size=60, color=colour, strokeWidth=1.6, opacity=1
            )
            parts += [mark.encode(x, y("params"))] if rows.height else []
        ends.append(float(np.log(one.law["params"][-1])))
    gap = 18 * float(np.log(high / low)) / HEIGHT
    labels = [
        {"flops": C.max() * 1.3, "params": float(np.exp(place)), "label": one.label, "i": i}
        for i, (one, place) in enumerate(zip(opinions, spread(ends, gap), strict=True))
    ]
    for row in labels:
        label = alt.Chart(alt.InlineData(values=[row])).mark_text(
            align="left", dx=8, fontSize=12, fontWeight="bold", color=COLOURS[row["i"] % len(COLOURS)]
        )
        parts.append(label.encode(x, y("params"), text="label:N"))
    return alt.layer(*parts).properties(width=WIDTH, height=HEIGHT)
