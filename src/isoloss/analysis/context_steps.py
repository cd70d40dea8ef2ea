"""When in training each distance is learned: loss by training step and octave of the token index."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss import text
from isoloss.analysis.sliding import block_mean, jackknife, octaves, sliding_profiles
from isoloss.errors import Refusal
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval

Floats = NDArray[np.float64]

LEAST_STEPS = 8
"""Fewer evaluations along the trunk show no order."""

RISEN = 0.1
"""What adds less than this share of its gain in the last doubling of steps has risen."""


@dataclass(frozen=True)
class ContextSteps:
    """The trunk of one size, mean of its seeds. ``rows``: step, loss, from_token, to_token.

    An octave's gain is the loss of the octave before it minus its own. ``later``: the logarithm (base 2) of
    how many times later than token 2 the last octave that gains, ``tokens``, has half of its gain at the end.
    ``settled``: a longer run would not turn the order, for what comes sooner does not rise faster at the end.
    """

    params: int
    seeds: int
    rows: pl.DataFrame
    tokens: tuple[int, int]
    later: Interval
    settled: bool


def steps_of(study: StudyData, points: pl.DataFrame) -> ContextSteps:
    """Of runs of one size. Raises Refusal where the trunk was measured too seldom, or nothing gains."""
    profiles = [profile for profile in sliding_profiles(study, points, cooled=False) if profile.step > 0]
    step_S = np.unique([profile.step for profile in profiles])
    if len(step_S) < LEAST_STEPS:
        raise Refusal(f"losses along training were taken at {len(step_S)} steps", mend="train for longer")
    ends = octaves(profiles[0].context)
    seeds = [[profile for profile in profiles if profile.step == step] for step in step_S]
    loss_SOB = np.array([[np.mean([p.mean_B(*o) for p in some], axis=0) for o in ends] for some in seeds])
    gain_SOB = loss_SOB[:, :-1] - loss_SOB[:, 1:]
    gains = [octave for octave in range(1, len(ends) - 1) if block_mean(gain_SOB[-1, octave]).sign == 1]
    if not gains:
        raise Refusal("no token from the third on is seen to gain", mend="train longer, on more targets")
    rows = [
        (int(step), float(loss), *octave)
        for step, loss_O in zip(step_S, loss_SOB.mean(axis=2), strict=True)
        for loss, octave in zip(loss_O, ends, strict=True)
    ]
    early_SB, late_SB = gain_SOB[:, 0], gain_SOB[:, gains[-1]]

    def log_ratio(early_S: Floats, late_S: Floats) -> float:
        return half_step(step_S, late_S) - half_step(step_S, early_S)

    later = jackknife(log_ratio, early_SB, late_SB)
    order = (early_SB, late_SB) if later.value > 0 else (late_SB, early_SB)
    first, second = (rise(step_S, gain_SB.mean(axis=1)) for gain_SB in order)
    return ContextSteps(
        params=profiles[0].params,
        seeds=max(map(len, seeds)),
        rows=pl.DataFrame(rows, schema=["step", "loss", "from_token", "to_token"], orient="row"),
        tokens=ends[gains[-1] + 1],
        later=later,
        settled=first <= max(second, RISEN),
    )


def half_step(step_S: Floats, gain_S: Floats) -> float:
    """log2 of the step at which the gain first has half of its last value, interpolated in log steps."""
    at = max(1, int(np.argmax(gain_S >= gain_S[-1] / 2)))
    gains, steps = gain_S[at - 1 : at + 1], np.log2(step_S[at - 1 : at + 1])
    return float(np.interp(gain_S[-1] / 2, gains, steps))


def rise(step_S: Floats, gain_S: Floats) -> float:
    """The share of the last gain that came with the last doubling of steps."""
    return float(1 - np.interp(step_S[-1] / 2, step_S, gain_S) / gain_S[-1])


def steps_verdict(data: ContextSteps) -> str:
    """Are long distances learned after short ones?"""
    late = f"tokens {data.tokens[0]}–{data.tokens[1]}"
    sign = data.later.sign
    if not sign:
        return f"context helps {late} and token 2 at times that these seeds do not tell apart"
    if not data.settled:
        return (
            f"no order is stated: at the end the gains of token 2 and of {late} still rise, the first faster"
        )
    times = sorted(2 ** (sign * end) for end in (data.later.low, data.later.value, data.later.high))
    known = text.interval((times[0], times[2]), "{:.2g}".format)
    how = f"{times[1]:.2g} times {'later' if sign > 0 else 'sooner'}"
    return (
        f"half of what context gives {late} comes {how} in training than half of what it gives token 2 "
        f"({text.level(LEVEL)} interval {known})"
    )
