"""What notebooks show: the terminal's words, as text and as HTML, hostile ones escaped."""

import re
from dataclasses import replace

import fitted
import polars as pl
import pytest
import story

import isoloss
from isoloss import text
from isoloss.plans.forecast import Forecast

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def law():
    return fitted.fitted("chinchilla")


def test_a_fit_shows_its_law_its_table_and_its_doubts(law):
    shown = replace(law, warnings=(HOSTILE,))._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert law.formula() in shown["text/plain"]
    assert "<table>" in shown["text/html"]
    assert f"warning: {HOSTILE}" in shown["text/plain"]
    assert HOSTILE not in shown["text/html"]
    assert "&lt;script&gt;" in shown["text/html"]


def test_a_plan_shows_its_sizes(law):
    plan = law.plan(flops=1e21)
    assert text.count(plan.params) in plan._repr_mimebundle_()["text/html"]


def test_a_forecast_shows_its_interval(law):
    data = law.data
    forecast = isoloss.forecast(pl.DataFrame({**data.inputs, "loss": data.loss}), params=1e10, tokens=1e11)
    assert isinstance(forecast, Forecast)
    html = forecast._repr_mimebundle_(include=None, exclude=None)["text/html"]
    assert f"{forecast.loss[0]:.4f}" in html


def test_a_chart_shows_itself_without_a_network(law, told):
    shown = law.plot()._repr_mimebundle_(include=None, exclude=None)
    assert set(shown) == {"image/svg+xml", "text/plain"}
    assert shown["text/plain"].startswith("L = 1.82 + 488 N^-0.349")
    drawn = shown["image/svg+xml"]
    assert not re.findall(r"https?://(?!www\.w3\.org/)", drawn)
    assert "<script" not in drawn
    several = told(story.LSTM_AHEAD).plot("loss-by-params")._repr_mimebundle_()
    assert "for twice N" in several["image/svg+xml"]


def test_a_study_shows_its_findings(told):
    shown = told(story.LSTM_AHEAD)._repr_mimebundle_()
    assert "LSTM is ahead" in shown["text/html"]
    assert story.HOSTILE in shown["text/plain"]
    assert story.HOSTILE not in shown["text/html"]
