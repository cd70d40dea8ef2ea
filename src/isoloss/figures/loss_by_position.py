"""Loss against the token's index in the context: two families side by side, and what it gives one more."""

from dataclasses import replace

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis import papers
from isoloss.analysis.by_position import (
    LEFT,
    START,
    FamilyPositions,
    Pair,
    PositionCurve,
    flat_by,
    use_words,
    verdict,
)
from isoloss.analysis.families import name_of
from isoloss.analysis.points import LEVEL_WORDS
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, along_ramp, family_colour, linear_axis, log_axis, shades

WIDTH, HEIGHT = 440, 400
RIGHT = 300
APART = 1.05
"""Pairs stand apart sideways by this factor, so that their bars can be told apart."""


def figure(data: FamilyPositions) -> Figure:
    """A curve a model of each pair; beside it the change of each pair's difference, where it was measured."""
    models = models_of(data)
    chart = alt.hconcat(curves(data), changes(data), spacing=30)
    made = captioned(
        "loss-by-position",
        chart,
        text.capital(verdict(data)),
        table(models),
        pairs=text.listed([f"{p.reference.name} with {p.rival.name}" for p in data.pairs]),
        tokens=text.count(data.tokens),
        diamond=f" Diamond: after it less than {LEFT:g} nats is left to gain."
        if flat_from(models).height
        else "",
        rival=name_of(data.versus.rival),
        start=f"{START // 2 + 1}–{START}",
        over=f"bars: {LEVEL_WORDS} t intervals over {data.over}",
        stops=". ".join(f"{model.name} {use_words(model.context_use)}" for model, _ in models),
        paper=f" {papers.on_position(data)}".rstrip(),
    )
    return replace(made, name=made.name + data.versus.suffix)


def models_of(data: FamilyPositions) -> list[tuple[PositionCurve, str]]:
    """The models of both families, each once, with the shades of their family, darkest for the smallest."""
    out: list[tuple[PositionCurve, str]] = []
    for family in (data.versus.reference, data.versus.rival):
        both = [m for pair in data.pairs for m in (pair.reference, pair.rival)]
        models = {m.name: m for m in both if m.family == family}
        colours = shades(family_colour(family, data.versus.families), len(models))[::-1]
        out += list(zip(models.values(), colours, strict=True))
    return out


def curves(data: FamilyPositions) -> alt.LayerChart:
    """Measured curves with the range of their seeds, named at their ends, and with where they are flat.

    The rival's are dashed.
    """
    models, families = models_of(data), {data.versus.reference: [1, 0], data.versus.rival: [6, 3]}
    drawn = [
        model.rows.with_columns(model=pl.lit(model.name), family=pl.lit(model.family), colour=pl.lit(colour))
        for model, colour in models
    ]
    dash = marks.key(alt.StrokeDash, "family", families).legend(None)
    rows, labels = pl.concat(drawn), [model.name for model, _ in models]
    x = log_axis(alt.X, "position", "Token index in the context T", 1, data.context, room=1.05)
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(rows["loss"]))
    ends = pl.concat(curve[-1:] for curve in drawn).with_columns(pl.Series("label", labels))
    layers = [
        marks.band(rows, x, y, by="model", opacity=0.12, clip=True),
        marks.line(rows, x, y, by="model", dash=dash),
        marks.points(flat_from(models), x, y, shape="diamond", size=120),
        marks.end_labels(ends, marks.EDGE, y, HEIGHT),
    ]
    return marks.panel(layers, WIDTH, HEIGHT)


def flat_from(models: list[tuple[PositionCurve, str]]) -> pl.DataFrame:
    """Where each model that is flat is so: position, loss, colour."""
    places = [
        model.rows.filter(pl.col("last") <= (flat_by(model) or 0))[-1:].with_columns(colour=pl.lit(colour))
        for model, colour in models
    ]
    return pl.concat(places)


def changes(data: FamilyPositions, plane: tuple[float, float] = (RIGHT, HEIGHT)) -> alt.LayerChart:
    """Of each pair, by octave from START on: reference minus rival, less what it is at START.

    ``plane``: width and height in pixels.
    """
    middle, colours = (len(data.pairs) - 1) / 2, along_ramp(np.linspace(0, 1, len(data.pairs)))
    rows = pl.concat(changes_of(pair, colours[i], APART ** (i - middle)) for i, pair in enumerate(data.pairs))
    x = log_axis(alt.X, "position", "Token index in the context T", START / 2, data.context, room=1.1)
    title = [f"Loss, {data.versus.words},", f"since tokens {START // 2 + 1}–{START} (nats)"]
    y = linear_axis("change", title, *marks.span(rows["low"], rows["high"], [0.0]))
    layers = [
        marks.chart_of(pl.DataFrame({"change": [0.0]})).mark_rule(color=INK).encode(y),
        marks.line(rows, x, y, by="label", width=1.6),
        marks.bars(rows, x, y),
        marks.points(rows, x, y, size=46),
        marks.end_labels(rows.group_by("label", maintain_order=True).last(), marks.EDGE, y, plane[1]),
    ]
    return marks.panel(layers, *plane)


def changes_of(pair: Pair, colour: str, shift: float) -> pl.DataFrame:
    """position, change, low, high, colour, label; 0 at START."""
    later = {(START // 2 + 1, START): None} | {o: c for o, c in pair.changes.items() if o[0] > START}
    rows = [
        (shift * (first * last) ** 0.5, *((0.0, None, None) if c is None else (c.value, *c.ends)))
        for (first, last), c in later.items()
    ]
    kinds = dict.fromkeys(("position", "change", "low", "high"), pl.Float64)
    label = f"N = {text.count(pair.reference.params)}"
    looks = {"colour": pl.lit(colour), "label": pl.lit(label)}
    return pl.DataFrame(rows, schema=kinds, orient="row").with_columns(**looks)


def table(models: list[tuple[PositionCurve, str]]) -> pl.DataFrame:
    """Every position drawn, with the range of its seeds."""
    return pl.concat(
        model.rows.select(
            pl.lit(model.curve).alias("curve"),
            pl.lit(model.params).alias("params"),
            pl.col("first").cast(pl.Int64).alias("from_token"),
            pl.col("last").cast(pl.Int64).alias("to_token"),
            "loss",
            pl.col("low").alias("lowest_seed"),
            pl.col("high").alias("highest_seed"),
        )
        for model, _ in models
    )
