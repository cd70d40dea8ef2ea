"""How Transformers use context: a law in the token index for each size, and when each index is learned."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.contexts import Contexts, law_verdict, steps_verdict
from isoloss.analysis.fit_rows import law_at
from isoloss.analysis.points import LEVEL_WORDS
from isoloss.analysis.positions import BINS_IN_WORDS, CURVE_WORDS, binned, law_words
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import linear_axis, log_axis
from isoloss.laws import Fit

WIDTH, HEIGHT = 520, 400


def laws_figure(data: Contexts) -> Figure:
    """Loss against token index, a curve a size, its law dashed."""
    title = text.capital(law_verdict(data))
    return captioned(
        "context-laws",
        laws_chart(data),
        title,
        laws_table(data),
        tokens=text.count(data.tokens),
        bins=BINS_IN_WORDS,
        curve_only=CURVE_WORDS,
        level=LEVEL_WORDS,
        sizes="; ".join(f"N = {text.count(s.profile.params)}: {law_words(s.law)}" for s in data.sizes),
    )


def laws_chart(data: Contexts) -> alt.LayerChart:
    """A curve a size, coloured by N, its law dashed, both named at the curve's end."""
    sizes = [(size, pl.lit(size.profile.params).alias("params")) for size in data.sizes]
    curves = [binned(size.profile).with_columns(params) for size, params in sizes]
    rows = pl.concat(curves)
    x = log_axis(alt.X, "position", "Token index in the context T", 1, data.context, room=1.05)
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(rows["loss"]))
    colour = marks.colour_bar("params", "Parameters N", *marks.span(rows["params"]))
    layers = [marks.line(rows, x, y, colour=colour, by="params")]
    position = np.geomspace(1, data.context, 60)
    laws = [
        pl.DataFrame({"position": position, "loss": law_at(size.law, {"position": position})}).with_columns(
            params
        )
        for size, params in sizes
        if isinstance(size.law, Fit)
    ]
    if laws:
        dashed = pl.concat(laws)
        layers.append(marks.line(dashed, x, y, colour=colour, dash=[5, 4], width=1.3, by="params", clip=True))
    names = [f"N = {text.count(size.profile.params)}: {law_words(size.law)}" for size in data.sizes]
    ends = pl.concat(curve[-1:] for curve in curves).with_columns(pl.Series("label", names))
    return marks.panel([*layers, marks.end_labels(ends, marks.EDGE, y, HEIGHT)], WIDTH, HEIGHT)


def laws_table(data: Contexts) -> pl.DataFrame:
    """Every bin drawn, with its law's loss and the context means, measured and implied."""
    parts: list[pl.DataFrame] = []
    for size in data.sizes:
        rows = binned(size.profile)
        law = pl.lit(None, dtype=pl.Float64)
        if isinstance(size.law, Fit):
            law = pl.Series(law_at(size.law, {"position": rows["position"].to_numpy()}))
        parts.append(
            rows.select(
                pl.lit(size.profile.params).alias("params"),
                pl.col("first").alias("from_token"),
                pl.col("last").alias("to_token"),
                "loss",
                law.alias("law_loss"),
                pl.lit(law_words(size.law)).alias("law"),
                pl.lit(size.measured_mean).alias("measured_context_mean"),
                pl.lit(size.implied_mean, dtype=pl.Float64).alias("context_mean_of_law"),
            )
        )
    return pl.concat(parts)


def steps_figure(data: Contexts) -> Figure:
    """Raises Refusal without evaluations along the trunk."""
    if data.steps.is_empty():
        raise Refusal("no evaluation along the trunk was recorded", mend="evaluate along the trunk")
    title = text.capital(steps_verdict(data))
    mean = (
        data.steps.group_by("from_token", "to_token", "step", maintain_order=True)
        .agg(pl.col("loss").mean())
        .with_columns((pl.col("from_token") * pl.col("to_token")).sqrt().alias("position"))
    )
    x = log_axis(alt.X, "step", "Training step", *marks.span(mean["step"]), room=1.1)
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(mean["loss"]))
    colour = marks.colour_bar("position", "Token index T", 1, data.context)
    lines = marks.line(mean, x, y, colour=colour, by="from_token")
    return captioned(
        "context-steps",
        marks.panel([lines], WIDTH, HEIGHT),
        title,
        data.steps,
        params=text.count(data.largest),
        seeds=text.plural(len(data.sizes[-1].profile.run_ids), "seed"),
    )
