"""Real and predicted loss of looped models over training, a panel for each (N, T_m); what loops change."""

from collections.abc import Sequence
from dataclasses import replace

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis import papers
from isoloss.analysis.fit_rows import brief_formula, law_losses
from isoloss.analysis.loop_laws import EARLY, FITTED, LOOPS_OUT, PARTS, late
from isoloss.analysis.loops import LoopedStudy, fit_words, gains_table, loops_verdict
from isoloss.analysis.points import LEVEL_WORDS, seeds_phrase
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import (
    COUNTS,
    FAMILY_COLOURS,
    PREDICTED,
    QUIET,
    REAL,
    linear_axis,
    log_axis,
    log_ticks,
)
from isoloss.laws import Fit, FitStatus

PANEL = 170
UNFITTED = "#efefef"
LINES = {
    "Real": (REAL, [1, 0]),
    "Pred": (PREDICTED, [5, 3]),
    "Pred, this T_m left out": ("#CC79A7", [1.5, 2]),
}


def with_predictions(data: LoopedStudy, part: str) -> pl.DataFrame:
    """A row for each point and ``kind`` of line: panel, tokens, nats. Laws only where they were fitted."""
    fitted = late(data.curves)
    tables = {"Real": data.curves.select(*KEYS, pl.col(part).alias("nats"))}
    if isinstance(data.fits[part], Fit):
        tables["Pred"] = fitted.select(*KEYS, law_losses(data.fits[part], fitted).alias("nats"))
    unseen = [judged.rows for judged in data.judged if judged.kind == LOOPS_OUT and not judged.refusal]
    if part == "total" and unseen:
        tables["Pred, this T_m left out"] = pl.concat(unseen).select(*KEYS, nats="predicted")
    return in_panels(pl.concat(table.with_columns(kind=pl.lit(kind)) for kind, table in tables.items()))


KEYS = ("params", "size_params", "recurrence", "tokens")


def in_panels(rows: pl.DataFrame) -> pl.DataFrame:
    """With the names of the panel's row and column: 'T_m = 2', 'N = 12.3K'."""
    size = pl.col("size_params").map_elements(lambda n: f"N = {text.count(n)}", return_dtype=pl.String)
    loops = pl.concat_str(pl.lit("T_m = "), "recurrence")
    return rows.with_columns(row=loops, column=size).sort("size_params", "recurrence", maintain_order=True)


def panels(rows: pl.DataFrame, y: str, layers: Sequence[alt.Chart], *, log: bool = True) -> alt.FacetChart:
    """Rows T_m, columns N, axes shared by all panels and named once; the layers draw from ``rows``."""
    x = f"Training tokens D{' (log scale)' if log else ''}"
    bold = alt.Header(labelFontWeight="bold", titleFontWeight="normal")
    loops = rows.sort("recurrence")["row"].unique(maintain_order=True).to_list()
    sizes = rows["column"].unique(maintain_order=True).to_list()
    down, across = bold.copy(), bold.copy()
    down.title, down.labelOrient, across.title, across.titleOrient = y, "right", x, "bottom"
    return marks.repeatable(rows, layers, PANEL, PANEL * 0.72).facet(
        row=alt.Row("row:N", sort=loops, header=down),
        column=alt.Column("column:N", sort=sizes, header=across),
        spacing=8,
    )


def x_tokens(rows: pl.DataFrame, log: bool) -> alt.X:
    """Without a title of its own: that of all panels stands below them."""
    if not log:
        return alt.X("tokens:Q", title=None).axis(tickCount=4, labelExpr=COUNTS)
    low, high = marks.span(rows["tokens"])
    ticks = [tick for tick in log_ticks(low, high) if high < 30 * low or np.log10(tick) % 1 == 0]
    return log_axis(alt.X, "tokens", "", low, high, room=1.1, ticks=ticks).title(None)


def unfitted(rows: pl.DataFrame) -> alt.Chart:
    """A shade over what the law was not fitted to, once a panel."""
    low, high = marks.span(rows["tokens"])
    shade = marks.chart_of(rows).transform_aggregate(count="count()").mark_rect(color=UNFITTED)
    return shade.encode(x=alt.datum(low), x2=alt.datum(EARLY * high))


def grid(rows: pl.DataFrame, part: str, log: bool) -> alt.FacetChart:
    """Real solid blue, Pred dashed orange, held out dotted."""
    kinds = [kind for kind in LINES if kind in set(rows["kind"])]
    real = rows.filter(pl.col("kind") == "Real")
    y = linear_axis("nats", "", *marks.span(real["nats"])).title(None)
    colour = marks.key(alt.Color, "kind", {kind: LINES[kind][0] for kind in kinds}, symbolSize=400)
    dash = marks.key(alt.StrokeDash, "kind", {kind: LINES[kind][1] for kind in kinds}, symbolSize=400)
    lines = marks.line(rows, x_tokens(rows, log), y, colour=colour, dash=dash, clip=True)
    return panels(rows, f"{text.capital(PARTS[part])} (nats)", [unfitted(rows), lines], log=log)


def law_words(law: Fit | Refusal) -> str:
    """Its formula, or that it was refused; of a curve whose constants stay open the form alone."""
    if isinstance(law, Refusal):
        return "no law, the fit was refused"
    if law.status is FitStatus.CURVE_ONLY:
        return "E + A N^-α + B D^-β + C T_m^-γ as a curve only"
    return brief_formula(law)


def open_words(law: Fit | Refusal) -> str:
    """Why the constants of a curve stay open; nothing of a law."""
    if isinstance(law, Refusal) or law.status is not FitStatus.CURVE_ONLY:
        return ""
    return f" No constant of the curve is reported: {law.reason}."


STEMS = {"total": "looped-grid", "expected": "looped-grid-expected", "last_exit": "looped-grid-last-exit"}
BONUS = (
    "Total loss is expected cross-entropy minus beta times the entropy of the exits: a bonus of up to "
    "beta log T_m, which no better prediction has earned."
)


def grid_figure(data: LoopedStudy, part: str = "total", *, log: bool = True) -> Figure:
    """The grid over log or linear tokens; with total loss also what the law says of a T_m it has not seen."""
    rows = with_predictions(data, part)
    title = fit_words(data) if part == "total" else fallen(data.curves, part)
    drawn = captioned(
        "looped-grid",
        grid(rows, part, log),
        text.capital(title),
        rows.drop("row", "column", "size_params"),
        formula=law_words(data.fits[part]),
        start=text.percent(EARLY),
        part=PARTS[part],
        axis=" on a log axis" if log else "",
        open=open_words(data.fits[part]),
        bonus=f" {BONUS}" if part == "total" else "",
        paper=f" {papers.on_loops(data)}".rstrip() if part == "total" else "",
    )
    return replace(drawn, name=STEMS[part] if log else f"{STEMS[part]}-linear")


def fallen(curves: pl.DataFrame, part: str) -> str:
    """Which panel ends lowest."""
    last = curves.filter(pl.col("tokens") == pl.col("tokens").max()).sort(part).row(0, named=True)
    where = f"N = {text.count(last['size_params'])} and T_m = {last['recurrence']:g}"
    return f"The lowest {PARTS[part]} is {text.brief(last[part])}, with {where}"


def residual_figure(data: LoopedStudy) -> Figure:
    """Raises Refusal if the law was refused."""
    (judged,) = [judged for judged in data.judged if judged.kind == FITTED]
    if judged.refusal:
        raise judged.refusal
    rows = in_panels(judged.rows.with_columns((pl.col("total") - pl.col("predicted")).alias("residual")))
    spread = float(rows.select((pl.col("residual") ** 2).mean().sqrt()).item())
    title = f"The one law leaves residuals of {spread:.3f} nats (root mean square) on held-out text"
    worst = marks.span(rows["residual"].abs())[1]
    zero = marks.chart_of(rows).mark_rule(color=QUIET).encode(y=alt.datum(0))
    y = alt.Y("residual:Q", title=None, scale=alt.Scale(domain=[-1.2 * worst, 1.2 * worst])).axis(tickCount=3)
    x = x_tokens(rows, log=True)
    layers = [zero, marks.line(rows, x, y, colour=REAL), marks.points(rows, x, y, colour=REAL, size=16)]
    chart = panels(rows, "Real − Pred (nats)", layers)
    columns = ("params", "recurrence", "tokens", pl.col("total").alias("real"), "predicted", "residual")
    return captioned("looped-residuals", chart, title, rows.select(columns))


LOSSES = {
    "total": ("Total (objective)", REAL, "circle"),
    "expected": ("Expected cross-entropy", "#CC79A7", "square"),
    "last exit": ("Last exit", FAMILY_COLOURS["looped"], "triangle-up"),
}


def exits_figure(data: LoopedStudy) -> Figure:
    """Change of total, expected and last-exit loss from one loop to T_m, a panel for each N.

    Raises Refusal where no size was trained with one loop and with more.
    """
    if not data.gains:
        raise Refusal(loops_verdict(data), mend="train one size with recurrence 1 and with more")
    table = gains_table(data).drop_nulls("params")
    rows = in_panels(table.with_columns(size_params="params", recurrence="loops"))
    rows = rows.with_columns(pl.col("loss").replace_strict({k: name for k, (name, *_) in LOSSES.items()}))
    colour = marks.key(alt.Color, "loss", {name: colour for name, colour, _ in LOSSES.values()})
    shape = marks.key(alt.Shape, "loss", {name: shape for name, _, shape in LOSSES.values()})
    x = alt.X("loops:O", title="Loops T_m").axis(labelAngle=0)
    nats = marks.span(rows["low"], rows["high"], rows["change"], [0])
    y = linear_axis("change", "Change against one loop (nats)", *nats)
    names = [name for name, *_ in LOSSES.values()]
    offset = alt.XOffset("loss:N", scale=alt.Scale(domain=names, paddingOuter=0.3))
    layers = [
        marks.chart_of(rows).mark_rule(color=QUIET).encode(y=alt.datum(0)),
        marks.bars(rows, x, y, colour=colour).encode(xOffset=offset),
        marks.points(rows, x, y, colour=colour, shape=shape, size=50).encode(xOffset=offset),
    ]
    sizes = rows["column"].unique(maintain_order=True).to_list()
    chart = marks.repeatable(rows, layers, PANEL, PANEL * 1.3).facet(
        column=alt.Column("column:N", sort=sizes, header=alt.Header(title=None, labelFontWeight="bold"))
    )
    return captioned(
        "looped-exits",
        chart,
        text.capital(loops_verdict(data)),
        table,
        tokens=text.count(data.tokens),
        seeds=seeds_phrase(data.points),
        level=LEVEL_WORDS,
        bonus=f" {BONUS}",
    )
