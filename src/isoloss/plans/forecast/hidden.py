"""The forecast of hidden runs, scored."""

from dataclasses import dataclass

import numpy as np

from isoloss.errors import Refusal, attempt
from isoloss.laws import Form
from isoloss.plans.forecast.forecasting import forecast
from isoloss.plans.forecast.forms import forecast_inputs
from isoloss.plans.holdout import Holdout, RunData
from isoloss.plans.scores import IntervalScore, Score, interval_score, score_of


@dataclass(frozen=True)
class ForecastScore:
    """How the forecast of the same runs did, which chooses no law; ``ends``: low and high."""

    score: Score
    intervals: IntervalScore
    ends: tuple[tuple[float, ...], ...]


def forecast_score(
    law: Form, data: RunData, hidden: Holdout, points_n: np.ndarray
) -> ForecastScore | Refusal | None:
    """Of the forecast of the hidden rows from the visible ones; None where there is none for such inputs."""
    weighted = data.weights is not None and len(np.unique(data.weights)) > 1
    if weighted or not forecast_inputs(law):
        return None
    see_n, hide_n, level = ~hidden.mask_n, hidden.mask_n, float(data.options["level"])
    seen, new = ({name: data.x[name][rows_n] for name in law.inputs} for rows_n in (see_n, hide_n))
    cluster = None if data.cluster is None else np.asarray(data.cluster)[see_n]
    forecasts = attempt(forecast, seen, data.y_n[see_n], new, level=level, cluster=cluster)
    if isinstance(forecasts, Refusal):
        return forecasts
    observed_h, points_h = data.y_n[hide_n], points_n[hide_n]
    score = score_of("forecast", forecasts.loss, observed_h)
    intervals = interval_score(forecasts.interval.T, observed_h, points_h, level)
    return ForecastScore(score, intervals, tuple(map(tuple, forecasts.interval.T.tolist())))
