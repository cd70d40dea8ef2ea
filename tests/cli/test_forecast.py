"""`isoloss forecast`, and the forecast beside a fit's own prediction."""

import json

import numpy as np
import polars as pl
import pytest

CONTRACT = "loss interval level laws error_rate origins extrapolation warnings source"
COLUMNS = ("--column", "params=size", "--column", "tokens=seen", "--column", "loss=val")
POINT = ("--params", "7e9", "--tokens", "1.4e11")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 5), np.geomspace(1e9, 1e11, 5)))
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.003 * rng.standard_normal(25))
    pl.DataFrame({"size": N, "seen": D, "val": loss}).write_csv(tmp_path / "runs.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_the_loss_the_interval_and_what_they_rest_on(isoloss, here):
    code, said, talk = isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "-o", "forecast.json")
    assert code == 0, talk
    written = json.loads((here / "forecast.json").read_text("utf-8"))
    low, high = written["interval"]
    assert said.startswith(f"loss {written['loss']:.4f} nats a token at params 7B, tokens 140B\n")
    assert f"a new run: {low:.4f} to {high:.4f} (90%)" in said
    assert "outside the runs: params 7 times, tokens 1.4 times, flops 9.8 times" in said
    for name in ("chinchilla", "outer-exponent", "chinchilla, alpha = beta"):
        assert name in said
    assert "Written to forecast.json" in said


def test_json_keeps_the_contract_for_one_point_and_for_more(isoloss):
    one = json.loads(isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "--json")[1])
    assert set(CONTRACT.split()) <= set(one)
    assert one["interval"][0] < one["loss"] < one["interval"][1]
    many = json.loads(
        isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "--params", "1e9", "--level", "0.5", "--json")[1]
    )
    assert many["loss"][0] == one["loss"]
    assert many["level"] == 0.5
    assert np.diff(many["interval"][0]) < np.diff(one["interval"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--params", "7e9"), 2, "differ in tokens too"),
        ((), 2, "no size is given"),
        ((*POINT, "--where", "size < 2e7"), 3, "5 different sets of params and tokens: too few"),
        ((*POINT, "--where", "nosuch < 2e7"), 2, "where does not work"),
        (("--params", "-1", "--tokens", "1e10"), 2, "params is -1"),
    ],
)
def test_what_cannot_be_asked_is_said(isoloss, arguments, code, words):
    got, said, talk = isoloss("forecast", "runs.csv", *COLUMNS, *arguments)
    assert (got, said) == (code, "")
    assert words in talk


def test_predict_shows_the_forecast_of_the_fits_own_runs(isoloss):
    names = ("--params", "size", "--tokens", "seen", "--loss", "val")
    isoloss("fit", "runs.csv", "--law", "chinchilla", "--objective", "squared-log", *names, "-o", "fit.json")
    beside = json.loads(isoloss("predict", "fit.json", *POINT, "--json")[1])["forecast"]
    alone = json.loads(isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "--json")[1])
    assert beside["interval"] == pytest.approx(alone["interval"], rel=1e-9)
    said = isoloss("predict", "fit.json", *POINT)[1]
    assert f"forecast from the same runs: {alone['loss']:.4f}" in said
    assert "outside the runs: trust the forecast" in said
    assert "times outside the runs: that far this table's hidden runs were missed by" in said
    far = isoloss("predict", "fit.json", "--params", "7e10", "--tokens", "1.4e12")[1]
    assert "lies a factor" not in far
    inside = isoloss("predict", "fit.json", "--params", "1e8", "--tokens", "1e10")[1]
    assert "trust" not in inside
    # A published law carries no runs.
    assert "forecast" not in isoloss("predict", "chinchilla-epoch", *POINT)[1]


def test_a_plan_by_the_forecast_of_a_table_and_of_a_file(isoloss):
    isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "-o", "forecast.json")
    by_table = isoloss("plan", "--forecast", "runs.csv", *COLUMNS, "--flops", "1e21")
    by_file = isoloss("plan", "--forecast", "forecast.json", "--flops", "1e21", "--json")
    assert by_table[0] == by_file[0] == 0
    assert by_table[1].startswith("plan by forecast:")
    plan = json.loads(by_file[1])
    assert plan["intervals"]["params"][0] < plan["params"] < plan["intervals"]["params"][1]
    for arguments, words in (
        (("--flops", "1e21"), "neither a fit nor a table"),
        (("chinchilla-epoch", "--forecast", "runs.csv", "--flops", "1e21"), "a fit and a table"),
    ):
        code, said, talk = isoloss("plan", *arguments)
        assert (code, said) == (2, "")
        assert words in talk


def test_a_design_buys_runs_for_a_forecast(isoloss, tmp_path):
    asked = ("--forecast", "runs.csv", *COLUMNS, "--budget", "1e20", *POINT)
    code, said, talk = isoloss("design", *asked)
    assert code == 0, talk
    assert "to narrow the prediction" in said
    found = json.loads(isoloss("design", *asked, "--json", "-o", "drawn")[1])
    assert (tmp_path / "drawn" / "design.svg").is_file()
    assert found["law"] == "forecast"
    assert found["half_width_after"] < found["half_width_now"]
