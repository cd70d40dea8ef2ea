"""Real and predicted loss of looped models over training, a panel for each (N, T_m); the entropy bonus."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.loops import BINS, LATE, PARTS, LoopedStudy, fit_words, inputs_of, late, loops_verdict
from isoloss.analysis.points import seeds_phrase
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.fit_rows import law_at
from isoloss.figures.style import COUNTS, PREDICTED, QUIET, REAL, linear_axis, log_axis, log_ticks
from isoloss.laws import Fit, FitStatus

PANEL = 190


def with_predictions(curves: pl.DataFrame, law: Fit | Refusal, part: str) -> pl.DataFrame:
    """Long rows for drawing: panel, tokens, ``real`` and ``predicted`` (null without a law)."""
    predicted = pl.lit(None, dtype=pl.Float64)
    if isinstance(law, Fit):
        predicted = pl.Series(law_at(law, inputs_of(curves)))
    return curves.select(
        size_name().alias("column"),
        pl.concat_str(pl.lit("T_m = "), "recurrence").alias("row"),
        "params",
        "size_params",
        "recurrence",
        "tokens",
        pl.col(part).alias("real"),
        predicted.alias("predicted"),
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
    names, legend = ["Real", "Pred"], alt.Legend(title=None, orient="top", symbolSize=400)
    long = rows.rename({"real": "Real", "predicted": "Pred"}).unpivot(
        names,
        index=["row", "column", "size_params", "recurrence", "tokens"],
        variable_name="kind",
        value_name="nats",
    )
    long = long.drop_nulls("nats")
    y = linear_axis("nats", f"{text.capital(PARTS[part])} (nats)", *marks.span(rows["real"]))
    colour = alt.Color("kind:N", scale=alt.Scale(domain=names, range=[REAL, PREDICTED]), legend=legend)
    dash = alt.StrokeDash("kind:N", scale=alt.Scale(domain=names, range=[[1, 0], [5, 3]]), legend=legend)
    return panels(long, marks.line(long, x_tokens(rows, log), y, colour=colour, dash=dash))


def size_name() -> pl.Expr:
    """The panel's name of each size: 'N = 12.3K'."""
    return pl.col("size_params").map_elements(
        lambda params: f"N = {text.count(params)}", return_dtype=pl.String
    )


def law_subtitle(data: LoopedStudy, part: str, bins: str) -> str:
    law = data.fits[part]
    if isinstance(law, Refusal):
        formula = "no law, the fit was refused"
    elif law.status is FitStatus.CURVE_ONLY:
        formula = f"E + A N^-α + B D^-β + C T_m^-γ as a curve only ({law.reason})"
    else:
        formula = law.formula()
    return (
        f"Pred: {formula}; one fit to all panels, training losses after the first {text.percent(LATE)} of "
        f"each run. Real: constant-rate trunk, means over {bins} of tokens and over seeds. N non-embedding."
    )


BONUS = (
    "Total loss is expected cross-entropy minus beta times the entropy of the exits, a bonus of up to "
    "beta log T_m that no better prediction has earned."
)


def grid_figure(data: LoopedStudy, part: str = "total", *, log: bool = False) -> Figure:
    """The grid over linear or log tokens."""
    rows = with_predictions(data.log_curves if log else data.curves, data.fits[part], part)
    title = fit_words(data) if part == "total" else f"{PARTS[part]} over training, each T_m and N"
    title = text.capital(title)
    stem = {"total": "looped-grid", "expected": "looped-grid-expected", "last_exit": "looped-grid-last-exit"}[
        part
    ]
    return Figure(
        name=f"{stem}-log" if log else stem,
        chart=grid(rows, part, log),
        title=title,
        subtitle=law_subtitle(data, part, "log bins" if log else f"{BINS} bins"),
        description=(
            f"A grid of panels, one row for each T_m and one column for each N: {PARTS[part]} over training "
            f"tokens{' on a log axis' if log else ''}, real solid blue, predicted dashed orange."
        ),
        shows=f"{title}. {BONUS}" if part == "total" else f"{title}.",
        would_change="More sizes and loops would let whole rows and columns be left out and predicted.",
        table=rows.drop("row", "column", "size_params"),
    )


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
    return Figure(
        name="looped-residuals",
        chart=panels(rows, zero, marks.line(rows, x_tokens(rows, False), y, colour=REAL, width=1.6)),
        title=title,
        subtitle="Real minus predicted total loss where the law was fitted; shared axes.",
        description="A grid of panels, a row for each T_m and a column for each N: residuals over tokens.",
        shows=f"{title}. A slope or bend shared by panels is what the additive law cannot express.",
        would_change="A law with a free outer exponent, or one that lets loops and size interact.",
        table=rows.drop("row", "column", "size_params"),
    )


LOSSES = {"loss_total": "Total (objective)", "loss_expected": "Expected cross-entropy", "loss": "Last exit"}


def exits_figure(data: LoopedStudy) -> Figure:
    """Total, expected cross-entropy and last-exit loss against T_m, a panel for each N."""
    title = text.capital(loops_verdict(data))
    first = data.points.with_columns(pl.col("params").min().over("n_layer", "d_model").alias("size_params"))
    rows = first.unpivot(
        list(LOSSES), index=["size_params", "recurrence", "seed"], variable_name="which", value_name="nats"
    )
    rows = rows.with_columns(
        pl.col("which").replace_strict(LOSSES),
        size_name().alias("column"),
    ).sort("size_params", "which", "recurrence", "seed")
    names = alt.Scale(domain=list(LOSSES.values()), range=[REAL, "#CC79A7", "#00845f"])
    shapes = alt.Scale(domain=list(LOSSES.values()), range=["circle", "square", "triangle-up"])
    x = alt.X("recurrence:O", title="Loops T_m").axis(labelAngle=0)
    y = linear_axis("nats", "Nats per token", *marks.span(rows["nats"]))
    legend = alt.Legend(title=None, orient="top")
    colour = alt.Color("which:N", scale=names, legend=legend)
    shape = alt.Shape("which:N", scale=shapes, legend=legend)
    layers = [
        marks.line(rows, x, marks.renamed(y, "mean(nats)"), colour=colour),
        marks.points(rows, x, y, colour=colour, shape=shape, size=55, opacity=0.7),
    ]
    sizes = rows["column"].unique(maintain_order=True).to_list()
    chart = marks.repeatable(rows, layers, PANEL, PANEL * 1.3).facet(
        column=alt.Column("column:N", sort=sizes, header=alt.Header(title=None, labelFontWeight="bold"))
    )
    subtitle = (
        f"Validation, end of cooldown at D = {text.count(data.tokens)} tokens; {seeds_phrase(data.points)}, "
        f"one point each; lines join means. N non-embedding. Expected minus total is the entropy bonus."
    )
    return Figure(
        name="looped-exits",
        chart=chart,
        title=title,
        subtitle=subtitle,
        description="For each N, total, expected and last-exit loss against the number of loops T_m.",
        shows=f"{title}. {BONUS}",
        would_change="Equal FLOPs in place of equal N would charge loops for their compute.",
        table=rows.select(
            pl.col("size_params").alias("params"), "recurrence", "seed", pl.col("which").alias("loss"), "nats"
        ),
    )
