"""Who predicts better: errors of the same hidden runs, compared in pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from isoloss.plans.scores import by_point
from isoloss.stats import mean

FEWEST = 3
"""Hidden runs that can tell predictors apart."""


class Standing(Enum):
    AHEAD = "the law beats the best baseline"
    BEHIND = "the best baseline beats the law"
    NOT_TOLD_APART = "the law and the best baseline are not told apart"
    TOO_FEW = "fewer than three hidden points: the errors are shown, not judged"


@dataclass(frozen=True)
class ScoreGap:
    """``value``: mean absolute relative error of a predictor minus the best one's.

    ``times``: how many times the best one's errors its errors are, by ``times_interval``; ``told_apart`` if
    that lies above 1.
    """

    value: float
    times: tuple[float, float] | None
    told_apart: bool


def times_interval(other_g: np.ndarray, ours_g: np.ndarray, level: float) -> tuple[float, float] | None:
    """How many times ours the other's errors are, paired by group: a t interval of the mean log ratio.

    None below three groups, which count as independent. Logarithms, since one large miss makes an interval
    of the errors themselves wide. Errors below the lower quartile of both count as that quartile: a group
    that one of them hit by chance decides nothing.
    """
    if len(ours_g) < FEWEST:
        return None
    quartile = np.sort(np.concatenate([other_g, ours_g]))[len(ours_g) // 2]
    floor = max(quartile, np.finfo(float).eps)
    log_g = np.log(np.maximum(other_g, floor) / np.maximum(ours_g, floor))
    known = mean(log_g, level=level)
    low, high = np.exp(np.clip([known.low, known.high], -700, 700)).tolist()
    return low, high


def stand(
    other_h: np.ndarray, ours_h: np.ndarray, points_h: np.ndarray, level: float, among: int = 1
) -> tuple[tuple[float, float] | None, Standing]:
    """How many times ours the other's errors are, and which is ahead: in a typical run and on average.

    The other is the best of ``among`` after the fact, so it wins at a level kept over all (Bonferroni).
    """
    other_p, ours_p = by_point(other_h, points_h), by_point(ours_h, points_h)
    times = times_interval(other_p, ours_p, level)
    wider = times_interval(other_p, ours_p, 1 - (1 - level) / among)
    if times is None or wider is None:
        return None, Standing.TOO_FEW
    more = float(np.mean(other_p - ours_p))
    if times[0] > 1 and more > 0:
        return times, Standing.AHEAD
    return times, Standing.BEHIND if wider[1] < 1 and more < 0 else Standing.NOT_TOLD_APART


def score_gaps(errors: Mapping[str, Mapping[int, float]], level: float) -> dict[str, ScoreGap]:
    """Each form against the one of least mean error, paired by group; the best itself has no gap.

    Which form is best is itself chosen by the errors, so the level is kept over all pairs of forms
    (Bonferroni): equal forms are told apart in at most 1 - ``level`` of all comparisons.
    """
    if not errors:
        return {}
    best = min(errors, key=lambda name: float(np.mean(list(errors[name].values()))))
    each = 1 - (1 - level) / max(len(errors) * (len(errors) - 1) / 2, 1)
    groups = sorted(errors[best])
    gaps = {}
    for name in (name for name in errors if name != best):
        other_g, best_g = (np.array([errors[one][group] for group in groups]) for one in (name, best))
        times = times_interval(other_g, best_g, each)
        told_apart = times is not None and times[0] > 1
        gaps[name] = ScoreGap(float((other_g - best_g).mean()), times, told_apart)
    return gaps
