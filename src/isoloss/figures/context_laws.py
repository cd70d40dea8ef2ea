"""How Transformers use context: a law in the token index for each size, and when each index is learned."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.contexts import Contexts, law_verdict, steps_verdict
from isoloss.analysis.positions import BINS_IN_WORDS, CURVE_WORDS, binned, law_words
from isoloss.errors import Refusal
from isoloss.figures.figure import Figure
from isoloss.figures.marks import chart_of
from isoloss.figures.style import COUNTS, INK, RAMP, linear_axis, log_axis, log_ticks, spread, titled
from isoloss.laws import Fit
from isoloss.stats import LEVEL

WIDTH, HEIGHT = 520, 400


def laws_figure(data: Contexts) -> Figure:
    title = text.capital(law_verdict(data))
    subtitle = (
        f"Transformers, end of cooldown at D = {text.count(data.tokens)} tokens; N non-embedding; position "
        f"bins: {BINS_IN_WORDS}. Solid: measured, mean of seeds. Dashed: a + b T^-p fitted to single "
        f"positions; {CURVE_WORDS}; intervals are {text.level(LEVEL)} t over seeds."
    )
    return Figure(
        name="context-laws",
        chart=titled(laws_chart(data), title, subtitle),
        title=title,
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
    rows = pl.concat(
        binned(s.profile).with_columns(pl.lit(s.profile.params).alias("params")) for s in data.sizes
    )
    x = log_axis(alt.X, "position", "Token index in the context T", 1, data.context, room=1.05)
    y = linear_axis("loss", "Validation loss (nats per token)", rows["loss"].min(), rows["loss"].max())
    colour = ramp("params", "Parameters N (log scale)", rows["params"].min(), rows["params"].max())
    parts = [chart_of(rows).mark_line(strokeWidth=2).encode(x, y, color=colour, detail="params:N")]
    position = np.geomspace(1, data.context, 60)
    fits = [
        pl.DataFrame({"position": position, "loss": s.law.predict(position=position).loss}).with_columns(
            pl.lit(s.profile.params).alias("params")
        )
        for s in data.sizes
        if isinstance(s.law, Fit)
    ]
    if fits:
        dashed = chart_of(pl.concat(fits)).mark_line(strokeDash=[5, 4], strokeWidth=1.3, clip=True)
        parts.append(dashed.encode(x, y, color=colour, detail="params:N"))
    ends = [float(rows.filter(pl.col("params") == s.profile.params)["loss"][-1]) for s in data.sizes]
    gap = 17 * 1.1 * (rows["loss"].max() - rows["loss"].min()) / HEIGHT
    words = [
        {
            "position": data.context * 1.05,
            "loss": place,
            "label": f"N = {text.count(s.profile.params)}: {law_words(s.law)}",
        }
        for s, place in zip(data.sizes, spread(ends, gap), strict=True)
    ]
    label = alt.Chart(alt.InlineData(values=words)).mark_text(align="left", dx=8, fontSize=12, color=INK)
    return alt.layer(*parts, label.encode(x, y, text="label:N")).properties(width=WIDTH, height=HEIGHT)


def ramp(column: str, title: str, low: float, high: float) -> alt.Color:
    """A colour bar along a logarithmic quantity, under the panel."""
    high = max(high, low * 1.001)
    scale = alt.Scale(type="log", range=list(RAMP), domain=[low, high])
    bar = alt.Legend(
        title=title,
        type="gradient",
        labelExpr=COUNTS,
        orient="bottom",
        direction="horizontal",
        gradientLength=320,
        values=log_ticks(low, high),
    )
    return alt.Color(f"{column}:Q", scale=scale, legend=bar)


def laws_table(data: Contexts) -> pl.DataFrame:
    parts = []
    for size in data.sizes:
        rows = binned(size.profile)
        law = pl.lit(None, dtype=pl.Float64)
        if isinstance(size.law, Fit):
            law = pl.Series(np.asarray(size.law.predict(position=rows["position"].to_numpy()).loss))
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
    x = log_axis(alt.X, "step", "Training step", mean["step"].min(), mean["step"].max(), room=1.1)
    y = linear_axis("loss", "Validation loss (nats per token)", mean["loss"].min(), mean["loss"].max())
    colour = ramp("position", "Token index T (log scale)", 1, data.context)
    lines = chart_of(mean).mark_line(strokeWidth=2)
    drawn = lines.encode(x, y, color=colour, detail="from_token:N").properties(width=WIDTH, height=HEIGHT)
    return Figure(
        name="context-steps",
        chart=titled(drawn, title, subtitle),
        title=title,
        description="Loss against training step on a log axis, one curve an octave of the token index.",
        shows=f"{title}. All curves belong to one model; the colour is the position, not the size.",
        would_change="A longer run lets late positions improve on; a larger model learns more from far back.",
        table=data.steps,
    )
