"""How Transformers use context: a law in the token index for each size, and when each index is learned."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.contexts import Contexts, law_verdict, steps_verdict
from isoloss.analysis.positions import BINS_IN_WORDS, CURVE_WORDS, binned, law_words
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.fit_rows import law_at
from isoloss.figures.style import linear_axis, log_axis
from isoloss.laws import Fit
from isoloss.stats import LEVEL

WIDTH, HEIGHT = 520, 400


def laws_figure(data: Contexts) -> Figure:
    """Loss against token index, a curve a size, its law dashed."""
    title = text.capital(law_verdict(data))
    subtitle = (
        f"Transformers, end of cooldown at D = {text.count(data.tokens)} tokens; N non-embedding; position "
        f"bins: {BINS_IN_WORDS}. Solid: measured, mean of seeds. Dashed: a + b T^-p fitted to single "
        f"positions; {CURVE_WORDS}; intervals are {text.level(LEVEL)} t over seeds."
    )
    return Figure(
        name="context-laws",
        chart=laws_chart(data),
        title=title,
        subtitle=subtitle,
        description=(
            "Loss against token index on a log axis for each Transformer size, darkest for the smallest: "
            + "; ".join(f"N = {text.count(s.profile.params)}: {law_words(s.law)}" for s in data.sizes)
        ),
        shows=(
            f"{title}. In a + b T^-p, a is the loss at endless context, b the amplitude and p the exponent: "
            "how fast more context helps. The table sets each law's context mean beside the measured one."
        ),
        would_change="A longer context tells a from p better; more seeds narrow the exponents' intervals.",
        table=laws_table(data),
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
        layers.append(marks.line(dashed, x, y, colour=colour, dash=[5, 4], width=1.3, by="params"))
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
    seeds = len(data.sizes[-1].profile.run_ids)
    subtitle = (
        f"Transformer of N = {text.count(data.largest)} (non-embedding), the largest; constant-rate trunk, "
        f"mean of {text.plural(seeds, 'seed')}; evaluated at powers of two, step 0 left out. "
        "One curve an octave of the token index."
    )
    mean = (
        data.steps.group_by("from_token", "to_token", "step", maintain_order=True)
        .agg(pl.col("loss").mean())
        .with_columns((pl.col("from_token") * pl.col("to_token")).sqrt().alias("position"))
    )
    x = log_axis(alt.X, "step", "Training step", *marks.span(mean["step"]), room=1.1)
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(mean["loss"]))
    colour = marks.colour_bar("position", "Token index T", 1, data.context)
    lines = marks.line(mean, x, y, colour=colour, by="from_token")
    return Figure(
        name="context-steps",
        chart=marks.panel([lines], WIDTH, HEIGHT),
        title=title,
        subtitle=subtitle,
        description="Loss against training step on a log axis, one curve an octave of the token index.",
        shows=f"{title}. All curves belong to one model; the colour is the position, not the size.",
        would_change="A longer run lets late positions improve on; a larger model learns more from far back.",
        table=data.steps,
    )
