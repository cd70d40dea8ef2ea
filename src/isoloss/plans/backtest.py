"""Hide the largest runs, predict them from the rest, and score the prediction beside simple baselines."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from isoloss.errors import Refusal
from isoloss.laws import Fit, Form, check_level, fit, registered
from isoloss.plans.baselines import baselines
from isoloss.plans.holdout import Holdout, columns_of, hide, kept, points_of, rung_count
from isoloss.plans.scores import Coverage, Score, by_point, coverage_of, paired_interval, score_of, seed_noise

_UNLIKELY = 0.05  # of so few hits if the interval held as often as it says
_FEW = 3


class Standing(Enum):
    AHEAD = "the law beats the best baseline"
    BEHIND = "the best baseline beats the law"
    NOT_TOLD_APART = "the law and the best baseline are not told apart"
    TOO_FEW = "fewer than three hidden points: the errors are shown, not judged"


@dataclass(frozen=True)
class HiddenRun:
    """One hidden run. ``relative_error`` is predicted / observed - 1; ``extrapolation`` as in Prediction."""

    inputs: dict[str, float]
    scale: float
    observed: float
    predicted: float
    relative_error: float
    interval: tuple[float, float] | None
    inside: bool | None
    extrapolation: dict[str, float]


@dataclass(frozen=True)
class Backtest:
    """A law fitted to the visible runs and judged on the hidden ones.

    ``rule`` says what was hidden. ``scale`` names the column that the figure puts on its axis: the FLOPs 6 N
    D where the inputs give them (a loop counted at each pass), else the column that was held out.
    ``rmse_in_noise`` is the law's RMSE over the seed noise, where seeds repeat. ``gain`` is the interval of
    the best baseline's mean absolute relative error minus the law's, by a paired t over points.
    """

    law: str
    rule: str
    level: float
    scale: str
    visible_scale: tuple[float, ...]
    visible_loss: tuple[float, ...]
    runs: tuple[HiddenRun, ...]
    score: Score
    baselines: tuple[Score, ...]
    coverage: Coverage | None
    seed_noise: float | None
    rmse_in_noise: float | None
    gain: tuple[float, float] | None
    standing: Standing
    fit: Fit
    warnings: tuple[str, ...]

    @property
    def best_baseline(self) -> Score:
        return min(self.baselines, key=lambda score: score.mean_abs_error)

    def verdict(self) -> str:
        """Whether the law beats the best baseline and whether its interval held, in one sentence."""
        best, runs = self.best_baseline, len(self.runs)
        errors = (
            f"{self.law} misses {runs} hidden run{'s' * (runs > 1)} by {_percent(self.score.mean_abs_error)}"
            f" on average, the best of {len(self.baselines)} baselines ({best.name}) by "
            f"{_percent(best.mean_abs_error)}: {self.standing.value}"
        )
        if self.coverage is None:
            return f"{errors}; the fit supports no interval."
        share, (low, _) = self.coverage.share, self.coverage.interval
        held = f"the {self.level:.0%} interval held {share:.0%} of {self.coverage.points} hidden points"
        hits = round(share * self.coverage.points)
        if bdtr(hits, self.coverage.points, self.level) < _UNLIKELY:
            return f"{errors}; {held}: it is too narrow."
        if low > self.level:
            return f"{errors}; {held}: it is wider than it says."
        if self.coverage.points < _FEW:
            return f"{errors}; {held}, too few to judge it."
        return f"{errors}; {held}, which agrees with its level."

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON, with the verdict."""
        out = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("score", "coverage"):
            out[name] = None if out[name] is None else dataclasses.asdict(out[name])
        for name in ("runs", "baselines"):
            out[name] = [dataclasses.asdict(one) for one in out[name]]
        return out | {
            "standing": self.standing.name,
            "verdict": self.verdict(),
            "fit": self.fit.to_json(),
        }


def backtest(
    law: str | Form,
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    *,
    holdout: str | ArrayLike = "largest-params",
    share: float = 0.15,
    rungs: int | None = None,
    flops: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.9,
    **options: Any,
) -> Backtest:
    """Fit ``law`` with the largest runs hidden, predict these, and score it beside simple baselines.

    ``holdout`` is "largest-NAME" for an input of the law or "largest-flops", or a mask that is true for the
    rows to hide. Values within 5% of the top of a rung belong to it; the fewest top rungs are hidden whose
    removal takes at least ``share`` of the column's range of logarithms, or as many as ``rungs`` says.
    ``flops`` replaces the count 6 N D (a loop counted at each pass). Other ``options`` go to ``fit``.

    Raises InputError for columns that cannot be used, Refusal when the visible runs do not determine the law
    or nothing is left to hide.
    """
    law = registered(law)
    level = check_level(level)
    x_In, y_n = columns_of(law, inputs, loss)
    hidden = hide(law.inputs, x_In, holdout, share=share, rungs=rungs, flops=flops)
    return _judged(law, x_In, y_n, hidden, weights, cluster, level, options)


def expanding(
    law: str | Form,
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    *,
    holdout: str = "largest-params",
    most: int | None = None,
    flops: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.9,
    **options: Any,
) -> tuple[Backtest | Refusal, ...]:
    """Backtests with 1, 2, ... top rungs hidden, each predicting all that it hides; refusals stand in place.

    At most ``most`` of them; by default until one rung is left visible. ``holdout`` names a column.
    Raises InputError as ``backtest`` does. A column with a single rung gives no backtest at all.
    """
    law = registered(law)
    level = check_level(level)
    x_In, y_n = columns_of(law, inputs, loss)
    count = rung_count(law.inputs, x_In, holdout, flops=flops)
    steps: list[Backtest | Refusal] = []
    for rungs in range(1, min(count, 1 + (most or count))):
        hidden = hide(law.inputs, x_In, holdout, rungs=rungs, flops=flops)
        try:
            steps.append(_judged(law, x_In, y_n, hidden, weights, cluster, level, options))
        except Refusal as refusal:
            steps.append(refusal)
    return tuple(steps)


def _judged(
    law: Form,
    x_In: np.ndarray,
    y_n: np.ndarray,
    hidden: Holdout,
    weights: ArrayLike | None,
    cluster: ArrayLike | None,
    level: float,
    options: Mapping[str, Any],
) -> Backtest:
    points_n = points_of(x_In, cluster)
    see_n, hide_n = ~hidden.mask_n, hidden.mask_n
    try:
        fitted = fit(
            law,
            dict(zip(law.inputs, x_In[:, see_n], strict=True)),
            y_n[see_n],
            weights=kept("weights", weights, see_n),
            cluster=kept("cluster", cluster, see_n),
            level=level,
            **options,
        )
    except Refusal as refusal:
        raise Refusal(refusal.what, where=f"with {hidden.rule}", mend=refusal.mend) from None
    there = dict(zip(law.inputs, x_In[:, hide_n], strict=True))
    predicted = fitted.predict(level=level, **there)
    observed_h, points_h = y_n[hide_n], points_n[hide_n]
    scores = [
        score_of(name, guess, observed_h) for name, guess in baselines(law.inputs, x_In, y_n, hidden).items()
    ]
    score = score_of(law.name, predicted.loss, observed_h)
    runs = _runs(there, hidden.scale_n[hide_n], observed_h, predicted)
    best = min(scores, key=lambda one: one.mean_abs_error)
    gain, standing = _compared(score, best, observed_h, points_h, level)
    noise = seed_noise(y_n, points_n)
    return Backtest(
        law=law.name,
        rule=hidden.rule,
        level=level,
        scale=hidden.scale,
        visible_scale=tuple(hidden.scale_n[see_n].tolist()),
        visible_loss=tuple(y_n[see_n].tolist()),
        runs=runs,
        score=score,
        baselines=tuple(scores),
        coverage=None
        if predicted.interval is None
        else coverage_of(np.array([run.inside for run in runs]), points_h, level),
        seed_noise=noise,
        rmse_in_noise=None if not noise else score.rmse / noise,
        gain=gain,
        standing=standing,
        fit=fitted,
        warnings=predicted.warnings,
    )


def _runs(
    there: Mapping[str, np.ndarray], scale_h: np.ndarray, observed_h: np.ndarray, predicted: Any
) -> tuple[HiddenRun, ...]:
    runs = []
    for h, observed in enumerate(observed_h):
        interval = None
        if predicted.interval is not None:
            interval = (float(predicted.interval[0][h]), float(predicted.interval[1][h]))
        guess = float(predicted.loss[h])
        runs.append(
            HiddenRun(
                inputs={name: float(x[h]) for name, x in there.items()},
                scale=float(scale_h[h]),
                observed=float(observed),
                predicted=guess,
                relative_error=guess / float(observed) - 1,
                interval=interval,
                inside=None if interval is None else bool(interval[0] <= observed <= interval[1]),
                extrapolation={name: float(x[h]) for name, x in predicted.extrapolation.items()},
            )
        )
    return tuple(runs)


def _compared(
    score: Score, best: Score, observed_h: np.ndarray, points_h: np.ndarray, level: float
) -> tuple[tuple[float, float] | None, Standing]:
    """The baseline is the best after the fact: the comparison errs on its side."""
    errors = [np.abs(np.array(one.predicted) / observed_h - 1) for one in (best, score)]
    interval = paired_interval(by_point(errors[0] - errors[1], points_h), level)
    if interval is None:
        return None, Standing.TOO_FEW
    if interval[0] > 0:
        return interval, Standing.AHEAD
    return interval, Standing.BEHIND if interval[1] < 0 else Standing.NOT_TOLD_APART


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
