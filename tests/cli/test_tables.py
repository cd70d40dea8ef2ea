"""Any table through every command: the same findings, numbers as people write them, no traceback, no nan."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoloss import __version__
from isoloss.cli.app import respond
from isoloss.errors import RunError
from isoloss.plans import plan
from isoloss.plans.design import design
from isoloss.plans.forecast import forecast_table
from isoloss.sources import columns_for, fit_table

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import hostile_tables
from hostile_tables import COMMANDS, faults, sweep

READINGS = {
    "fit": {"laws": "chinchilla"},
    "compare": {"laws": ["chinchilla", "power"]},
    "backtest": {"laws": ["chinchilla"]},
    "isoflop": {"laws": [], "more": ("flops", "params"), "optional": ("tokens",)},
    "forecast": {"laws": ["chinchilla"], "more": ("params", "tokens")},
}


some = pl.int_range(pl.len()) % 9 == 4
CHANGES = {
    "states": lambda t: t.with_columns(
        state=pl.when(some).then(pl.lit("TIMEOUT")).otherwise(pl.lit("COMPLETED"))
    ),
    "flags": lambda t: t.with_columns(finished=~some),
    "steps": lambda t: t.with_columns(step=pl.when(some).then(60).otherwise(100), max_steps=100),
    "units": lambda t: t.with_columns(pl.col("params") / 1e6).rename({"params": "params_M"}),
    "labels": lambda t: pl.concat([t.with_columns(domain=pl.lit(name)) for name in ("c4", "wiki")]),
    "reruns": lambda t: pl.concat([t, t.with_columns(pl.col("loss") + 1e-6)]).with_columns(seed=0),
    "copies": lambda t: pl.concat([t, t[:3]]),
    "padded": lambda t: t.with_columns(vocab=pl.when(some).then(50304).otherwise(50257)),
    "family": lambda t: t.with_columns(family=pl.when(some).then(pl.lit("lstm")).otherwise(pl.lit("gpt"))),
    "diverged": lambda t: t.with_columns(
        pl.when(pl.int_range(pl.len()) == 30).then(9.0).otherwise("loss").alias("loss")
    ),
    "gap": lambda t: t.with_columns(pl.when(some).then(None).otherwise("loss").alias("loss")),
}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=3, unique=True))
def test_every_command_finds_the_same_in_a_table(names):
    table = sweep()
    for name in names:
        table = CHANGES[name](table)
    findings = {}
    for command, reading in READINGS.items():
        data = columns_for(table=table, **reading)
        rows = tuple((one.row, one.reason) for one in data.runs.excluded)
        findings[command] = ({issue.kind for issue in data.runs.findings}, rows, data.cluster is None)
    assert all(one == findings["fit"] for one in findings.values()), findings
    if names == ["states"]:
        assert len(findings["fit"][1]) == 4


@pytest.mark.parametrize("name", [*CHANGES, None])
def test_what_is_wrong_with_a_table_is_said_as_far_as_its_fit_goes(name):
    table = sweep() if name is None else CHANGES[name](sweep())
    table_warnings = columns_for("chinchilla", table).warnings
    assert bool(table_warnings) == (name not in ("units", None))
    fit = fit_table("chinchilla", table)
    at = {"params": 1e9, "tokens": 2e10}
    warnings_of = {
        "fit": fit.warnings,
        "predict": fit.predict(**at).warnings,
        "plan": plan(fit, flops=1e21).warnings,
        "design": design(fit, budget_flops=1e20, target=at, at_most=2).warnings,
        "forecast": forecast_table(table, **at).warnings,
    }
    for command, warnings in warnings_of.items():
        assert set(table_warnings) <= set(warnings), command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_left_out(isoloss, tmp_path, command):
    path = tmp_path / "runs.csv"
    CHANGES["states"](sweep()).write_csv(path)
    code, out, _ = isoloss(command, str(path), *COMMANDS[command])
    assert code == 0
    assert "warning: left out as unfinished: rows 5, 14, 23, 32 (state is 'TIMEOUT')" in out
    sweep().write_csv(path)
    assert "left out as" not in isoloss(command, str(path), *COMMANDS[command])[1]


@pytest.mark.parametrize("value", ["100", "300", "1e9"])
@pytest.mark.parametrize("command", ["fit", "backtest"])
def test_a_parameter_held_at_an_absurd_value_is_refused_with_a_reason(isoloss, tmp_path, command, value):
    sweep().write_csv(tmp_path / "runs.csv")
    options = ("--law", "outer-exponent", "--fixed", f"alpha={value}")
    code, _, err = isoloss(command, str(tmp_path / "runs.csv"), *options)
    assert code == 3
    assert "To mend it" in err


@pytest.mark.parametrize("number", range(8))
def test_damaged_tables_end_in_an_answer_or_in_a_reason(number):
    ends, wrong = faults(number)
    assert wrong == []
    assert {end.partition(" ")[0] for end in ends} >= {*COMMANDS, "import"}


def test_losses_that_scatter_wildly_are_refused_by_isoflop(isoloss, tmp_path):
    wild = sweep().with_columns(pl.col("loss") * 30.0 ** (pl.int_range(pl.len()) * 7 % 5))
    wild.write_csv(tmp_path / "runs.csv")
    code, _, err = isoloss("isoflop", str(tmp_path / "runs.csv"), "--accept", "many-diverged")
    assert code == 3
    assert "scatter by over a sixth" in err


def test_control_a_fault_of_a_command_is_found(monkeypatch):
    for answer in ((1, "", "To mend it"), (2, "loss 1", "To mend it"), (2, "", "no"), (0, "loss nan", "")):
        monkeypatch.setattr(hostile_tables, "call", lambda *_, answer=answer: answer)
        assert len(faults(0)[1]) == len(COMMANDS) + 1


@pytest.mark.parametrize("params", ["70B", "7e10", "70_000_000_000", "70,000,000,000", "0.07T", "70 billion"])
def test_numbers_are_read_as_people_write_them(isoloss, params):
    code, out, _ = isoloss("predict", "chinchilla-epoch", "--params", params, "--tokens", "1.4T")
    assert code == 0
    assert out.startswith("loss 1.9734 nats per token")


@pytest.mark.parametrize(
    ("arguments", "slip"),
    [
        (("predict", "--params", "70", "--tokens", "1.4T"), "70B"),
        (("predict", "--params", "70B", "--tokens", "1.4"), "1.4B"),
        (("predict", "--params", "1,5B", "--tokens", "1T"), "not a number"),
        (("predict", "--params", "nan", "--tokens", "1T"), "not a number"),
        (("plan", "--flops", "3640"), "3640PF-days"),
        (("plan", "--flops", "500 GPU-hours"), "hours of devices"),
        (("predict", "--input", "params=lots", "--tokens", "1T"), "not a number"),
    ],
)
def test_numbers_that_no_model_has_are_refused_with_the_likely_slip(isoloss, arguments, slip):
    code, out, err = isoloss(arguments[0], "chinchilla-epoch", *arguments[1:])
    assert (code, out) == (2, "")
    assert slip in err


def test_pf_days_are_flops(isoloss):
    plan = [
        isoloss("plan", "chinchilla-epoch", "--flops", text, "--json")[1]
        for text in ("300PF-days", "2.592e22")
    ]
    assert json.loads(plan[0]) == json.loads(plan[1])


def test_the_unit_of_the_loss_is_kept_to_the_prediction_and_the_page(isoloss, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep().rename({"loss": "val_bpb"}).write_csv("runs.csv")
    assert isoloss("fit", "runs.csv", "--law", "chinchilla", "--loss", "val_bpb", "-o", "f.json")[0] == 0
    out = isoloss("predict", "f.json", "--params", "1B", "--tokens", "20B")[1]
    assert "bits per byte, by" in out
    assert "loss (bits per byte)" in isoloss("plan", "f.json", "--flops", "1e21")[1]
    assert isoloss("report", "f.json")[0] == 0
    page = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.html"))
    assert "Loss (bits per byte)" in page
    assert "nats" not in page


def test_findings_fill_one_screen_unless_all_are_wanted(capsys):
    respond(False, {}, [], [f"doubt {number}" for number in range(15)])
    assert capsys.readouterr().out.splitlines()[-1] == "warning: and 5 more, with --verbose"
    respond(False, {}, [], [f"doubt {number}" for number in range(15)], verbose=True)
    assert len(capsys.readouterr().out.splitlines()) == 15


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("as_json", [True, False])
def test_no_answer_holds_a_number_that_is_not_finite(capsys, as_json, value):
    with pytest.raises(RunError):
        respond(as_json, {"loss": [1.0, value]}, ["loss"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("laws",),
        ("predict", "--help"),
        ("plan", "chinchilla-epoch", "--flops", "1e21"),
        ("data", "list", "--json"),
    ],
)
def test_a_reader_who_leaves_is_no_error(arguments):
    command = [sys.executable, "-m", "isoloss.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
    assert (process.returncode, err) == (0, "")


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "isoloss", "--version"]
    assert subprocess.check_output(command, text=True) == f"isoloss {__version__}\n"
