"""The verbs of the laws on files: from fit and predict to design and bench."""

import html
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from isoloss import __version__ as isoloss_version
from isoloss import cli
from isoloss.analysis.fit_tables import parameters, solution
from isoloss.sources.fits import read_fit
from isoloss.table import lines

CONTRACT = {
    "fit": (
        "law status reason params intervals level objective n starts condition warnings allocation source"
    ),
    "predict": "loss interval level extrapolation warnings",
    "plan": "flops params tokens loss intervals",
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with runs.csv, a Chinchilla grid under other people's names, to stand in."""
    rng = np.random.default_rng(2)
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 1e11, 6)))
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.003 * rng.standard_normal(36))
    table = pl.DataFrame(
        {"size": N, "seen": D, "val": loss, "corpus": ["web", "books"] * 18, "run": range(36)}
    )
    table.write_csv(tmp_path / "runs.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


NAMES = ("--params", "size", "--tokens", "seen", "--loss", "val")


@pytest.fixture
def fitted(isoloss):
    code, _, err = isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES, "-o", "fit.json")
    assert code == 0, err
    return "fit.json"


def test_fit_says_what_it_found_and_what_it_rests_on(isoloss, here):
    code, out, _ = isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES, "-o", "fit.json")
    assert code == 0
    assert "chinchilla: L = 1.80 + 445 N^-0.345" in out
    assert "converged" in out
    table = {line.split("   ")[0].strip(): line.split("   ")[-1].strip() for line in out.splitlines()}
    assert table["Starts"] == "8 of 8 agree"
    assert (table["Rows"], table["Degrees of freedom"]) == ("36", "31")
    assert table["a: N_opt ~ C^a"] == "follows"
    assert "0.5214   –                0.5027 to 0.5395" in out
    assert json.loads((here / "fit.json").read_text())["law"] == "chinchilla"


def test_the_terminal_and_the_page_of_a_fit_say_the_same(isoloss, fitted, here, undrawn):
    law = read_fit(here / fitted)
    out = "\n".join(
        map(str.rstrip, isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES)[1].splitlines())
    )
    assert "Drawing " in isoloss("report", fitted)[2]
    assert "Drawing " not in isoloss("report", fitted)[2]
    page = html.unescape((here / "fit-report" / "index.html").read_text("utf-8"))
    for build in (parameters, solution):
        table = build(law)
        assert "\n".join(lines(table)) in out
        assert f"<caption>{table.caption}</caption>" in page
        for row in table.rows:
            assert all(f">{cell}</t" in page for cell in row)
    # Control: another fit's table is on neither.
    other = parameters(replace(law, params=dict.fromkeys(law.params, 7.25)))
    assert "\n".join(lines(other)) not in out
    assert ">7.25</t" not in page


def test_fit_prints_the_contract_as_json(isoloss):
    code, out, _ = isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--json")
    law = json.loads(out)
    assert code == 0
    assert set(CONTRACT["fit"].split()) <= set(law)
    assert law["source"]["columns"]["params"] == "size"
    assert law["allocation"]["a"] + law["allocation"]["b"] == pytest.approx(1)
    assert law["n"] == 36


def test_fit_takes_its_options(isoloss):
    options = ("--tied", "alpha,beta", "--where", "corpus = 'web'", "--objective", "squared-log")
    code, out, err = isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES, *options, "--json")
    assert code == 0, err
    law = json.loads(out)
    assert law["params"]["alpha"] == law["params"]["beta"]
    assert (law["n"], law["objective"]["name"]) == (18, "squared-log")
    options = ("--fixed", "E=1.8", "--bootstrap", "200", "--cluster", "run")
    code, out, err = isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES, *options, "--json")
    assert code == 0, err
    law = json.loads(out)
    assert law["params"]["E"] == 1.8
    assert law["intervals"]["E"] is None
    assert law["bootstrap"]["unit"] == "clusters"


def test_curve_only_keeps_a_refused_law_for_its_curve(isoloss):
    N = np.tile(np.geomspace(1e4, 1e6, 7), 2)
    loss = 4.0 * N**-0.05 * np.exp(0.002 * np.random.default_rng(3).standard_normal(14))
    pl.DataFrame({"params": N, "loss": loss}).write_csv("open.csv")
    asked = ("fit", "open.csv", "--law", "power-floor")
    code, out, err = isoloss(*asked)
    assert (code, out) == (3, "")
    code, out, _ = isoloss(*asked, "--curve-only", "-o", "curve.json")
    curve = read_fit("curve.json")
    assert (code, curve.status.name) == (0, "CURVE_ONLY")
    assert curve.reason in err
    assert curve.status.value in out
    code, out, err = isoloss("predict", "curve.json", "--params", "1e5")
    assert code == 0
    assert "a new run" not in out
    assert curve.status.value in err + out


def test_predict_keeps_the_contract(isoloss, fitted):
    code, out, _ = isoloss("predict", fitted, "--params", "7e9", "--tokens", "1.4e11", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(CONTRACT["predict"].split()) <= set(answer)
    truth = 1.8 + 480 * 7e9**-0.35 + 2100 * 1.4e11**-0.37
    assert answer["interval"][0] < truth < answer["interval"][1]
    assert answer["extrapolation"]["params"] == pytest.approx(7)
    wide = json.loads(
        isoloss("predict", fitted, "--params", "7e9", "--tokens", "1.4e11", "--level", "0.99", "--json")[1]
    )
    assert wide["interval"][0] < answer["interval"][0]
    # Training FLOPs stand for the tokens.
    same = json.loads(isoloss("predict", fitted, "--params", "7e9", "--flops", "5.88e21", "--json")[1])
    assert same["loss"] == pytest.approx(answer["loss"])


def test_predict_takes_a_published_law(isoloss):
    code, out, _ = isoloss("predict", "chinchilla-epoch", "--params", "7e10", "--tokens", "1.4e12")
    assert code == 0
    assert "loss 1.9734 nats" in out
    assert "no interval" in out
    code, _, err = isoloss("predict", "ouro", "--params", "1e9")
    assert code == 3
    assert "no constant" in err


def test_plan_keeps_the_contract(isoloss, fitted):
    code, out, _ = isoloss("plan", fitted, "--flops", "1e21", "--price-per-gpu-hour", "2", "--json")
    plan = json.loads(out)
    assert code == 0
    assert set(CONTRACT["plan"].split()) <= set(plan)
    assert plan["params"] * plan["tokens"] * 6 == pytest.approx(1e21)
    assert plan["money"] == pytest.approx(2 * plan["gpu_hours"])
    low, high = plan["intervals"]["params"]
    assert low < plan["params"] < high
    code, out, _ = isoloss("plan", fitted, "--loss", "2.2")
    assert code == 0
    assert "loss" in out
    code, _, err = isoloss("plan", fitted, "--loss", "1.2")
    assert code == 3
    assert "To mend it" in err


def test_compare_ranks(isoloss):
    code, out, err = isoloss("compare", "runs.csv", "--laws", "chinchilla,kaplan-nd", *NAMES, "--json")
    assert code == 0, err
    comparison = json.loads(out)
    assert comparison["entries"][0]["law"] == "chinchilla"
    assert "verdict" in comparison
    names = ("chinchilla,kaplan-nd", *NAMES, "--out", "figures")
    assert "chinchilla" in isoloss("compare", "runs.csv", "--laws", *names)[1]
    assert Path("figures/compared-laws.svg").read_text("utf-8").startswith("<svg")


@pytest.mark.parametrize(
    "command", [("compare", "--laws", "chinchilla,kaplan-nd"), ("backtest", "--law", "chinchilla")]
)
def test_doubts_about_the_table_stand_in_json_too(isoloss, here, command):
    name, *options = command
    table = pl.read_csv("runs.csv")
    pl.concat([table, table.head(1)]).write_csv("copied.csv")
    for file, copies in (("runs.csv", 0), ("copied.csv", 1)):
        code, out, err = isoloss(name, file, *options, *NAMES, "--json")
        assert code == 0, err
        assert sum("repeats earlier rows" in said for said in json.loads(out)["warnings"]) == copies


def test_backtest_hides_the_largest_or_what_it_is_told(isoloss, here):
    code, out, err = isoloss("backtest", "runs.csv", "--law", "chinchilla", *NAMES, "-o", "pictures")
    assert code == 0, err
    assert "hidden run" in out
    assert any(path.suffix == ".svg" for path in (here / "pictures").iterdir())
    options = (*NAMES, "--holdout", "corpus=books", "--json")
    code, out, err = isoloss("backtest", "runs.csv", "--law", "chinchilla", *options)
    assert code == 0, err
    assert len(json.loads(out)["runs"]) == 18
    code, _, err = isoloss("backtest", "runs.csv", "--law", "chinchilla", *NAMES, "--holdout", "corpus=code")
    assert code == 2
    assert "takes books, web" in err


def test_isoflop_reads_minima(isoloss, here):
    sizes, rows = np.geomspace(1e7, 3e9, 9), []
    for C in np.geomspace(1e18, 1e20, 5):
        best = 0.1 * C**0.5
        rows += [
            {"N": n, "C": C, "loss": 2 + 1e3 * C**-0.15 * (1 + 0.05 * np.log(n / best) ** 2)}
            for n in best * sizes / 1.7e8
        ]
    pl.DataFrame(rows).write_csv(here / "iso.csv")
    code, out, err = isoloss("isoflop", "iso.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["params"]["exponent"] == pytest.approx(0.5, abs=0.01)
    assert json.loads(out)["warnings"] == []
    pl.DataFrame([*rows, rows[0]]).write_csv(here / "copied.csv")
    said = json.loads(isoloss("isoflop", "copied.csv", "--json")[1])["warnings"]
    assert any("repeats earlier rows" in each for each in said)
    assert "N* = " in isoloss("isoflop", "iso.csv", "--method", "parabola", "-o", "pictures")[1]
    assert (here / "pictures").is_dir()


@pytest.mark.parametrize(
    ("row_5", "said"),
    [("", "tokens is empty in row 5"), ("n.a.", "row 5, column 'tokens': is 'n.a.', not a number")],
)
def test_isoflop_takes_tokens_for_every_row_or_for_none(isoloss, row_5, said):
    """One wrong cell may not make all tokens C/(6 N) without a word."""
    sizes, budgets = np.meshgrid(np.geomspace(1e7, 1e9, 7), np.geomspace(1e18, 1e20, 4))
    N, C = sizes.ravel(), budgets.ravel()
    loss = 2 + 1e3 * C**-0.15 * (1 + 0.05 * np.log(N / (0.1 * C**0.5)) ** 2)
    table = pl.DataFrame({"N": N, "C": C, "loss": loss, "tokens": [f"{d:g}" for d in C / (2 * N)]})
    row = pl.int_range(pl.len())
    files = {
        "whole.csv": table,
        "wrong.csv": table.with_columns(tokens=pl.when(row == 4).then(pl.lit(row_5)).otherwise("tokens")),
        "none.csv": table.with_columns(tokens=pl.lit(None)),
    }
    for name, each in files.items():
        each.write_csv(name)
    code, out, err = isoloss("isoflop", "wrong.csv")
    assert (code, out) == (2, "")
    assert said in err
    whole, none = (json.loads(isoloss("isoflop", name, "--json")[1]) for name in ("whole.csv", "none.csv"))
    ratio = whole["tokens"]["coefficient"] / none["tokens"]["coefficient"]
    assert ratio == pytest.approx(3, rel=0.01)


def test_design_proposes_runs_within_the_budget(isoloss, fitted):
    target = ("--params", "7e9", "--tokens", "1.4e11")
    code, out, err = isoloss("design", fitted, "--budget", "1e20", *target, "--json")
    assert code == 0, err
    design = json.loads(out)
    assert sum(run["flops"] for run in design["runs"]) <= 1e20
    assert design["half_width_after"] < design["half_width_now"]
    assert "D-optimal" in isoloss("design", fitted, "--budget", "1e20", *target)[1]


def test_laws_and_data_are_listed(isoloss):
    code, out, _ = isoloss("laws")
    assert code == 0
    assert "loop-equivalence" in out
    assert "chinchilla-epoch" in out
    listed = json.loads(isoloss("laws", "--json")[1])
    assert set(listed) == {"laws", "published", "unpublished"}
    code, out, _ = isoloss("data", "list")
    assert code == 0
    assert "licence" in out
    assert json.loads(isoloss("data", "list", "--json")[1])


def test_bench_times_both_ways_on_the_same_runs(isoloss):
    code, out, _ = isoloss("bench", "fit", "--starts", "6", "--refits", "100", "--json")
    assert code == 0
    refits, seconds, objective, alpha, beta = json.loads(out)["rows"]
    assert refits["beside"] == "one fit"
    assert [row["unit"] for row in (seconds, alpha, beta)] == ["CPU-s", "as alpha", "as beta"]
    assert objective["beside"] == "L-BFGS-B, grid of 6 starts"
    assert objective["ratio"] <= 1 + 1e-9
    assert isoloss("bench", "fits")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        (("fit", "none.csv", "--law", "chinchilla"), 2, "none.csv"),
        (("fit", "runs.csv", "--law", "chincilla", *NAMES), 2, "'chincilla'"),
        (("fit", "runs.csv", "--law", "chinchilla"), 2, "params"),
        (("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--where", "size ="), 2, "where does not work"),
        (("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--fixed", "E"), 2, "--fixed"),
        (("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--fixed", "E=much"), 2, "not a number"),
        (("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--tied", "A,alpha"), 2, "tied"),
        (("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--intervals", "z"), 2, "intervals"),
        (("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--where", "size < 2e7"), 3, "N takes 1 value"),
        (("predict", "nothing", "--params", "1e9"), 2, "nothing"),
        (("predict", "runs.csv", "--params", "1e9"), 2, "runs.csv"),
        (("predict", "chinchilla", "--params", "1e9"), 2, "tokens is missing"),
        (("predict", "chinchilla", "--params", "1e9", "--tokens", "1e9", "--recurrence", "2"), 2, "leave it"),
        (("predict", "chinchilla", "--flops", "1e9"), 2, "beside flops"),
        (("plan", "kaplan-n", "--flops", "1e20"), 2, "needs parameters and tokens"),
        (("plan", "chinchilla", "--flops", "1e20", "--gpu", "abacus"), 2, "abacus"),
        (("design", "chinchilla", "--budget", "1e20", "--params", "1e9", "--tokens", "1e9"), 3, "interval"),
        (("backtest", "runs.csv", "--law", "chinchilla", *NAMES, "--holdout", "largest-moon"), 2, "moon"),
        (("data", "fetch", "porian"), 2, "pickle"),
        (("data", "fetch", "nothing"), 2, "nothing"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else None,
)
def test_errors_name_the_place_and_write_nothing(isoloss, here, arguments, code, place):
    before = sorted(here.rglob("*"))
    exit_code, out, err = isoloss(*arguments)
    assert exit_code == code, err
    assert place in err
    assert "Traceback" not in err
    assert "To mend it" in err
    assert out == ""
    assert sorted(here.rglob("*")) == before


def test_control_characters_of_a_file_do_not_steer_the_terminal(isoloss, fitted, here):
    data = json.loads((here / fitted).read_text())
    (here / "hostile.json").write_text(json.dumps(data | {"warnings": ["\x1b[31mred\x07"]}))
    code, out, _ = isoloss("predict", "hostile.json", "--params", "1e9", "--tokens", "1e10")
    assert code == 0
    assert "\x1b" not in out
    assert "?[31mred?" in out


def test_a_table_is_not_taken_for_a_fit_nor_told_to_be_deleted(isoloss):
    code, _, err = isoloss("report", "runs.csv")
    assert code == 2
    assert "fit it first" in err
    assert "delete" not in err


def test_devices_and_folders_are_not_replaced(isoloss, here):
    (here / "folder").mkdir()
    for target in ("/dev/null", "folder"):
        code, _, err = isoloss("fit", "runs.csv", "--law", "chinchilla", *NAMES, "-o", target)
        assert code == 2
        assert "no regular file" in err
    assert (here / "folder").is_dir()


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "chinchilla", "--flops", "1e22", "--seed", "-1"),
        ("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--bootstrap", "200", "--seed", "-1"),
        ("fit", "runs.csv", "--law", "chinchilla", *NAMES, "--tied", "alpha"),
        ("predict", "chinchilla", "--params", "1e9", "--tokens", "1e10", "--input", "params=2e9"),
    ],
    ids=lambda arguments: " ".join(arguments[-2:]),
)
def test_what_cannot_be_meant_is_an_input_error(isoloss, arguments):
    code, out, err = isoloss(*arguments)
    assert (code, out) == (2, "")
    assert "To mend it" in err


def test_a_column_that_is_an_input_may_be_held_out(isoloss):
    options = (*NAMES, "--holdout", "seen=1e11", "--json")
    code, out, err = isoloss("backtest", "runs.csv", "--law", "chinchilla", *options)
    assert code == 0, err
    assert {run["inputs"]["tokens"] for run in json.loads(out)["runs"]} == {1e11}


def test_the_report_of_a_fit_tells_its_findings(isoloss, fitted, undrawn):
    findings = json.loads(isoloss("report", fitted, "--json")[1])["findings"]
    assert {"law", "certainty", "allocation"} <= {one["key"] for one in findings}


def test_version():
    assert CliRunner().invoke(cli.app, ["--version"]).output == f"isoloss {isoloss_version}\n"
