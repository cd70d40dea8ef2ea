"""Forecasts: predictions that hold outside the runs. No law to choose."""

from isoloss.plans.forecast.forecast import (
    Forecast,
    Forecaster,
    ForecastPoint,
    LawForecast,
    forecast,
    forecaster,
)
from isoloss.plans.forecast.table import (
    best_form,
    doubts_beside,
    forecast_beside,
    forecast_inputs,
    forecast_table,
    forecaster_of,
    predicted,
)

__all__ = [
    "Forecast",
    "ForecastPoint",
    "Forecaster",
    "LawForecast",
    "best_form",
    "doubts_beside",
    "forecast",
    "forecast_beside",
    "forecast_inputs",
    "forecast_table",
    "forecaster",
    "forecaster_of",
    "predicted",
]
