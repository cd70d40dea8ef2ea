"""Forecasts: predictions that hold outside the runs. No law to choose."""

from isoloss.plans.forecast.forecast import Forecast, LawForecast, forecast
from isoloss.plans.forecast.table import forecast_beside, forecast_inputs, forecast_table

__all__ = ["Forecast", "LawForecast", "forecast", "forecast_beside", "forecast_inputs", "forecast_table"]
