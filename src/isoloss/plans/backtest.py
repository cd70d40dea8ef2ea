"""Hide the largest runs, predict them from the rest, and score the prediction beside simple baselines."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss import text
from isoloss.distributions import binomial_cdf
from isoloss.errors import Refusal
from isoloss.laws import Array, Fit, Form, Prediction, registered
from isoloss.plain import json_values
from isoloss.plans.baselines import baselines
from isoloss.plans.holdout import Holdout, RunData, columns_of, hide, points_of
from isoloss.plans.scores import (
    Coverage,
    IntervalScore,
    Score,
    interval_score,
    score_of,
    seed_sd,
    winkler_of,
)
from isoloss.plans.standing import Standing, stand
from isoloss.stats import check_level

if TYPE_CHECKING:
    from isoloss.plans.forecast.hidden import ForecastScore

_UNLIKELY = 0.05  # of so few hits if the interval held as often as it says
_FEW = 3

_FORECAST_WORDS = {
    Standing.AHEAD: "predicts better than",
    Standing.BEHIND: "predicts worse than",
    Standing.NOT_TOLD_APART: "is not told apart from",
}

_TOLD = (Standing.AHEAD, Standing.BEHIND)


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
    ``rmse_in_noise`` is the law's RMSE over the seed noise, where seeds repeat. ``times`` is the interval
    of how many times the law's errors the best baseline's are, paired by point; ``standing``
    asks that the mean error agrees, and of the best baseline a level kept over all baselines.
    ``forecast`` is None for laws whose inputs it does not take, for weighted runs, and where it is refused;
    ``forecast_standing`` is against the law (by Winkler's score, or by errors where the law has no interval
    or both intervals held every run) and against the best baseline (by errors), each paired as above.
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
    intervals: IntervalScore | None
    forecast: "ForecastScore | None"
    forecast_standing: tuple[Standing, Standing] | None
    seed_noise: float | None
    rmse_in_noise: float | None
    times: tuple[float, float] | None
    standing: Standing
    fit: Fit
    warnings: tuple[str, ...]

    @property
    def best_baseline(self) -> Score:
        return _best(self.baselines)

    def headline(self) -> str:
        """Which methods predict best, by how each stands against the others, and an error of theirs."""
        baseline = self.best_baseline
        scores = {self.law: self.score, f"the baseline {baseline.words!r}": baseline}
        law, best = scores
        pairs = {(law, best): self.standing}
        if self.forecast is not None and self.forecast_standing is not None:
            scores["the forecast"] = self.forecast.score
            pairs |= zip((("the forecast", law), ("the forecast", best)), self.forecast_standing, strict=True)
        beaten = {pair[standing is Standing.AHEAD] for pair, standing in pairs.items() if standing in _TOLD}
        unbeaten = [name for name in scores if name not in beaten]
        unbeaten.sort(key=lambda name: scores[name].mean_abs_error)
        few = self.standing is Standing.TOO_FEW
        first = law if few or not unbeaten else unbeaten[0]
        error = f"misses hidden runs by {text.percent(scores[first].mean_abs_error)} on average"
        if few:
            return f"Too few hidden runs to name the best method; {first} {error}."
        if not unbeaten:  # errors and intervals may rank in a circle
            return f"No method is the best by errors and by intervals; {first} {error}."
        if len(unbeaten) > 1:
            return f"Best: {text.listed(unbeaten)}, not told apart; {first} {error}."
        return f"Best: {first}, which {error}."

    def verdict(self) -> str:
        """Whether the law beats the best baseline, whether its interval held, and how the forecast did."""
        return " ".join(self.sentences())

    def sentences(self) -> tuple[str, ...]:
        """The verdict, a sentence each."""
        best, runs = self.best_baseline, text.plural(len(self.runs), "hidden run")
        return (
            f"{self.law} misses {runs} by {text.percent(self.score.mean_abs_error)} on average.",
            f"The best of {len(self.baselines)} baselines ({best.words}) misses by "
            f"{text.percent(best.mean_abs_error)}: {self.standing.value}.",
            self._interval_words(),
            *self._forecast_words(),
        )

    def _interval_words(self) -> str:
        if self.coverage is None:
            return "The fit supports no interval."
        points, (low, _) = self.coverage.points, self.coverage.interval
        hits = round(self.coverage.share * points)
        if binomial_cdf(hits, points, self.level) < _UNLIKELY:
            judged = ": it is too narrow"
        elif low > self.level:
            judged = ": it is wider than it says"
        else:
            judged = ", too few to judge it" if points < _FEW else ", which agrees with its level"
        return f"The {text.level(self.level)} interval held {hits} of {points} hidden points{judged}."

    def _forecast_words(self) -> Iterator[str]:
        if self.forecast is None or self.forecast_standing is None:
            return
        words = f"The forecast misses by {text.percent(self.forecast.score.mean_abs_error)}"
        if Standing.TOO_FEW in self.forecast_standing:
            yield f"{words}."
            return
        law, baseline = (_FORECAST_WORDS[standing] for standing in self.forecast_standing)
        yield f"{words}: it {law} the law and {'' if law == baseline else baseline + ' '}the best baseline."

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON, with the verdict."""
        against = self.forecast_standing and dict(
            zip(("law", "baseline"), (one.name for one in self.forecast_standing), strict=True)
        )
        written = {"standing": self.standing.name, "forecast_standing": against}
        written |= {"headline": self.headline(), "verdict": self.verdict(), "fit": self.fit.to_json()}
        return json_values(vars(self) | written)


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
    with_forecast: bool = True,
    **options: Any,
) -> Backtest:
    """Fit ``law`` with the largest runs hidden, predict these, and score it beside simple baselines.

    ``holdout`` is "largest-NAME" for an input of the law or "largest-flops", or a mask that is true for the
    rows to hide. Values within 5% of the top of a rung belong to it; the fewest top rungs are hidden whose
    removal takes at least ``share`` of the column's range of logarithms, or as many as ``rungs`` says.
    ``flops`` replaces the count 6 N D (a loop counted at each pass). ``with_forecast`` scores the forecast of
    the same runs too. Other ``options`` go to ``fit``; without an ``objective`` squared-log stands in where
    huber-log refuses.

    Raises InputError for columns that cannot be used, Refusal when the visible runs do not determine the law
    or nothing is left to hide.
    """
    law = registered(law)
    level = check_level(level)
    x_In, y_n = columns_of(law, inputs, loss)
    hidden = hide(law.inputs, x_In, holdout, share=share, rungs=rungs, flops=flops)
    x = dict(zip(law.inputs, x_In, strict=True))
    data = RunData(x, y_n, weights, cluster, options | {"level": level})
    return _judge(law, data, hidden, with_forecast)


def _judge(law: Form, data: RunData, hidden: Holdout, with_forecast: bool) -> Backtest:
    x_In, level = np.stack([data.x[name] for name in law.inputs]), float(data.options["level"])
    see_n, hide_n = ~hidden.mask_n, hidden.mask_n
    points_n = points_of(x_In, data.cluster)
    try:
        fitted = data.fit(law, see_n)
    except Refusal as refusal:
        other = ", or try another objective" if data.options.get("objective") else ""
        raise Refusal(refusal.what, where=f"with {hidden.rule}", mend=refusal.mend + other) from None
    hidden_x = {name: data.x[name][hide_n] for name in law.inputs}
    predicted = fitted.predict(level=level, **hidden_x)
    observed_h, points_h = data.y_n[hide_n], points_n[hide_n]
    guesses = baselines(law.inputs, x_In, data.y_n, hidden)
    scores = tuple(score_of(name, guess, observed_h) for name, guess in guesses.items())
    score = score_of(law.name, predicted.loss, observed_h)
    runs = _runs(hidden_x, hidden.scale_n[hide_n], observed_h, predicted)
    best = _best(scores)
    error_h = _errors(score, observed_h)
    times, standing = stand(_errors(best, observed_h), error_h, points_h, level, among=len(scores))
    noise = seed_sd(data.y_n, points_n)
    intervals = None
    if predicted.interval is not None:
        intervals = interval_score(np.array(predicted.interval), observed_h, points_h, level)
    forecast, refused = None, ()
    if with_forecast:
        from isoloss.plans.forecast import no_forecast  # `isoloss fit` asks for none
        from isoloss.plans.forecast.hidden import forecast_score

        forecast = forecast_score(law, data, hidden, points_n)
        refused = (no_forecast(forecast),) if isinstance(forecast, Refusal) else ()
    return Backtest(
        law=law.name,
        rule=hidden.rule,
        level=level,
        scale=hidden.scale,
        visible_scale=tuple(hidden.scale_n[see_n].tolist()),
        visible_loss=tuple(data.y_n[see_n].tolist()),
        runs=runs,
        score=score,
        baselines=scores,
        coverage=None if intervals is None else intervals.coverage,
        intervals=intervals,
        forecast=None if isinstance(forecast, Refusal) else forecast,
        forecast_standing=_forecast_standing(forecast, predicted, score, scores, observed_h, points_h),
        seed_noise=noise,
        rmse_in_noise=None if not noise else score.rmse / noise,
        times=times,
        standing=standing,
        fit=fitted,
        warnings=(*fitted.doubts, *refused),  # how far is too far, the hidden runs say
    )


def _runs(
    x_h: Mapping[str, Array], scale_h: Array, observed_h: Array, predicted: Prediction
) -> tuple[HiddenRun, ...]:
    """``predicted`` is of arrays: one loss a hidden run."""
    ends_2h = None if predicted.interval is None else np.array(predicted.interval)
    runs: list[HiddenRun] = []
    for h, (observed, loss) in enumerate(zip(observed_h.tolist(), np.asarray(predicted.loss), strict=True)):
        low, high = (-np.inf, np.inf) if ends_2h is None else ends_2h[:, h].tolist()
        runs.append(
            HiddenRun(
                inputs={name: float(values_h[h]) for name, values_h in x_h.items()},
                scale=float(scale_h[h]),
                observed=observed,
                predicted=float(loss),
                relative_error=float(loss) / observed - 1,
                interval=None if ends_2h is None else (low, high),
                inside=None if ends_2h is None else low <= observed <= high,
                extrapolation={name: float(np.asarray(f)[h]) for name, f in predicted.extrapolation.items()},
            )
        )
    return tuple(runs)


def _forecast_standing(
    forecast: "ForecastScore | Refusal | None",
    predicted: Prediction,
    score: Score,
    baselines: tuple[Score, ...],
    observed_h: np.ndarray,
    points_h: np.ndarray,
) -> tuple[Standing, Standing] | None:
    if forecast is None or isinstance(forecast, Refusal):
        return None
    level, error_h = predicted.level, _errors(forecast.score, observed_h)
    law_h, ours_h = _errors(score, observed_h), error_h
    if predicted.interval is not None:
        ends = (np.array(predicted.interval), np.array(forecast.ends))
        held = [np.all((low_h <= observed_h) & (observed_h <= high_h)) for low_h, high_h in ends]
        if not all(held):  # where both hold all, widths alone would decide
            law_h, ours_h = (winkler_of(ends_2h, observed_h, level) for ends_2h in ends)
    against_law = stand(law_h, ours_h, points_h, level)[1]
    best_h = _errors(_best(baselines), observed_h)
    return against_law, stand(best_h, error_h, points_h, level, among=len(baselines))[1]


def _best(scores: tuple[Score, ...]) -> Score:
    return min(scores, key=lambda score: score.mean_abs_error)


def _errors(score: Score, observed_h: np.ndarray) -> np.ndarray:
    return np.abs(np.array(score.predicted) / observed_h - 1)
