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
    doubts_with_forecast,
    forecast_from_fit,
    forecast_inputs,
    forecast_table,
    forecaster_at,
    forecaster_of,
    no_forecast,
    predicted,
)

__all__ = [
    "Forecast",
    "ForecastPoint",
    "Forecaster",
    "LawForecast",
    "best_form",
    "doubts_with_forecast",
    "forecast",
    "forecast_from_fit",
    "forecast_inputs",
    "forecast_table",
    "forecaster",
    "forecaster_at",
    "forecaster_of",
    "no_forecast",
    "predicted",
]
