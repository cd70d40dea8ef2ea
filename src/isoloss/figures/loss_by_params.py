"""Loss against non-embedding parameters N at one D: which family is ahead, and where the curves cross.

A point a seed, the law dashed with its band, a label at each curve's end.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis import papers
from isoloss.analysis.by_params import ByParams, FamilyPair
from isoloss.analysis.fit_rows import law_losses
from isoloss.analysis.params_words import crossover, total_words, verdict
from isoloss.analysis.points import LEVEL_WORDS, Curve, seeds_phrase
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, family_colour, linear_axis, log_axis, shades
from isoloss.laws import Crossing, CrossingOutcome

WIDTH, HEIGHT = 560, 400
GRID_POINTS = 60
ROOM = 1.3
COUNTED = "Counting embeddings would move the smallest models most."


def figure(data: ByParams, plane: tuple[float, float] = (WIDTH, HEIGHT)) -> Figure:
    """All families at one D, with their laws, and where those of the first pair cross inside the data."""
    drawn = _layers(data.curves, plane[1])
    pair = next((pair for pair in data.pairs.values() if isinstance(pair, FamilyPair)), None)
    crossing = pair.crossings[pair.rival] if pair else None
    if isinstance(crossing, Crossing) and crossing.outcome is CrossingOutcome.CROSSES_INSIDE:
        drawn = [*crossing_marks(crossing), *drawn]
    laws = text.listed([curve.label for curve in data.curves])
    return captioned(
        "loss-by-params",
        marks.panel(drawn, *plane),
        f"At D = {text.count(data.tokens)} tokens {verdict(pair) if pair else alone(data.curves)}",
        pl.concat(_table(curve) for curve in data.curves),
        tokens=text.count(data.tokens),
        seeds=seeds_phrase(data.points),
        level=LEVEL_WORDS,
        curves=laws,
        crossover="" if pair is None or crossing is None else f" {crossed(crossing, pair)}.",
        paper="" if pair is None else f" {papers.on_size(pair)}".rstrip(),
        total=("" if pair is None else total_words(pair)) or COUNTED,
    )


def alone(curves: Sequence[Curve]) -> str:
    """Of curves that nothing is set against: the one that falls most with N."""
    known = [(curve.change, curve.name) for curve in curves if curve.change is not None]
    if not known:
        return "no law of N could be fitted"
    change, name = min(known)
    return f"{name}: {text.signed_percent(change)} for twice N, by its law"


def crossed(crossing: Crossing | Refusal, pair: FamilyPair) -> str:
    return text.capital(f"{pair.reference} against {pair.rival}: {crossover(crossing, pair, pair.rival)}")


def looks_of(curves: Sequence[Curve]) -> list[tuple[Curve, list[pl.Expr]]]:
    """Each curve with columns of its name, colour and a point shape of its own.

    A colour means a family; shades tell its curves apart.
    """
    families = list(dict.fromkeys(curve.family for curve in curves))
    out: list[tuple[Curve, list[pl.Expr]]] = []
    for family in families:
        members = [curve for curve in curves if curve.family == family]
        colours = shades(family_colour(family, families), len(members))
        for curve, colour in zip(members, colours, strict=True):
            shape = marks.SHAPES[len(out) % len(marks.SHAPES)]
            look = {"curve": curve.name, "colour": colour, "shape": shape}
            out.append((curve, [pl.lit(value).alias(name) for name, value in look.items()]))
    return out


def _layers(curves: Sequence[Curve], height: float) -> list[alt.Chart]:
    """Bands, laws, means, points and labels of several curves on shared log-N and loss axes."""
    looks = looks_of(curves)
    points = pl.concat(curve.points.with_columns(look) for curve, look in looks)
    laws = pl.concat(_law(curve).with_columns(look) for curve, look in looks)
    means = points.group_by("curve", "colour", "params", maintain_order=True).agg(pl.col("loss").mean())
    x = log_axis(alt.X, "params", "Parameters N, non-embedding", *marks.span(points["params"]), room=ROOM)
    # Bands may be far wider than the data; they are clipped at the panel's edge instead of flattening it.
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(points["loss"]))
    labels = pl.Series("label", [curve.label for curve, _ in looks])
    ends = means.group_by("curve", maintain_order=True).last().with_columns(labels)
    lawless = [curve.name for curve, _ in looks if isinstance(curve.fit, Refusal)]
    return [
        marks.band(laws, x, y, opacity=0.13, by="curve", clip=True),
        marks.line(means.filter(pl.col("curve").is_in(lawless)), x, y, width=1, opacity=0.45, by="curve"),
        marks.line(laws, x, marks.renamed(y, "law"), dash=[6, 4], by="curve", clip=True),
        marks.points(points, x, y, shape=marks.SHAPE, size=46, opacity=0.9),
        *marks.leaders(ends, x, y, height),
        marks.end_labels(ends, marks.EDGE, y, height),
    ]


def _law(curve: Curve) -> pl.DataFrame:
    """The law over the curve's own range of N: params, law, low, high (band of the law's mean)."""
    if isinstance(curve.fit, Refusal):
        return pl.DataFrame(schema=dict.fromkeys(("params", "law", "low", "high"), pl.Float64))
    params = np.geomspace(*marks.span(curve.points["params"]), GRID_POINTS)
    predicted = curve.fit.predict(params=params)
    low, high = predicted.band if predicted.band is not None else (predicted.loss, predicted.loss)
    return pl.DataFrame({"params": params, "law": predicted.loss, "low": low, "high": high})


def _table(curve: Curve) -> pl.DataFrame:
    """Every point drawn, with its curve's law and its value there."""
    return curve.points.select(
        pl.lit(curve.name).alias("curve"),
        "params",
        "seed",
        "loss",
        law_losses(curve.fit, curve.points).alias("law_loss"),
        pl.lit(curve.law).alias("law"),
    )


def crossing_marks(crossing: Crossing) -> list[alt.Chart]:
    """A rule at the crossover, and a shade over its interval where both ends are known.

    None where its interval holds all the data.
    """
    if crossing.value is None or crossing.anywhere:
        return []
    words = f"laws cross at N = {text.count(crossing.value)}"
    chart = marks.chart_of(pl.DataFrame({"params": [crossing.value], "label": [words]}))
    x = alt.X("params:Q")
    label = chart.mark_text(align="left", dx=6, fontSize=12, color=INK)
    layers = [
        chart.mark_rule(strokeDash=[2, 2], color=INK).encode(x),
        label.encode(x, y=alt.value(12), text=alt.Text("label:N")),
    ]
    if crossing.interval is not None and None not in crossing.interval:
        low, high = crossing.interval
        shade = marks.chart_of(pl.DataFrame({"params": [low], "end": [high]}))
        layers.insert(0, shade.mark_rect(opacity=0.08, color=INK, clip=True).encode(x, x2=alt.X2("end:Q")))
    return layers
