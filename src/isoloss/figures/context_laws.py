"""How Transformers use context: a law in the token index for each size, and when each index is learned."""

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.contexts import Contexts, law_verdict, steps_verdict
from isoloss.analysis.fit_rows import law_losses
from isoloss.analysis.points import LEVEL_WORDS
from isoloss.analysis.positions import BINS_IN_WORDS, CURVE_WORDS, bin_means, law_words
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.loss_by_position import curves_and_laws
from isoloss.figures.style import linear_axis, log_axis

WIDTH, HEIGHT = 520, 400


def laws_figure(data: Contexts) -> Figure:
    """Loss against token index: a curve a size, coloured by N, its law dashed, both named at its end."""
    sizes = [(size, size.profile.params) for size in data.sizes]
    colour = marks.colour_bar("params", "Parameters N", sizes[0][1], sizes[-1][1])
    looks = [(size, f"N = {text.count(N)}", pl.lit(N).alias("params")) for size, N in sizes]
    *_, layers = curves_and_laws(looks, data.context, colour, HEIGHT)
    return captioned(
        "context-laws",
        marks.panel(layers, WIDTH, HEIGHT),
        text.capital(law_verdict(data)),
        laws_table(data),
        tokens=text.count(data.tokens),
        bins=BINS_IN_WORDS,
        curve_only=CURVE_WORDS,
        level=LEVEL_WORDS,
        sizes="; ".join(f"{name}: {law_words(size.law)}" for size, name, _ in looks),
    )


def laws_table(data: Contexts) -> pl.DataFrame:
    """Every bin drawn, with its law's loss and the context means, measured and implied."""
    parts: list[pl.DataFrame] = []
    for size in data.sizes:
        rows = bin_means(size.profile)
        parts.append(
            rows.select(
                pl.lit(size.profile.params).alias("params"),
                pl.col("first").alias("from_token"),
                pl.col("last").alias("to_token"),
                "loss",
                law_losses(size.law, rows).alias("law_loss"),
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
        text.capital(steps_verdict(data)),
        data.steps,
        params=text.count(data.largest),
        seeds=text.plural(len(data.sizes[-1].profile.run_ids), "seed"),
    )
