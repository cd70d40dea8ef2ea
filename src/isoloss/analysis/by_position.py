"""Loss against the token's index in the context: Transformers and LSTMs of like size, pair by pair."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.points import cooled_points, of_families, shared_tokens
from isoloss.analysis.positions import PositionProfile, context_law, profiles, stop_of
from isoloss.errors import Refusal
from isoloss.laws import ContextStop, Fit, Plateau
from isoloss.records import StudyData
from isoloss.stats import Interval, Noise, difference, seed_noise

PAIRS = 3
LARGEST_RATIO = 2.0
"""Two models farther apart in N than this factor are no pair."""
EARLY = 8
"""Positions 1..EARLY are early; the last half of the context is late."""


@dataclass(frozen=True)
class PositionCurve:
    """One size of one family, with its law and where it stops improving (or why that is not known)."""

    profile: PositionProfile
    law: Fit | Refusal
    stop: ContextStop | Refusal


@dataclass(frozen=True)
class Pair:
    """A Transformer and the LSTM nearest to it in log N. Differences are Transformer minus LSTM, in nats.

    ``gaps`` holds them at single positions; ``widening`` is late minus early, below 0 where the Transformer
    gains more from context than the LSTM.
    """

    transformer: PositionCurve
    lstm: PositionCurve
    gaps: dict[int, Interval]
    early: Interval
    late: Interval
    widening: Interval

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
    pairs = tuple(pair_of(ours, theirs, everyone) for ours, theirs in nearest_pairs(everyone))
    if not pairs:
        raise Refusal(
            f"no Transformer and LSTM are within a factor {LARGEST_RATIO:g} in N", mend="add sizes that match"
        )
    noise = noise_of(everyone, 1, context)
    return ByPosition(tokens, context, pairs, noise if isinstance(noise, Refusal) else None)


def nearest_pairs(everyone: list[PositionProfile]) -> list[tuple[PositionProfile, PositionProfile]]:
    """Up to PAIRS pairs from smallest to largest, each Transformer with the LSTM nearest in log N."""
    lstms = [p for p in everyone if p.family == "lstm"]
    pairs: list[tuple[PositionProfile, PositionProfile]] = []
    for ours in (p for p in everyone if p.family == "transformer"):
        theirs = min(lstms, key=lambda p: (abs(np.log(p.params / ours.params)), p.curve))
        if max(theirs.params / ours.params, ours.params / theirs.params) <= LARGEST_RATIO:
            pairs.append((ours, theirs))
    chosen = np.unique(np.linspace(0, len(pairs) - 1, PAIRS).round().astype(int))
    return [pairs[index] for index in chosen] if pairs else []


def noise_of(everyone: list[PositionProfile], first: int, last: int) -> Noise | Refusal:
    return seed_noise(profile.mean_S(first, last) for profile in everyone)


def pair_of(ours: PositionProfile, theirs: PositionProfile, everyone: list[PositionProfile]) -> Pair:
    context = int(ours.position_T[-1])
    half = context // 2 + 1

    def gap(first: int, last: int) -> Interval:
        noise = noise_of(everyone, first, last)
        return difference(ours.mean_S(first, last), theirs.mean_S(first, last), noise)

    def gain_S(profile: PositionProfile) -> np.ndarray:
        return profile.mean_S(half, context) - profile.mean_S(1, min(EARLY, context))

    return Pair(
        transformer=PositionCurve(ours, context_law(ours), stop_of(ours)),
        lstm=PositionCurve(theirs, context_law(theirs), stop_of(theirs)),
        gaps={position: gap(position, position) for position in fixed_positions(context)},
        early=gap(1, min(EARLY, context)),
        late=gap(half, context),
        widening=difference(gain_S(ours), gain_S(theirs), seed_noise(map(gain_S, everyone))),
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
    return (
        f"{gain_words(pair.widening, 'context')}: {names} is {early} nats at tokens 1–{EARLY} and {late} "
        f"at tokens {data.context // 2 + 1}–{data.context}"
    )


def gain_words(widening: Interval, context: str) -> str:
    return {
        -1: f"the Transformer gains more from {context}",
        1: f"the LSTM gains more from {context}",
        0: f"no difference in what {context} gives is shown",
    }[widening.sign or 0]


def name_of(curve: PositionCurve) -> str:
    return f"{curve.profile.curve} {text.count(curve.profile.params)}"


def gaps_table(data: ByPosition) -> pl.DataFrame:
    """Transformer minus LSTM at fixed positions, with intervals."""
    rows = [
        (ours.params, theirs.curve, theirs.params, position, gap.value, *gap.ends)
        for pair in data.pairs
        for ours, theirs in [(pair.transformer.profile, pair.lstm.profile)]
        for position, gap in pair.gaps.items()
    ]
    names = ("transformer_params", "lstm", "lstm_params", "position", "transformer_minus_lstm", "low", "high")
    return pl.DataFrame(rows, schema=list(names), orient="row")
