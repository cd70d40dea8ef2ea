"""Loss against non-embedding parameters N at one D: which family is ahead, and where the curves cross."""

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.by_params import ByParams, crossover, verdict
from isoloss.analysis.points import seeds_phrase
from isoloss.figures.figure import Figure
from isoloss.figures.lines import layers, lines_of, table_of
from isoloss.figures.marks import chart_of, panel
from isoloss.figures.style import INK
from isoloss.laws import Crossing, CrossingOutcome
from isoloss.stats import LEVEL

WIDTH, HEIGHT = 560, 400


def figure(data: ByParams) -> Figure:
    """Both families at one D, with their laws, and where these cross if they do inside the data."""
    title = f"At D = {text.count(data.tokens)} tokens {verdict(data)}"
    rival, lines = data.headline, lines_of(data.curves)
    crossing = data.crossings[rival]
    subtitle = (
        f"N: non-embedding parameters (rule params). End of cooldown at D = {text.count(data.tokens)} "
        f"tokens; {seeds_phrase(data.points)}, one point each; solid lines join means. Dashed: fitted law "
        f"with the {text.level(LEVEL)} t band of its mean. Ahead: the {text.level(LEVEL)} t interval of the "
        f"difference at equal N, from pooled seeds, leaves out 0."
    )
    drawn = layers(lines, height=HEIGHT, y_title="Validation loss (nats per token)")
    if isinstance(crossing, Crossing) and crossing.outcome is CrossingOutcome.CROSSES_INSIDE:
        drawn = [*crossing_marks(crossing), *drawn]
    where = crossover(crossing, rival)
    curves = text.listed([f"{curve.name} ({curve.law})" for curve in data.curves])
    return Figure(
        name="loss-by-params",
        chart=panel(drawn, WIDTH, HEIGHT),
        title=title,
        subtitle=subtitle,
        description=f"Loss against number of parameters on a log axis for {curves}; {where}.",
        shows=f"{title}. Against the {rival}, {where}.",
        would_change=(
            "Another D, another corpus or a wider range of N; more seeds narrow the bands. Counting "
            "embeddings too (params_total) moves small models to the right by their whole embedding."
        ),
        table=table_of(data.curves),
    )


def crossing_marks(crossing: Crossing) -> list[alt.Chart]:
    """A rule at the crossover, and a shade over its interval where both ends are known."""
    if crossing.value is None:
        return []
    words = f"laws cross at N = {text.count(crossing.value)}"
    place = pl.DataFrame({"params": [crossing.value], "label": [words]})
    x = alt.X("params:Q")
    layers = [
        chart_of(place).mark_rule(strokeDash=[2, 2], color=INK).encode(x),
        chart_of(place)
        .mark_text(align="left", dx=6, fontSize=12, color=INK)
        .encode(x, y=alt.value(12), text="label:N"),
    ]
    if crossing.interval is not None and None not in crossing.interval:
        low, high = crossing.interval
        shade = chart_of(pl.DataFrame({"params": [low], "end": [high]}))
        layers.insert(0, shade.mark_rect(opacity=0.08, color=INK, clip=True).encode(x, x2="end:Q"))
    return layers
