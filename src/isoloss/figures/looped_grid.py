"""Real and predicted loss of looped models over training, a panel for each (N, T_m); the entropy bonus."""

from dataclasses import replace

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import law_losses
from isoloss.analysis.loops import BINS, LATE, PARTS, LoopedStudy, fit_words, late, loops_verdict
from isoloss.analysis.points import seeds_phrase
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import COUNTS, PREDICTED, QUIET, REAL, linear_axis, log_axis, log_ticks
from isoloss.laws import Fit, FitStatus

PANEL = 190


def with_predictions(curves: pl.DataFrame, law: Fit | Refusal, part: str) -> pl.DataFrame:
    """Long rows for drawing: panel, tokens, ``real`` and ``predicted`` (null without a law)."""
    return curves.select(
        size_name().alias("column"),
        pl.concat_str(pl.lit("T_m = "), "recurrence").alias("row"),
        "params",
        "size_params",
        "recurrence",
        "tokens",
        pl.col(part).alias("real"),
        law_losses(law, curves).alias("predicted"),
    )


def panels(rows: pl.DataFrame, *layers: alt.Chart) -> alt.FacetChart:
    """Rows T_m, columns N, axes shared by all panels; the layers draw from ``rows``."""
    sizes = rows.sort("size_params")["column"].unique(maintain_order=True).to_list()
    loops = rows.sort("recurrence")["row"].unique(maintain_order=True).to_list()
    layered = marks.repeatable(rows, layers, PANEL, PANEL * 0.72)
    header = alt.Header(title=None, labelFontWeight="bold")
    return layered.facet(
        row=alt.Row("row:N", sort=loops, header=header),
        column=alt.Column("column:N", sort=sizes, header=header),
    )


def x_tokens(rows: pl.DataFrame, log: bool) -> alt.X:
    if not log:
        return alt.X("tokens:Q", title="Training tokens D").axis(tickCount=4, labelExpr=COUNTS)
    low, high = marks.span(rows["tokens"])
    decades = [tick for tick in log_ticks(low, high) if np.log10(tick) % 1 == 0]
    return log_axis(alt.X, "tokens", "Training tokens D", low, high, room=1.1, ticks=decades)


def grid(rows: pl.DataFrame, part: str, log: bool) -> alt.FacetChart:
    """Real solid blue, Pred dashed orange."""
    long = rows.rename({"real": "Real", "predicted": "Pred"}).unpivot(
        ["Real", "Pred"],
        index=["row", "column", "size_params", "recurrence", "tokens"],
        variable_name="kind",
        value_name="nats",
    )
    long = long.drop_nulls("nats")
    y = linear_axis("nats", f"{text.capital(PARTS[part])} (nats)", *marks.span(rows["real"]))
    colour = marks.key(alt.Color, "kind", {"Real": REAL, "Pred": PREDICTED}, symbolSize=400)
    dash = marks.key(alt.StrokeDash, "kind", {"Real": [1, 0], "Pred": [5, 3]}, symbolSize=400)
    return panels(long, marks.line(long, x_tokens(rows, log), y, colour=colour, dash=dash, clip=True))


def size_name() -> pl.Expr:
    """The panel's name of each size: 'N = 12.3K'."""
    return pl.col("size_params").map_elements(
        lambda params: f"N = {text.count(params)}", return_dtype=pl.String
    )


def law_words(law: Fit | Refusal) -> str:
    """Its formula, or that it is only a curve or refused."""
    if isinstance(law, Refusal):
        return "no law, the fit was refused"
    if law.status is FitStatus.CURVE_ONLY:
        return f"E + A N^-α + B D^-β + C T_m^-γ as a curve only ({law.reason})"
    return law.formula()


STEMS = {"total": "looped-grid", "expected": "looped-grid-expected", "last_exit": "looped-grid-last-exit"}
BONUS = (
    "Total loss is expected cross-entropy minus beta times the entropy of the exits, a bonus of up to "
    "beta log T_m that no better prediction has earned."
)


def grid_figure(data: LoopedStudy, part: str = "total", *, log: bool = False) -> Figure:
    """The grid over linear or log tokens."""
    rows = with_predictions(data.log_curves if log else data.curves, data.fits[part], part)
    title = fit_words(data) if part == "total" else f"{PARTS[part]} over training, each T_m and N"
    drawn = captioned(
        "looped-grid",
        grid(rows, part, log),
        text.capital(title),
        rows.drop("row", "column", "size_params"),
        formula=law_words(data.fits[part]),
        start=text.percent(LATE),
        bins="log bins" if log else f"{BINS} bins",
        part=PARTS[part],
        axis=" on a log axis" if log else "",
        bonus=f" {BONUS}" if part == "total" else "",
    )
    return replace(drawn, name=f"{STEMS[part]}-log" if log else STEMS[part])


def residual_figure(data: LoopedStudy) -> Figure:
    """Raises Refusal if the law was refused."""
    law = data.fits["total"]
    if isinstance(law, Refusal):
        raise law
    rows = with_predictions(late(data.curves), law, "total").with_columns(
        (pl.col("real") - pl.col("predicted")).alias("residual")
    )
    worst = marks.span(rows["residual"].abs())[1]
    start = text.percent(LATE)
    title = f"Residuals of the one law stay within {worst:.3f} nats after the first {start} of each run"

    scale = alt.Scale(domain=[-1.1 * worst, 1.1 * worst])
    zero = marks.chart_of(rows).mark_rule(color=QUIET).encode(y=alt.datum(0))
    y = alt.Y("residual:Q", title="Real − Pred (nats)", scale=scale)
    chart = panels(rows, zero, marks.line(rows, x_tokens(rows, False), y, colour=REAL, width=1.6))
    return captioned("looped-residuals", chart, title, rows.drop("row", "column", "size_params"))


LOSSES = {"loss_total": "Total (objective)", "loss_expected": "Expected cross-entropy", "loss": "Last exit"}


def exits_figure(data: LoopedStudy) -> Figure:
    """Total, expected cross-entropy and last-exit loss against T_m, a panel for each N."""
    first = data.points.with_columns(pl.col("params").min().over("n_layer", "d_model").alias("size_params"))
    rows = first.unpivot(
        list(LOSSES), index=["size_params", "recurrence", "seed"], variable_name="which", value_name="nats"
    )
    rows = rows.with_columns(
        pl.col("which").replace_strict(LOSSES),
        size_name().alias("column"),
    ).sort("size_params", "which", "recurrence", "seed")
    x = alt.X("recurrence:O", title="Loops T_m").axis(labelAngle=0)
    y = linear_axis("nats", "Nats per token", *marks.span(rows["nats"]))
    colour = marks.key(
        alt.Color, "which", dict(zip(LOSSES.values(), (REAL, "#CC79A7", "#00845f"), strict=True))
    )
    shape = marks.key(alt.Shape, "which", dict(zip(LOSSES.values(), marks.SHAPES, strict=False)))
    layers = [
        marks.line(rows, x, marks.renamed(y, "mean(nats)"), colour=colour),
        marks.points(rows, x, y, colour=colour, shape=shape, size=55, opacity=0.7),
    ]
    sizes = rows["column"].unique(maintain_order=True).to_list()
    chart = marks.repeatable(rows, layers, PANEL, PANEL * 1.3).facet(
        column=alt.Column("column:N", sort=sizes, header=alt.Header(title=None, labelFontWeight="bold"))
    )
    return captioned(
        "looped-exits",
        chart,
        text.capital(loops_verdict(data)),
        rows.select(
            pl.col("size_params").alias("params"), "recurrence", "seed", pl.col("which").alias("loss"), "nats"
        ),
        tokens=text.count(data.tokens),
        seeds=seeds_phrase(data.points),
        bonus=f" {BONUS}",
    )
