"""Loss against non-embedding parameters N at one D: which family is ahead, and where the curves cross."""

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.by_params import ByParams, crossover, verdict
from isoloss.analysis.points import LEVEL_WORDS, seeds_phrase
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.lines import layers, lines_of, table_of
from isoloss.figures.marks import chart_of, panel
from isoloss.figures.style import INK
from isoloss.laws import Crossing, CrossingOutcome

WIDTH, HEIGHT = 560, 400


def figure(data: ByParams) -> Figure:
    """Both families at one D, with their laws, and where these cross if they do inside the data."""
    lines, crossing = lines_of(data.curves), data.crossings[data.headline]
    drawn = layers(lines, height=HEIGHT, y_title="Validation loss (nats per token)")
    if isinstance(crossing, Crossing) and crossing.outcome is CrossingOutcome.CROSSES_INSIDE:
        drawn = [*crossing_marks(crossing), *drawn]
    return captioned(
        "loss-by-params",
        panel(drawn, WIDTH, HEIGHT),
        f"At D = {text.count(data.tokens)} tokens {verdict(data)}",
        table_of(data.curves),
        tokens=text.count(data.tokens),
        seeds=seeds_phrase(data.points),
        level=LEVEL_WORDS,
        curves=text.listed([f"{curve.name} ({curve.law})" for curve in data.curves]),
        rival=data.headline,
        crossover=crossover(crossing, data.headline),
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
