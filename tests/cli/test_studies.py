"""`isoloss run`, `status`, `report` and `corpus`: results on stdout, talk on stderr."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isoloss import files
from isoloss.cli.studies import outcome_lines

PLAN_KEYS = {
    "run_id",
    "family",
    "params",
    "params_total",
    "params_executed",
    "tokens",
    "flops_6nd",
    "flops_exact",
    "seconds",
    "memory_bytes",
}


# What a study will cost


@pytest.mark.parametrize("scale", ["mini", "gpu", "paper"])
def test_the_shipped_study_can_be_planned_at_every_scale(isoloss, here, scale):
    command = ("run", "architectures", "--scale", scale, "--dry-run", "--json")
    code, out, _ = isoloss(*command)
    assert code == 0
    begin = time.process_time()
    assert isoloss(*command)[:2] == (0, out)
    assert time.process_time() - begin < 3, "planning must stay quick, once all is imported and timed"
    plan = json.loads(out)
    assert (plan["study"], plan["scale"]) == ("architectures", scale)
    assert len(plan["runs"]) == len({run["run_id"] for run in plan["runs"]}) > 20
    for run in plan["runs"]:
        assert run.keys() >= PLAN_KEYS
        numbers = [run[key] for key in PLAN_KEYS - {"run_id", "family"}]
        assert all(number > 0 for number in numbers)
        assert run["params"] <= run["params_executed"]
        assert run["params"] < run["params_total"]
        assert run["flops_6nd"] == pytest.approx(6 * run["params_executed"] * run["tokens"])
    assert list(here.iterdir()) == []


def test_the_plan_for_people_shows_every_run_and_its_basis(isoloss, here, tiny, study_text):
    (here / "my.toml").write_text(study_text)
    code, out, _ = isoloss("run", "my.toml", "--dry-run")
    assert code == 0
    assert "tiny-study, scale mini: 4 runs; those that differ only in their seed share a row" in out
    (transformer,), (looped,), (lstm,) = (rows_of(out, name) for name in ("transformer", "looped", "lstm"))
    assert (transformer["run"], transformer["seeds"]) == ("transformer 1x8", "2")
    assert (looped["run"], looped["seeds"], lstm["seeds"]) == ("looped 1x8, 2 loops", "1", "1")
    assert (transformer["executed"], lstm["executed"]) == ("", "")
    assert (looped["executed"], looped["params"]) == ("1.54K", "777")
    assert transformer["learning rate"] == "0.01"
    assert re.search(
        r"^about [\d.]+ s on \d+ workers?, up to \d+MB of RAM for one run; measured now", out, re.M
    )
    assert {path.name for path in here.iterdir()} == {"my.toml"}


def rows_of(out, family):
    """The rows of a family in the table of a plan, by its heads, which take two lines."""
    cells = [[cell.strip() for cell in re.split("[┃│]", line)[1:-1]] for line in out.splitlines()]
    upper, lower, *rows = [row for row in cells if row]
    heads = [" ".join(filter(None, pair)) for pair in zip(upper, lower, strict=True)]
    return [dict(zip(heads, row, strict=True)) for row in rows if row[0].startswith(family)]


def test_flops_have_one_notation_times_a_unit_and_memory_its_place(isoloss, tiny, study_text, here):
    (here / "my.toml").write_text(study_text.replace("tokens = [640, 1280]", "tokens = [640, 1_280_000_000]"))
    code, out, _ = isoloss("run", "my.toml", "--dry-run", "--set", "meant_for=gpu")
    assert code == 0
    for row in rows_of(out, ""):
        assert re.fullmatch(r"[\d.]+e\d+", row["FLOPs, 6ND"])
        assert re.fullmatch(r"[\d.]+e\d+", row["FLOPs, exact"])
        assert re.fullmatch(r"[\d.]+ (s|min|h|days)", row["time a run"])
        assert re.fullmatch(r"[\d.]+[MG]B", row["GPU memory a run"])
    assert re.search(r"^about .* on 1 worker, up to [\d.]+[MG]B of GPU memory for one run; ", out, re.M)
    assert len({row["FLOPs, 6ND"] for row in rows_of(out, "")}) > 1


def test_executed_parameters_are_left_out_where_nothing_loops(isoloss, here):
    assert "executed" not in isoloss("run", "shape", "--dry-run")[1]
    assert "executed" in isoloss("run", "looped", "--dry-run")[1]


def test_a_long_plan_is_cut_and_says_so(isoloss, tiny, study_text, here):
    rates = [round(0.001 * k, 4) for k in range(1, 402)]
    text = study_text.replace("learning_rates = [0.01]", f"learning_rates = {rates}", 1)
    (here / "my.toml").write_text(text)
    code, out, _ = isoloss("run", "my.toml", "--dry-run")
    runs = int(re.search(r"tiny-study, scale mini: (\d+) runs", out)[1].replace(",", ""))
    assert code == 0
    rows = [row for family in ("transformer", "lstm", "looped") for row in rows_of(out, family)]
    assert len(rows) == 300
    shown = sum(int(row["seeds"]) for row in rows)
    assert f"\nand {runs - shown:,} more runs: --json lists all\n" in out
    assert 100 < runs - shown < runs


def test_a_plan_of_one_seed_has_no_shared_rows(isoloss, tiny, study_text, here):
    assert study_text.count("seeds = [0, 1]") == 1
    (here / "my.toml").write_text(study_text.replace("seeds = [0, 1]", "seeds = [0]"))
    code, out, _ = isoloss("run", "my.toml", "--dry-run")
    assert code == 0
    assert "share a row" not in out
    assert [row["seeds"] for row in rows_of(out, "")] == ["1"] * len(rows_of(out, ""))


# The installed command, as a process


def test_stdout_is_the_result_and_stderr_the_talk(tiny, study_text, here):
    (here / "my.toml").write_text(study_text.replace("[0, 1]", "[0]").replace("[640, 1280]", "[640]"))
    command = [sys.executable, "-m", "isoloss.cli", "run", "my.toml", "--json"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert first.returncode == 0, first.stderr
    outcome = json.loads(first.stdout)
    assert (outcome["planned"], outcome["already"], outcome["ended"], outcome["failed"]) == (3, 0, 3, {})
    assert "lstm 1x8, seed 0: finished" in first.stderr
    assert "\x1b" not in first.stdout + first.stderr
    assert (here / "studies" / "tiny-study-mini" / "study.json").is_file()
    assert outcome["folder"] == "studies/tiny-study-mini"


INTERRUPTED_EARLY = """
import signal, sys
module, *sys.argv[1:] = sys.argv[1:]
class Interrupts:
    def find_spec(self, name, *_):
        if name == module:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if name != "torch":  # which loses it in its own imports
                    raise
sys.meta_path.insert(0, Interrupts())
from isoloss.cli import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [["typer", "laws"], ["torch", "run", "architectures", "--dry-run"]],
    ids=lambda value: value[0],
)
def test_a_ctrl_c_while_the_command_is_imported_ends_it_in_words(here, arguments):
    command = [sys.executable, "-c", INTERRUPTED_EARLY, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("isoloss: stopped.")
    assert "Traceback" not in result.stderr


def test_a_finished_study_says_that_there_is_nothing_to_do(isoloss, ran, family_file, here, tmp_path):
    plan = files.read_json(ran.folder / "study.json")
    whole = [run for run in plan["runs"] if not run["settings"]["family"].startswith("my-")]
    folder = tmp_path / "out"
    for run in whole:
        shutil.copytree(ran.folder / "runs" / run["run_id"], folder / "runs" / run["run_id"])
    text = ran.file.read_text()
    (here / "my.toml").write_text(text[: text.index('[[scale.mini.models]]\nfamily = "my-bigram"')])
    code, out, err = isoloss("run", "my.toml", "--out", folder)
    assert (code, err) == (0, "")
    assert out == f"Nothing to do: all 4 runs of {folder} are there.\n"


def test_runs_that_enter_nothing_are_named_by_run_and_report(isoloss, ran, here, tmp_path, undrawn):
    lines = list(outcome_lines(ran.outcome))
    assert lines[1] == "1 run diverged, in no figure, law or finding:"
    assert lines[2] == f"diverged: {ran.ids['my-unsteady']}: loss or gradient not finite at update 5"
    code, out, _ = isoloss("report", ran.folder, "--out", tmp_path / "report")
    assert code == 0
    assert "1 of 6 runs that ended diverged; no figure, law or finding has them." in out
    assert "   my-unsteady, seed 0: loss or gradient not finite at update 5.\n" in out


@pytest.mark.parametrize(
    ("name", "damage"),
    [("record.json", "torn"), ("positions.parquet", "torn"), ("positions.parquet", "lost")],
)
def test_a_damaged_run_is_named_and_not_taken_for_finished(isoloss, ran, here, tmp_path, name, damage):
    folder = shutil.copytree(ran.folder, tmp_path / "out")
    path = next(folder.glob(f"runs/transformer*/{name}"))
    if damage == "torn":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        path.unlink()
    text = ran.file.read_text()
    (here / "my.toml").write_text(text[: text.index('[[scale.mini.models]]\nfamily = "my-bigram"')])
    code, out, err = isoloss("run", "my.toml", "--out", folder)
    assert (code, out) == (2, "")
    assert str(path) in err.replace("\n", "")
    assert "To mend it" in err


def test_hours_follow_the_peak_and_money_the_hours(isoloss, tiny, here, study_text):
    (here / "my.toml").write_text(study_text)
    ask = ["run", "my.toml", "--dry-run", "--gpu", "h100", "--gpu", "a100", "--price-per-gpu-hour", "3"]
    code, out, _ = isoloss(*ask, "--json")
    h100, a100 = json.loads(out)["hours"]
    assert code == 0
    assert (h100["gpu"], a100["gpu"]) == ("h100", "a100")
    assert a100["hours"] == pytest.approx(h100["hours"] * 989 / 312)
    assert a100["money"] == pytest.approx(3 * a100["hours"])
    out = isoloss(*ask)[1]
    hours = r"\d(\.\d|e-\d+) hours on one {}, \d\.\d\d at that price; all runs fit in {} GB\n"
    assert re.search(hours.format("h100", 80), out)
    assert re.search(hours.format("a100", 40), out), (
        "where the smaller one is enough, the larger is not named"
    )


def test_what_does_not_fit_into_an_accelerator_is_said(isoloss, here):
    ask = ["run", "shape", "--scale", "paper", "--dry-run"]
    lines = isoloss(*ask, "--gpu", "rtx4090", "--gpu", "a100", "--gpu", "h200")[1].splitlines()
    small, two, large = (line for line in lines if " hours on one " in line)
    assert re.search(r"rtx4090; transformer \S+ and \d+ other shapes would not fit in 24 GB, of which", small)
    assert re.search(r"a100; .* would not fit in 40 GB, .*; transformer \S+ .*would not fit in 80 GB, ", two)
    assert re.search(r"h200; all runs fit in 141 GB", large)


def test_batches_are_split_before_a_run_is_said_not_to_fit(isoloss, here):
    (line,) = (
        line
        for line in isoloss("run", "looped", "--scale", "gpu", "--dry-run", "--gpu", "v100")[1].splitlines()
        if "hours on one v100" in line
    )
    assert re.search(r"; all runs fit in 16 GB, with batches in up to (2|4|8|16) micro-batches$", line)


def test_the_page_tells_the_cost_of_the_large_scales_as_computed(isoloss):
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text("utf-8")
    (command,) = (line.split()[1:] for line in page.splitlines() if "--dry-run --gpu" in line)
    rows = re.findall(r"^\| (\w+) \| ([\d.,]+) \| ([\d.,]+) \|$", page, re.MULTILINE)
    for column, scale in enumerate(("gpu", "paper"), start=1):
        code, out, _ = isoloss(*(scale if word == "paper" else word for word in command), "--json")
        plan = json.loads(out)
        assert code == 0
        assert f"`{scale}`, {len(plan['runs'])} runs" in page
        computed = {
            cost["gpu"]: f"{cost['hours']:,.{1 if cost['hours'] < 100 else 0}f}" for cost in plan["hours"]
        }
        assert {row[0]: row[column] for row in rows} == computed
    longest = max(run["seconds"] for run in plan["runs"]) / 3600
    assert f"takes {longest:.0f} of the H100 hours" in " ".join(page.split())


def test_status_says_what_is_done_and_why_a_run_failed(isoloss, ran):
    code, out, _ = isoloss("status", ran.folder)
    first, *rest = out.splitlines()
    assert (code, first) == (0, "6 done, 2 failed")
    assert f"failed: {ran.ids['my-broken']}: {ran.broken}: RuntimeError: broken on purpose" in rest
    code, out, _ = isoloss("status", ran.folder, "--json")
    value = json.loads(out)
    assert (value["done"], value["failed"], value["queued"], len(value["runs"])) == (6, 2, 0, 8)


# Corpora


def test_corpora_are_added_listed_and_tokenized(isoloss, here):
    for number in range(4):
        (here / f"{number}.txt").write_text(f"The number {number} is a number like others. " * 40)
    texts = [f"{number}.txt" for number in range(4)]
    code, out, err = isoloss("corpus", "add", "numbers", *texts, "--max-bytes", "1e3")
    assert code == 2
    assert "holds more than 1,000 bytes" in err
    assert "raise --max-bytes" in err
    code, out, err = isoloss("corpus", "add", "numbers", *texts, "--max-bytes", "1e5", "--json")
    assert (code, err) == (0, "")
    added = json.loads(out)
    assert added["train_documents"] + added["validation_documents"] == 4
    code, out, _ = isoloss("corpus", "list", "--json")
    listed = {info["name"]: info for info in json.loads(out)}
    assert listed["numbers"]["corpus_hash"] == added["corpus_hash"]
    assert "starter" in listed
    code, out, _ = isoloss("corpus", "tokenize", "numbers", "--vocabulary", "270", "--json")
    assert (code, json.loads(out)["vocab"]) == (0, 270)
    code, out, _ = isoloss("corpus", "list")
    assert "numbers: " in out
