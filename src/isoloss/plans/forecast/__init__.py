"""Forecasts: predictions that hold outside the runs. No law to choose."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoloss.plans.forecast.forecasting import (
        Forecast,
        Forecaster,
        ForecastPoint,
        LawForecast,
        forecast,
        forecaster,
    )
    from isoloss.plans.forecast.table import (
        doubts_with_forecast,
        forecast_from_fit,
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
    "doubts_with_forecast",
    "forecast",
    "forecast_from_fit",
    "forecast_table",
    "forecaster",
    "forecaster_at",
    "forecaster_of",
    "no_forecast",
    "predicted",
]


def __getattr__(name: str) -> Any:
    """On demand: a fit asks this package for the best form of its runs alone, and for no forecast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isoloss.plans.forecast import forecasting, table

    return getattr(table, name) if hasattr(table, name) else getattr(forecasting, name)
