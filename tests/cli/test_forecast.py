"""`isoloss forecast`, and the forecast beside a fit's own prediction."""

import json

import numpy as np
import polars as pl
import pytest

from isoloss import predict, text
from isoloss.sources.fits import read_fit

CONTRACT = "loss interval level laws error_rate origins extrapolation warnings source"
COLUMNS = ("--column", "params=size", "--column", "tokens=seen", "--column", "loss=val")
POINT = ("--params", "7e9", "--tokens", "1.4e11")
FITTED = ("--law", "chinchilla", "--objective", "squared-log", *COLUMNS)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 5), np.geomspace(1e9, 1e11, 5)))
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.003 * rng.standard_normal(25))
    pl.DataFrame({"size": N, "seen": D, "val": loss}).write_csv(tmp_path / "runs.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_the_loss_the_interval_and_what_they_rest_on(isoloss, here):
    code, out, err = isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "-o", "forecast.json")
    assert code == 0, err
    written = json.loads((here / "forecast.json").read_text("utf-8"))
    low, high = written["interval"]
    assert out.startswith(f"loss {written['loss']:.4f} nats per token at params 7B, tokens 140B\n")
    assert f"a new run: {low:.4f} to {high:.4f} (90%)" in out
    assert "outside the runs: params 7 times, tokens 1.4 times, flops 9.8 times" in out
    for name in ("chinchilla", "outer-exponent", "chinchilla, alpha = beta", "outer-exponent, alpha = beta"):
        assert name in out
    assert "Written to forecast.json" in out


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
        ((*POINT, "--where", "size < 2e7"), 3, "5 different sets of N and D: too few"),
        ((*POINT, "--where", "nosuch < 2e7"), 2, "where does not work"),
        (("--params", "-1", "--tokens", "1e10"), 2, "params is -1"),
        ((*POINT, "--input", "tokens=1e9"), 2, "--input: tokens is given twice"),
        ((*POINT, "--input", "batch=512"), 2, "batch is no size that the loss falls in"),
        ((*POINT, "--level", "0.9999999999999999"), 2, "level is 0.9999999999999999"),
        ((*POINT, "--level", "1e-9"), 2, "give a share from 0.000001 to 0.999999"),
    ],
)
def test_what_cannot_be_asked_is_said(isoloss, arguments, code, words):
    exit_code, out, err = isoloss("forecast", "runs.csv", *COLUMNS, *arguments)
    assert (exit_code, out) == (code, "")
    assert words in err


def test_predict_shows_the_forecast_of_the_fits_own_runs(isoloss, here):
    isoloss("fit", "runs.csv", *FITTED, "-o", "fit.json")
    forecast = json.loads(isoloss("predict", "fit.json", *POINT, "--json")[1])["forecast"]
    alone = json.loads(isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "--json")[1])
    assert forecast["interval"] == pytest.approx(alone["interval"], rel=1e-9)
    out = isoloss("predict", "fit.json", *POINT)[1]
    assert f"forecast from the same runs: {alone['loss']:.4f}" in out
    assert "outside the runs: trust the forecast" in out
    assert "warning: so far outside the runs expect the loss to be off by " in out
    law = read_fit("fit.json")
    at = {"params": np.array([1e8, float(POINT[1])]), "tokens": np.array([1e10, float(POINT[3])])}
    for inputs in (at, {name: float(values[1]) for name, values in at.items()}):  # many, and one
        (adds,) = [words for words in predict(law, **inputs).warnings if "so far outside" in words]
        several = isinstance(inputs["params"], np.ndarray)
        assert (" (params 7B, tokens 140B)" in adds) == several  # of many the worst is named
        first, detail = text.headline(adds.replace(" (params 7B, tokens 140B)", ""))
        assert f"warning: {first}\n    {detail}\n" in out
        assert not any("lies a factor" in words for words in predict(law, **inputs).warnings)
    assert any("lies a factor" in words for words in law.predict(params=7e10, tokens=1.4e12).warnings)
    assert any("lies a factor" in words for words in predict("chinchilla", params=7e13, tokens=1e13).warnings)
    far = isoloss("predict", "fit.json", "--params", "7e10", "--tokens", "1.4e12")[1]
    assert "lies a factor" not in far
    assert "the forecast beside it: the point lies" in far
    for command in ("plan", "design"):
        asked = ("--flops", "1e24") if command == "plan" else ("--budget", "1e21", *POINT)
        out = isoloss(command, "fit.json", *asked)[1]
        assert "warning: so far outside the runs expect the loss to be off by " in out
        assert "lies a factor" not in out
    inside = isoloss("predict", "fit.json", "--params", "1e8", "--tokens", "1e10")[1]
    assert "inside the runs: the law and the forecast agree" in inside
    assert "trust" not in inside
    moved = json.loads((here / "fit.json").read_text("utf-8"))
    moved["data"]["loss"] = [1.05 * loss for loss in moved["data"]["loss"]]
    (here / "moved.json").write_text(json.dumps(moved), "utf-8")
    out = isoloss("predict", "moved.json", "--params", "1e8", "--tokens", "1e10")[1]
    assert "inside the runs, where they disagree: trust the forecast" in out
    # A law without an interval has the error rate all the same.
    curve = json.loads((here / "fit.json").read_text("utf-8")) | {"covariance": None, "status": "CURVE_ONLY"}
    (here / "curve.json").write_text(json.dumps(curve), "utf-8")
    out = isoloss("predict", "curve.json", "--params", "7e10", "--tokens", "1.4e12")[1]
    assert "warning: so far outside the runs expect the loss to be off by " in out
    assert "lies a factor" not in out
    assert "times the forecast's" not in out
    # A published law carries no runs.
    assert "forecast" not in isoloss("predict", "chinchilla-epoch", *POINT)[1]


def test_of_a_sweep_the_forecast_beside_a_law_is_that_of_the_table(isoloss, here):
    table = pl.read_csv("runs.csv").rename({"size": "params", "seen": "tokens", "val": "loss"})
    tried = ((32768, 1.02), (65536, 1.0), (131072, 1.05))
    swept = pl.concat(
        table.with_columns(pl.lit(batch).alias("batch_tokens"), loss=pl.col("loss") * factor)
        for batch, factor in tried
    )
    swept.write_csv("swept.csv")
    code, out, _ = isoloss(
        "fit", "swept.csv", "--law", "chinchilla", "--objective", "squared-log", "-o", "s.json"
    )
    assert code == 0
    assert 'keep one with --where "batch_tokens = 65536"' in out
    alone = json.loads(isoloss("forecast", "swept.csv", *POINT, "--json")[1])
    of_file = json.loads(isoloss("forecast", "s.json", *POINT, "--json")[1])
    predicted = json.loads(isoloss("predict", "s.json", *POINT, "--json")[1])
    for forecast in (of_file, predicted["forecast"]):
        assert forecast["loss"] == pytest.approx(alone["loss"], rel=1e-9)
        assert forecast["interval"] == pytest.approx(alone["interval"], rel=1e-9)
    kept = "batch_tokens varies at equal sizes: the best of each is kept, 25 of 75 runs"
    assert kept in alone["warnings"]
    assert not any("no seeds" in note for note in alone["source"]["notes"])
    assert kept in of_file["warnings"]
    assert f"the forecast beside it: {kept}" in isoloss("predict", "s.json", *POINT)[1]
    asked = ("--law", "chinchilla", "--objective", "squared-log", "--holdout", "largest-params")
    for source, words in (("swept.csv", True), ("runs.csv", False)):
        names = () if words else COLUMNS
        code, out, err = isoloss("backtest", source, *names, *asked, "--verbose")
        assert code == 0, err
        assert ("isoloss forecast keeps the best of each size" in out) == words
    # Rows of another number than losses are no runs.
    written = json.loads((here / "s.json").read_text("utf-8"))
    written["data"]["rows"].append(76)
    (here / "s.json").write_text(json.dumps(written), "utf-8")
    assert isoloss("forecast", "s.json", *POINT)[0] == 2


@pytest.mark.parametrize(
    ("sweep", "code", "words"),
    [
        ({"message": "kept", "rows": list(range(1, 26))}, 0, ""),
        ({"rows": [1]}, 2, "the key 'source.sweep.message' is missing"),
        ({"message": "kept"}, 2, "the key 'source.sweep.rows' is missing"),
        ({"message": "kept", "rows": ["1"]}, 2, "source.sweep.rows.0: "),
        ({"message": "kept", "rows": [900]}, 2, "source.sweep.rows names none of its runs"),
        (5, 2, "source.sweep: "),
    ],
)
def test_a_fit_whose_sweep_is_damaged_is_said_to_be(isoloss, here, sweep, code, words):
    isoloss("fit", "runs.csv", *FITTED, "-o", "fit.json")
    written = json.loads((here / "fit.json").read_text("utf-8"))
    written["source"]["sweep"] = sweep
    (here / "fit.json").write_text(json.dumps(written), "utf-8")
    for command in ("predict", "forecast"):
        exit_code, _, err = isoloss(command, "fit.json", *POINT)
        assert exit_code == code, err
        assert words in err
        assert ("To mend it: " in err) == (code > 0)


def test_predict_says_why_no_forecast_stands_beside_a_law(isoloss):
    table = pl.read_csv("runs.csv").with_columns(w=pl.Series(np.resize([1.0, 2.0], 25)))
    table.write_csv("weighted.csv")
    table.head(7).write_csv("few.csv")
    held = ("--fixed", "alpha=0.35", "--fixed", "beta=0.37")
    for source, more, why in (
        ("weighted.csv", ("--weights", "w"), "its runs have weights: a forecast takes none"),
        ("few.csv", held, "7 different sets of N and D: too few for a forecast"),
    ):
        code, _, err = isoloss("fit", source, *FITTED, *more, "-o", "fit.json")
        assert code == 0, err
        assert f"warning: no forecast beside it: {why}\n" in isoloss("predict", "fit.json", *POINT)[1]
        prediction = json.loads(isoloss("predict", "fit.json", *POINT, "--json")[1])
        assert (prediction["forecast"], prediction["forecast_refused"]) == (None, why)
    isoloss("fit", "runs.csv", *FITTED, "-o", "fit.json")
    assert "forecast_refused" not in json.loads(isoloss("predict", "fit.json", *POINT, "--json")[1])


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
        code, out, err = isoloss("plan", *arguments)
        assert (code, out) == (2, "")
        assert words in err


def test_a_design_buys_runs_for_a_forecast(isoloss, tmp_path):
    asked = ("--forecast", "runs.csv", *COLUMNS, "--budget", "1e20", *POINT)
    code, out, err = isoloss("design", *asked)
    assert code == 0, err
    assert "to narrow the prediction" in out
    design = json.loads(isoloss("design", *asked, "--json", "-o", "drawn")[1])
    assert (tmp_path / "drawn" / "design.svg").is_file()
    assert design["law"] == "forecast"
    assert design["half_width_after"] < design["half_width_now"]


def test_runs_of_one_size_are_told_what_the_command_line_can_do(isoloss):
    N = np.geomspace(1e7, 1e9, 10)
    pl.DataFrame({"params": N, "tokens": np.full(10, 1e10), "loss": 2 + 480 * N**-0.35}).write_csv("one.csv")
    by = ("--forecast", "one.csv")
    for asked, code, what, mend in (
        (
            ("plan", *by, "--flops", "1e21"),
            3,
            "D spans a factor of 1",
            "forecast by params alone, or add runs",
        ),
        (("design", *by, "--budget", "1e20", "--params", "7e9"), 2, "FLOPs of a run", "differ in tokens too"),
        (("design", *by, "--budget", "1e5", "--params", "7e9"), 2, "--budget: flops is 100000", "PF-days"),
    ):
        exit_code, out, err = isoloss(*asked)
        assert (exit_code, out) == (code, "")
        assert what in err
        assert mend in err.split("To mend it: ")[1]


def test_a_file_keeps_its_doubts_and_takes_no_reading(isoloss, here):
    rng = np.random.default_rng(1)
    N, D = 10 ** rng.uniform(7, 9, 160), 10 ** rng.uniform(9, 11, 160)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.003 * rng.standard_normal(160))
    table = {"params": N, "tokens": D, "unique_tokens": np.full(160, 5e10), "loss": loss}
    pl.DataFrame(table).write_csv("more.csv")
    isoloss("forecast", "more.csv", *POINT, "-o", "forecast.json")
    for source in ("more.csv", "forecast.json"):
        out = isoloss("plan", "--forecast", source, "--flops", "1e21")[1]
        assert out.count("note: 150 of 160 runs were used: ") == 1
        assert sum("passed more than once over their data" in line for line in out.splitlines()) == 1
        assert "the point lies" not in out
    for option in (("--count", "params_total"), ("--accept", "many-diverged"), ("--bytes-per-token", "4")):
        code, out, err = isoloss("forecast", "forecast.json", *POINT, *option)
        assert (code, out) == (2, "")
        assert "it was read before" in err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("source", "columns"), {"params": 1}),
        (("source", "loss_unit"), 7),
        (("source", "findings"), ["text"]),
        (("data", "weights"), 5),
        (("data", "loss"), ["2.1"] * 25),
        (("data", "loss"), [2.1]),
        (("data",), [1]),
    ],
)
def test_a_damaged_file_is_no_forecast(isoloss, here, key, value):
    isoloss("forecast", "runs.csv", *COLUMNS, *POINT, "-o", "forecast.json")
    written = json.loads((here / "forecast.json").read_text("utf-8"))
    part = written
    for name in key[:-1]:
        part = part[name]
    part[key[-1]] = value
    (here / "forecast.json").write_text(json.dumps(written), "utf-8")
    asked = (("forecast",), ("plan", "--forecast"), ("design", "--forecast"))
    options = (POINT, ("--flops", "1e21"), ("--budget", "1e20", *POINT))
    for command, more in zip(asked, options, strict=True):
        code, out, err = isoloss(*command, "forecast.json", *more)
        assert (code, out) == (2, "")
        assert "forecast.json: " in err


def test_a_file_with_another_size_inside_is_asked_for_it(isoloss, here):
    rng = np.random.default_rng(3)
    N, D = 10 ** rng.uniform(7, 9, 60), 10 ** rng.uniform(9, 11, 60)
    loss = 1.8 + 480 * N**-0.35 + 2100 * D**-0.37
    times = rng.choice([1, 2, 4, 8], 60)
    table = {"params": N, "tokens": D, "recurrence": times, "loss": loss + 0.3 / times}
    pl.DataFrame(table).write_csv("l.csv")
    loops = ("--input", "recurrence=4")
    assert isoloss("forecast", "l.csv", *POINT, *loops, "-o", "l.json")[0] == 0
    one = ("--where", "recurrence = 4")
    for source, mend in (("l.csv", "keep"), ("l.json", "give the table itself and keep")):
        code, _, err = isoloss("plan", "--forecast", source, "--flops", "1e21")
        assert code == 2
        assert "the runs differ in recurrence too" in err
        assert (
            f"To mend it: {mend} one value of recurrence with where, or give forecast or design --input"
            in err
        )
        assert (isoloss("plan", "--forecast", source, "--flops", "1e21", *one)[0] == 0) == (source == "l.csv")
        asked = ("design", "--forecast", source, "--budget", "1e20", *POINT)
        code, out, err = isoloss(*asked, "--recurrence", "2")
        assert code == 0, err
        assert "recurrence" in out
        assert isoloss(*asked, "--input", "recurrence=2")[1] == out
        code, _, err = isoloss(*asked)
        assert code == 2
        assert "or give forecast or design --input recurrence=" in err


def test_units_and_derived_columns_are_said(isoloss):
    table = pl.read_csv("runs.csv").select(
        params_M=pl.col("size") / 1e6, flops=6 * pl.col("size") * pl.col("seen"), loss="val"
    )
    table.write_csv("units.csv")
    out = isoloss("forecast", "units.csv", *POINT)[1]
    assert "note: params is the column 'params_M' times 1e+06" in out
    assert "tokens is derived: tokens = flops / (6 params)" in out
    assert "note: " not in isoloss("forecast", "runs.csv", *COLUMNS, *POINT)[1]


def test_a_refusal_names_the_rows_that_were_left_out(isoloss):
    table = pl.read_csv("runs.csv").with_columns(state=pl.lit("crashed"))
    few = pl.concat([table[:-6], table[-6:].with_columns(state=pl.lit("finished"))])
    few.write_csv("few.csv")
    code, out, err = isoloss("forecast", "few.csv", *COLUMNS, *POINT)
    assert (code, out, "6 different sets of N and D: too few" in err) == (3, "", True)
    assert "too few for a forecast\n  warning: left out as unfinished: rows" in err


def test_losses_are_said_in_their_unit(isoloss):
    pl.read_csv("runs.csv").rename({"val": "bits_per_byte"}).write_csv("bits.csv")
    columns = ("--column", "params=size", "--column", "tokens=seen", "--column", "loss=bits_per_byte")
    assert " bits per byte at params 7B" in isoloss("forecast", "bits.csv", *columns, *POINT)[1]
    columns = (*columns[:-1], "bits_per_byte=bits_per_byte")
    out = isoloss("forecast", "bits.csv", *columns, *POINT, "--bytes-per-token", "4")[1]
    assert " nats per token at params 7B" in out


def test_a_plan_is_refused_where_runs_do_not_say_how_compute_is_split(isoloss):
    rng = np.random.default_rng(0)
    N = np.geomspace(1e7, 1e9, 16)
    loss = (1.8 + 480 * N**-0.35 + 2100 * (20 * N) ** -0.37) * np.exp(0.003 * rng.standard_normal(16))
    pl.DataFrame({"params": N, "tokens": 20 * N, "loss": loss}).write_csv("line.csv")
    code, out, err = isoloss("plan", "--forecast", "line.csv", "--flops", "1e22")
    assert (code, out) == (3, "")
    assert "N and D rise together in the runs" in err
    assert isoloss("plan", "--forecast", "line.csv", "--flops", "1e22", "--params", "1e10")[0] == 0
    rng = np.random.default_rng(1)
    N, D = 10 ** rng.uniform(7, 9, 40), 10 ** rng.uniform(9, 11, 40)
    rising = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) ** -1 * np.exp(0.004 * rng.standard_normal(40))
    pl.DataFrame({"params": N, "tokens": D, "loss": rising}).write_csv("rising.csv")
    code, _, err = isoloss("plan", "--forecast", "rising.csv", "--flops", "1e22")
    assert code == 3
    assert "the runs do not tell how many params are best" in err
    assert "To mend it: add runs of other tokens per parameter" in err
