"""IsoFLOP curves: loss against size at each compute budget, and the minima that were read off them."""

from typing import Literal

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, QUIET, linear_axis, log_axis, spread
from isoloss.laws.isoflop import Budget, Flag, IsoFlop, Method, curve

WIDTH, HEIGHT = 560, 400
RISE = 1.25
"""Losses up to this many times the largest minimum are drawn; steeper arms would flatten every minimum."""
POINTS_A_CURVE = 90
METHODS = {Method.AKIMA: "Akima interpolation", Method.PARABOLA: "a parabola"}
SHORT = {
    Flag.FEW_SIZES: "few sizes",
    Flag.EDGE: "edge",
    Flag.OPENS_DOWN: "downward",
    Flag.WEAK: "flat",
    Flag.OFTEN_EDGE: "often edge",
}


def curves_figure(isoflop: IsoFlop, *, loss_unit: str = "nats per token") -> Figure:
    """Loss against N at each budget."""
    used, total = len(isoflop.used), len(isoflop.budgets)
    ends = text.interval(isoflop.params.interval, text.loss)
    title = (
        f"Optimal size grows as C^{isoflop.params.exponent:.3f} ({ends}), "
        f"read off {used} of {total} compute budgets"
    )
    left_out = [budget for budget in isoflop.budgets if not budget.used]
    return captioned(
        "isoflop-curves",
        _chart(isoflop, loss_unit),
        title,
        _table(isoflop),
        method=METHODS[isoflop.method],
        open=f"open: {len(left_out)} left out; " if left_out else "",
        level=text.level(isoflop.level),
        noise=isoflop.noise,
        rise=f"{RISE:g}",
        budgets=total,
        flops=text.interval((isoflop.budgets[0].flops, isoflop.budgets[-1].flops), text.power),
        left_out=" ".join(_left_out_words(budget) for budget in left_out),
    )


def _left_out_words(budget: Budget) -> str:
    why = "; ".join(flag.value.removeprefix("discarded: ") for flag in budget.flags if flag.discards)
    return f"{_name(budget.flops)} is left out: {why}."


def _chart(isoflop: IsoFlop, loss_unit: str) -> alt.LayerChart:
    top = RISE * max(budget.loss for budget in isoflop.budgets)
    sizes = _table(isoflop).filter(pl.col("loss") <= top)
    minima = _minima(isoflop)
    smallest, largest = marks.span(sizes["params"])
    x = log_axis(alt.X, "params", "Parameters N", smallest, largest, room=_room(minima, smallest, largest))
    lowest, top = marks.span(sizes["loss"], minima["loss"])
    y = linear_axis("loss", f"Loss ({loss_unit})", lowest, top)
    span = marks.span(minima["flops"])
    curves, sizes, minima = (
        table.with_columns(marks.on_ramp(table["flops"], *span))
        for table in (_curves(isoflop, top), sizes, minima)
    )
    used, left_out = minima.filter("used"), minima.filter(~pl.col("used"))
    ends = curves.join(used, on="flops", how="semi").group_by("flops", maintain_order=True).last()
    ends = ends.with_columns(pl.Series("label", [_name(flops) for flops in ends["flops"]], pl.String))
    gap = 16 * (top - lowest) / HEIGHT
    right = left_out.filter("right")
    placed = pl.Series("loss", spread([*ends["loss"], *right["loss"]], gap), pl.Float64)
    ends, right = ends.with_columns(placed[: ends.height]), right.with_columns(placed[ends.height :])
    layers = [
        marks.line(curves, x, y, width=1.5, opacity=0.75, by="flops"),
        *_reasons(left_out.filter(~pl.col("right")), "right", gap, x, y),
        *_reasons(right, "left", gap, x, y),
        marks.points(sizes, x, y, size=22, opacity=0.8),
        _errors(minima, x, y),
        marks.line(used, x, y, colour=INK, dash=[5, 4], width=1.2),
        marks.points(used, x, y, colour=INK, shape="diamond", size=110),
        marks.chart_of(left_out)
        .mark_point(filled=False, shape="diamond", size=130, stroke=INK, strokeWidth=1.8, opacity=1)
        .encode(x, y),
        marks.end_labels(ends, x, y, HEIGHT, size=11),
    ]
    return marks.panel(layers, WIDTH, HEIGHT)


def _name(flops: float) -> str:
    return f"C = {text.power(flops)}"


def _errors(minima: pl.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    """One standard error of log N* on either side of each minimum where it is known."""
    size, error = pl.col("params"), pl.col("log_se")
    rows = minima.drop_nulls("log_se").with_columns(low=size * (-error).exp(), high=size * error.exp())
    rules = marks.chart_of(rows).mark_rule(color=INK, strokeWidth=1.5, clip=True)
    return rules.encode(marks.renamed(x, "low"), y, x2="high:Q")


def _room(minima: pl.DataFrame, smallest: float, largest: float) -> float:
    """The factor by which the axis is widened: for the words beside open marks, where there are any."""
    if minima["used"].all():
        return 1.15
    words_px = 14 + 7 * max(map(len, minima["why"]))
    return (largest / smallest) ** (words_px / (WIDTH - 2 * words_px))


def _curves(isoflop: IsoFlop, top: float) -> pl.DataFrame:
    """What was read between the sizes of each budget, up to ``top``: flops, params, loss."""
    parts: list[pl.DataFrame] = []
    for budget in isoflop.budgets:
        N = np.geomspace(budget.sizes[0], budget.sizes[-1], POINTS_A_CURVE)
        loss = curve(budget, isoflop.method, N)
        parts.append(pl.DataFrame({"flops": budget.flops, "params": N, "loss": loss}))
    return pl.concat(parts).filter(pl.col("loss").is_not_nan() & (pl.col("loss") <= top))


def _minima(isoflop: IsoFlop) -> pl.DataFrame:
    """A row a budget; ``why``: its name and what discards it; ``right``: in the right half of its sizes."""
    return pl.DataFrame(
        [
            {
                "flops": budget.flops,
                "params": budget.params,
                "loss": budget.loss,
                "log_se": budget.log_se,
                "used": budget.used,
                "why": f"{_name(budget.flops)}: "
                + " + ".join(SHORT[flag] for flag in budget.flags if flag.discards),
                "right": budget.params**2 > budget.sizes[0] * budget.sizes[-1],
            }
            for budget in isoflop.budgets
        ],
        schema_overrides={"log_se": pl.Float64},
    )


def _reasons(
    minima: pl.DataFrame, align: Literal["left", "right"], gap: float, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """Words beside open marks, on the side away from the curve, moved apart to ``gap``.

    White below the words keeps lines out of them; points are drawn over both.
    """
    if minima.is_empty():
        return []
    placed = minima.with_columns(pl.Series("loss", spread(minima["loss"].to_list(), gap)))
    dx = 11 if align == "left" else -11
    words = marks.chart_of(placed).encode(x, y, text="why:N")
    halo = words.mark_text(align=align, dx=dx, fontSize=12, stroke="white", strokeWidth=5, strokeJoin="round")
    return [halo, words.mark_text(align=align, dx=dx, fontSize=12, color=QUIET)]


def _table(isoflop: IsoFlop) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "flops": budget.flops,
                "params": budget.sizes,
                "tokens": budget.size_tokens,
                "loss": budget.losses,
                "optimal_params": budget.params,
                "optimal_tokens": budget.tokens,
                "optimal_log_se": budget.log_se,
                "used": budget.used,
                "flags": "; ".join(flag.value for flag in budget.flags),
            },
            schema_overrides={"optimal_log_se": pl.Float64},
        )
        for budget in isoflop.budgets
    )
