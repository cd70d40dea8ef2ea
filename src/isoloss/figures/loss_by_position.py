"""Loss against the token's index in the context: Transformers and LSTMs of like size, side by side."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.by_position import ByPosition, Pair, PositionCurve, name_of, stop_words, verdict
from isoloss.analysis.positions import BINS_IN_WORDS, CURVE_WORDS, binned, law_words
from isoloss.figures.figure import Figure
from isoloss.figures.marks import chart_of
from isoloss.figures.style import FAMILY_COLOURS, linear_axis, log_axis, shades, spread, titled
from isoloss.laws import ContextStop, Fit

WIDTH, HEIGHT = 520, 420


def figure(data: ByPosition) -> Figure:
    models = [(m, c) for family in ("transformer", "lstm") for m, c in coloured(data, family)]
    title = text.capital(verdict(data))
    subtitle = (
        f"Pairs of nearest N (non-embedding): {text.listed([pair_words(p) for p in data.pairs])}. End of "
        f"cooldown at D = {text.count(data.tokens)} tokens; position bins: {BINS_IN_WORDS}. Shade: lowest to "
        f"highest seed. Dashed: fitted a + b T^-p; {CURVE_WORDS}. Diamond: first token after which no gain "
        "is seen."
    )
    stops = "; ".join(f"{name_of(m)} {stop_words(m.stop)}" for m, _ in models)
    return Figure(
        name="loss-by-position",
        chart=titled(chart(models, data.context), title, subtitle),
        title=title,
        description=f"Loss against token index on a log axis, one curve a model. {stops}.",
        shows=f"{title}. {stops}. All models read the same windows: wiggles that they share are the text's.",
        would_change=(
            "A longer context, or state carried over from window to window (here LSTMs start every window "
            "from zero); more validation windows sharpen where improvement stops, more seeds the gaps."
        ),
        table=table(models),
    )


def pair_words(pair: Pair) -> str:
    ours, theirs = pair.transformer.profile, pair.lstm.profile
    return (
        f"Transformer {text.count(ours.params)} with {theirs.curve} {text.count(theirs.params)} "
        f"(ratio {pair.ratio:.2f})"
    )


def coloured(data: ByPosition, family: str) -> list[tuple[PositionCurve, str]]:
    models = {}
    for pair in data.pairs:
        model = pair.transformer if family == "transformer" else pair.lstm
        models.setdefault(name_of(model), model)
    return list(zip(models.values(), shades(FAMILY_COLOURS[family], len(models)), strict=True))


def chart(models: list[tuple[PositionCurve, str]], context: int) -> alt.LayerChart:
    rows = pl.concat(
        binned(m.profile).with_columns(pl.lit(name_of(m)).alias("model"), pl.lit(colour).alias("colour"))
        for m, colour in models
    )
    x = log_axis(alt.X, "position", "Token index in the context T", 1, context, room=1.05)
    y = linear_axis("loss", "Validation loss (nats per token)", rows["loss"].min(), rows["loss"].max())
    colour, one = alt.Color("colour:N", scale=None), alt.Detail("model:N")
    laws = [law_curve(m, colour, context) for m, colour in models if isinstance(m.law, Fit)]
    parts = [
        chart_of(rows)
        .mark_area(opacity=0.2)
        .encode(x, alt.Y("low:Q"), y2="high:Q", color=colour, detail=one),
        chart_of(rows).mark_line(strokeWidth=2).encode(x, y, color=colour, detail=one),
    ]
    if laws:
        dashed = chart_of(pl.concat(laws)).mark_line(strokeDash=[5, 4], strokeWidth=1.3, clip=True)
        parts.append(dashed.encode(x, y, color=colour, detail=one))
    parts.append(stop_marks(models, x, y))
    parts.append(labels(models, rows, context, x, y))
    return alt.layer(*parts).properties(width=WIDTH, height=HEIGHT)


def law_curve(model: PositionCurve, colour: str, context: int) -> pl.DataFrame:
    position = np.geomspace(1, context, 60)
    loss = np.asarray(model.law.predict(position=position).loss)
    return pl.DataFrame({"position": position, "loss": loss, "model": name_of(model), "colour": colour})


def stop_marks(models: list[tuple[PositionCurve, str]], x: alt.X, y: alt.Y) -> alt.Chart:
    rows = []
    for model, colour in models:
        if isinstance(model.stop, ContextStop) and model.stop.index is not None:
            at = binned(model.profile).filter(pl.col("first") <= model.stop.index)[-1]
            rows.append({"position": model.stop.index, "loss": at["loss"][0], "colour": colour})
    marks = alt.Chart(alt.InlineData(values=rows)).mark_point(
        shape="diamond", size=150, filled=True, stroke="white", strokeWidth=1.5, opacity=1
    )
    return marks.encode(x, y, color=alt.Color("colour:N", scale=None))


def labels(
    models: list[tuple[PositionCurve, str]], rows: pl.DataFrame, context: int, x: alt.X, y: alt.Y
) -> alt.Chart:
    ends = [float(rows.filter(pl.col("model") == name_of(m))["loss"][-1]) for m, _ in models]
    gap = 17 * 1.1 * (rows["loss"].max() - rows["loss"].min()) / HEIGHT
    values = [
        {"position": context * 1.05, "loss": place, "label": f"{name_of(m)}: {law_words(m.law)}", "colour": c}
        for (m, c), place in zip(models, spread(ends, gap), strict=True)
    ]
    words = alt.Chart(alt.InlineData(values=values)).mark_text(
        align="left", dx=8, fontSize=12, fontWeight="bold"
    )
    return words.encode(x, y, text="label:N", color=alt.Color("colour:N", scale=None))


def table(models: list[tuple[PositionCurve, str]]) -> pl.DataFrame:
    parts = []
    for model, _ in models:
        law = pl.lit(None, dtype=pl.Float64)
        rows = binned(model.profile)
        if isinstance(model.law, Fit):
            law = pl.Series(np.asarray(model.law.predict(position=rows["position"].to_numpy()).loss))
        parts.append(
            rows.select(
                pl.lit(model.profile.curve).alias("curve"),
                pl.lit(model.profile.params).alias("params"),
                pl.col("first", "last", "loss").name.map(
                    lambda c: {"first": "from_token", "last": "to_token"}.get(c, c)
                ),
                pl.col("low").alias("lowest_seed"),
                pl.col("high").alias("highest_seed"),
                law.alias("law_loss"),
            )
        )
    return pl.concat(parts)
