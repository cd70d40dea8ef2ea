"""Loss against the token's index in the context: Transformers and LSTMs of like size, side by side."""

from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.compare import Difference, contrast
from isoloss.analysis.points import LEVEL, cooled_points, of_families, shared_tokens
from isoloss.analysis.positions import (
    BINS_IN_WORDS,
    CURVE_WORDS,
    PositionProfile,
    binned,
    context_law,
    law_words,
    profiles,
    stop_of,
)
from isoloss.errors import Refusal
from isoloss.figures.figure import Figure
from isoloss.figures.marks import chart_of
from isoloss.figures.style import FAMILY_COLOURS, linear_axis, log_axis, shades, spread, titled
from isoloss.laws import ContextStop, Fit, Noise, Plateau, pooled_noise
from isoloss.records import StudyData

WIDTH, HEIGHT = 520, 420
PAIRS = 3
LARGEST_RATIO = 2.0
"""Two models farther apart in N than this factor are no pair."""
EARLY = 8
"""Positions 1..EARLY are early; the last half of the context is late."""


@dataclass(frozen=True)
class Model:
    """One curve of the figure, with its law and where it stops improving (or why that is not known)."""

    profile: PositionProfile
    law: Fit | Refusal
    stop: ContextStop | Refusal


@dataclass(frozen=True)
class Pair:
    """A Transformer and the LSTM nearest to it in log N. Differences are Transformer minus LSTM, in nats.

    ``at`` holds them at single positions; ``widening`` is late minus early, below 0 where the Transformer
    gains more from context than the LSTM.
    """

    transformer: Model
    lstm: Model
    at: dict[int, Difference]
    early: Difference
    late: Difference
    widening: Difference

    @property
    def ratio(self) -> float:
        return self.lstm.profile.params / self.transformer.profile.params


@dataclass(frozen=True)
class ByPosition:
    tokens: int
    context: int
    pairs: tuple[Pair, ...]
    noise_refused: Refusal | None


def measure(study: StudyData) -> ByPosition:
    """Raises Refusal if a family is missing, no D is shared, or no two sizes are alike."""
    points = of_families(cooled_points(study.table()), "transformer", "lstm")
    tokens = shared_tokens(points)
    everyone = profiles(study, points.filter(pl.col("tokens") == tokens))
    context = int(everyone[0].position_T[-1])
    if any(len(p.position_T) != context for p in everyone):
        raise Refusal("the two families were evaluated at different contexts", mend="use one context length")
    pairs = tuple(pair_of(ours, theirs, everyone) for ours, theirs in matched(everyone))
    if not pairs:
        raise Refusal(
            f"no Transformer and LSTM are within a factor {LARGEST_RATIO:g} in N", mend="add sizes that match"
        )
    noise = noise_of(everyone, 1, context)
    return ByPosition(tokens, context, pairs, noise if isinstance(noise, Refusal) else None)


def matched(everyone: list[PositionProfile]) -> list[tuple[PositionProfile, PositionProfile]]:
    """Up to PAIRS pairs from smallest to largest, each Transformer with the LSTM nearest in log N."""
    lstms = [p for p in everyone if p.family == "lstm"]
    pairs = []
    for ours in (p for p in everyone if p.family == "transformer"):
        theirs = min(lstms, key=lambda p: (abs(np.log(p.params / ours.params)), p.curve))
        if max(theirs.params / ours.params, ours.params / theirs.params) <= LARGEST_RATIO:
            pairs.append((ours, theirs))
    places = np.unique(np.linspace(0, len(pairs) - 1, PAIRS).round().astype(int)) if pairs else []
    return [pairs[place] for place in places]


def noise_of(everyone: list[PositionProfile], first: int, last: int) -> Noise | Refusal:
    try:
        return pooled_noise([profile.mean_S(first, last) for profile in everyone])
    except Refusal as reason:
        return reason


def pair_of(ours: PositionProfile, theirs: PositionProfile, everyone: list[PositionProfile]) -> Pair:
    context = int(ours.position_T[-1])
    half = context // 2 + 1

    def gap(first: int, last: int) -> Difference:
        return minus(ours.mean_S(first, last), theirs.mean_S(first, last), noise_of(everyone, first, last))

    def gain_S(profile: PositionProfile) -> np.ndarray:
        return profile.mean_S(half, context) - profile.mean_S(1, min(EARLY, context))

    try:
        gain_noise = pooled_noise([gain_S(profile) for profile in everyone])
    except Refusal as reason:
        gain_noise = reason
    return Pair(
        transformer=Model(ours, context_law(ours), stop_of(ours)),
        lstm=Model(theirs, context_law(theirs), stop_of(theirs)),
        at={position: gap(position, position) for position in fixed_positions(context)},
        early=gap(1, min(EARLY, context)),
        late=gap(half, context),
        widening=minus(gain_S(ours), gain_S(theirs), gain_noise),
    )


def minus(ours_S: np.ndarray, theirs_S: np.ndarray, noise: Noise | Refusal) -> Difference:
    return contrast(
        [(1.0, float(ours_S.mean()), len(ours_S)), (-1.0, float(theirs_S.mean()), len(theirs_S))], noise
    )


def fixed_positions(context: int) -> list[int]:
    """1, 2, 4, 8, 16, 64, 256, ... and the last."""
    wanted = [1, 2, 4, 8, 16] + [4**k for k in range(3, 12)]
    return sorted({t for t in wanted if t <= context} | {context})


def stop_words(stop: ContextStop | Refusal) -> str:
    """Where one model stops improving, as a clause."""
    if isinstance(stop, Refusal):
        return f"is not judged ({stop.what})"
    if stop.outcome is Plateau.STOPS:
        return f"stops improving at token {stop.index}"
    if stop.outcome is Plateau.IMPROVING:
        return f"still improves at tokens {stop.judged[0]} to {stop.judged[1]}, the last that can be judged"
    return "neither clearly stops nor clearly goes on improving: the noise is too large to tell"


def verdict(data: ByPosition) -> str:
    """How the largest pair's gap changes along the context, in one clause."""
    pair = data.pairs[-1]
    names = f"Transformer ({text.count(pair.transformer.profile.params)}) minus {pair.lstm.profile.curve}"
    if data.noise_refused:
        return f"no verdict on {names} by position: {data.noise_refused.what}"
    early, late = text.signed(pair.early.value), text.signed(pair.late.value)
    change = {
        -1: "the Transformer gains more from context",
        1: "the LSTM gains more from context",
        0: "no difference in what context gives is shown",
    }[pair.widening.sign]
    return (
        f"{change}: {names} is {early} nats at tokens 1–{EARLY} and {late} "
        f"at tokens {data.context // 2 + 1}–{data.context}"
    )


def figure(data: ByPosition) -> Figure:
    models = [(m, c) for family in ("transformer", "lstm") for m, c in coloured(data, family)]
    title = verdict(data)
    title = text.capital(title)
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


def name_of(model: Model) -> str:
    return f"{model.profile.curve} {text.count(model.profile.params)}"


def coloured(data: ByPosition, family: str) -> list[tuple[Model, str]]:
    models = {}
    for pair in data.pairs:
        model = pair.transformer if family == "transformer" else pair.lstm
        models.setdefault(name_of(model), model)
    return list(zip(models.values(), shades(FAMILY_COLOURS[family], len(models)), strict=True))


def chart(models: list[tuple[Model, str]], context: int) -> alt.LayerChart:
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


def law_curve(model: Model, colour: str, context: int) -> pl.DataFrame:
    position = np.geomspace(1, context, 60)
    loss = np.asarray(model.law.predict(position=position).loss)
    return pl.DataFrame({"position": position, "loss": loss, "model": name_of(model), "colour": colour})


def stop_marks(models: list[tuple[Model, str]], x: alt.X, y: alt.Y) -> alt.Chart:
    rows = []
    for model, colour in models:
        if isinstance(model.stop, ContextStop) and model.stop.index is not None:
            at = binned(model.profile).filter(pl.col("first") <= model.stop.index)[-1]
            rows.append({"position": model.stop.index, "loss": at["loss"][0], "colour": colour})
    marks = alt.Chart(alt.InlineData(values=rows)).mark_point(
        shape="diamond", size=150, filled=True, stroke="white", strokeWidth=1.5, opacity=1
    )
    return marks.encode(x, y, color=alt.Color("colour:N", scale=None))


def labels(models, rows: pl.DataFrame, context: int, x: alt.X, y: alt.Y) -> alt.Chart:
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


def table(models: list[tuple[Model, str]]) -> pl.DataFrame:
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


def gaps_table(data: ByPosition) -> pl.DataFrame:
    """Transformer minus LSTM at fixed positions, with intervals."""
    rows = [
        (
            pair.transformer.profile.params,
            pair.lstm.profile.curve,
            pair.lstm.profile.params,
            position,
            d.value,
        )
        + (d.interval or (None, None))
        for pair in data.pairs
        for position, d in pair.at.items()
    ]
    names = ("transformer_params", "lstm", "lstm_params", "position", "transformer_minus_lstm", "low", "high")
    return pl.DataFrame(rows, schema=list(names), orient="row")


__all__ = ["LEVEL", "ByPosition", "figure", "gaps_table", "measure", "verdict"]
