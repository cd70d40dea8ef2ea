"""Loss against the token's index in the context: Transformers and LSTMs of like size, side by side."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.by_position import ByPosition, Pair, PositionCurve, name_of, stop_words, verdict
from isoloss.analysis.contexts import ContextSize
from isoloss.analysis.fit_rows import law_losses
from isoloss.analysis.positions import BINS_IN_WORDS, CURVE_WORDS, bin_means, law_words
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import FAMILY_COLOURS, linear_axis, log_axis, shades
from isoloss.laws import ContextStop

WIDTH, HEIGHT = 520, 420


def figure(data: ByPosition) -> Figure:
    """A curve a model of each pair, its law dashed, a diamond where it stops improving."""
    models = [(m, c) for family in ("transformer", "lstm") for m, c in models_of(data, family)]
    return captioned(
        "loss-by-position",
        chart(models, data.context),
        text.capital(verdict(data)),
        table(models),
        pairs=text.listed([pair_words(pair) for pair in data.pairs]),
        tokens=text.count(data.tokens),
        bins=BINS_IN_WORDS,
        curve_only=CURVE_WORDS,
        stops="; ".join(f"{name_of(model)} {stop_words(model.stop)}" for model, _ in models),
    )


def pair_words(pair: Pair) -> str:
    ours, theirs = pair.transformer.profile, pair.lstm.profile
    return (
        f"Transformer {text.count(ours.params)} with {theirs.curve} {text.count(theirs.params)} "
        f"(ratio {pair.ratio:.2f})"
    )


def models_of(data: ByPosition, family: str) -> list[tuple[PositionCurve, str]]:
    """The models of one family, each once, with their shades."""
    models: dict[str, PositionCurve] = {}
    for pair in data.pairs:
        model = pair.transformer if family == "transformer" else pair.lstm
        models.setdefault(name_of(model), model)
    return list(zip(models.values(), shades(FAMILY_COLOURS[family], len(models)), strict=True))


def chart(models: list[tuple[PositionCurve, str]], context: int) -> alt.LayerChart:
    """Range of seeds, measured curve, law and diamond of each model, named at its end."""
    looks = [(model, name_of(model), pl.lit(colour).alias("colour")) for model, colour in models]
    rows, x, y, (*lines, labels) = curves_and_laws(looks, context, marks.COLOUR, HEIGHT)
    layers = [marks.band(rows, x, y, by="model"), *lines, stop_marks(models, x, y), labels]
    return marks.panel(layers, WIDTH, HEIGHT)


def curves_and_laws(
    models: Sequence[tuple[PositionCurve | ContextSize, str, pl.Expr]],
    context: int,
    colour: alt.Color,
    height: float,
) -> tuple[pl.DataFrame, alt.X, alt.Y, list[alt.Chart]]:
    """Bins of models, axes, and their layers: a line a model, its law dashed, both named at the line's end.

    Each model comes with its name and the column of its ``colour``.
    """
    position = pl.DataFrame({"position": np.geomspace(1, context, 60)})
    curves: list[pl.DataFrame] = []
    laws: list[pl.DataFrame] = []
    for model, name, look in models:
        looks = [look, pl.lit(name).alias("model")]
        curves.append(bin_means(model.profile).with_columns(looks))
        laws.append(position.with_columns(looks, loss=law_losses(model.law, position)).drop_nulls("loss"))
    rows, labels = pl.concat(curves), [f"{name}: {law_words(model.law)}" for model, name, _ in models]
    x = log_axis(alt.X, "position", "Token index in the context T", 1, context, room=1.05)
    y = linear_axis("loss", "Validation loss (nats per token)", *marks.span(rows["loss"]))
    ends = pl.concat(curve[-1:] for curve in curves).with_columns(pl.Series("label", labels))
    layers = [
        marks.line(rows, x, y, colour=colour, by="model"),
        marks.line(pl.concat(laws), x, y, colour=colour, dash=[5, 4], width=1.3, by="model", clip=True),
        marks.end_labels(ends, marks.EDGE, y, height),
    ]
    return rows, x, y, layers


def stop_marks(models: list[tuple[PositionCurve, str]], x: alt.X, y: alt.Y) -> alt.Chart:
    """A diamond where each model stops improving."""
    rows: list[dict[str, float | str]] = []
    for model, colour in models:
        if isinstance(model.stop, ContextStop) and model.stop.index is not None:
            bins = bin_means(model.profile).filter(pl.col("first") <= model.stop.index)
            rows.append({"position": model.stop.index, "loss": bins["loss"][-1], "colour": colour})
    diamonds = marks.chart_of(pl.DataFrame(rows)).mark_point(
        shape="diamond", size=150, filled=True, stroke="white", strokeWidth=1.5, opacity=1
    )
    return diamonds.encode(x, y, color=marks.COLOUR)


def table(models: list[tuple[PositionCurve, str]]) -> pl.DataFrame:
    """Every bin drawn, with the range of its seeds and its law's loss."""
    parts: list[pl.DataFrame] = []
    for model, _ in models:
        rows = bin_means(model.profile)
        parts.append(
            rows.select(
                pl.lit(model.profile.curve).alias("curve"),
                pl.lit(model.profile.params).alias("params"),
                pl.col("first").alias("from_token"),
                pl.col("last").alias("to_token"),
                "loss",
                pl.col("low").alias("lowest_seed"),
                pl.col("high").alias("highest_seed"),
                law_losses(model.law, rows).alias("law_loss"),
            )
        )
    return pl.concat(parts)
