"""A family of the user's own, from the page that documents it to a study's records and its report."""

import io
import json
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import isoloss
from isoloss import files
from isoloss.analysis.study import analyse
from isoloss.errors import InputError, RunError
from isoloss.models import registry
from isoloss.report import tables
from isoloss.report.sections import sections
from isoloss.studies import launch, own_families
from isoloss.studies.engines import worker
from isoloss.studies.engines.messages import Ended, Engine
from isoloss.studies.launch import dry_run

GLR = """
[[scale.mini.models]]
family = "glr"
shapes = [{ n_layer = 1, d_model = 8 }, { n_layer = 2, d_model = 12 }]
learning_rates = [0.01]
"""


@pytest.fixture(autouse=True)
def here(tiny, tmp_path, monkeypatch, study_text):
    """Where we stand: a folder with vs.toml (Transformer, LSTM, glr). Its families are forgotten after."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_families", dict(registry._families))
    two = study_text[: study_text.index('[[scale.mini.models]]\nfamily = "looped"')]
    (tmp_path / "vs.toml").write_text(
        two.replace("context = 16\nbatch_size = 4", "context = 32\nbatch_size = 2") + GLR
    )
    return tmp_path


def command(*arguments):
    words = [sys.executable, "-m", "isoloss.cli", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


def test_the_documented_family_is_as_short_as_it_says(glr_file):
    text = glr_file.read_text()
    assert text.startswith("# glr.py")
    assert len(text.splitlines()) <= 60


def test_the_documented_study_takes_it(glr_file, here):
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    (here / "page.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], "utf-8")
    planned = dry_run("page.toml", "mini", ["corpus=tiny", "vocabulary=300"], ["glr.py"])
    assert {run.settings.family for run in planned.runs} == {"transformer", "glr"}
    assert f"# {len(planned.runs)} runs" in page
    assert planned.families["glr"]["causal"] == "checked"


def test_it_trains_from_python_beside_a_transformer_and_an_lstm(glr_file, here):
    study = isoloss.run("vs.toml", family_files=["glr.py"], workers=2)
    table = study.table()
    assert set(table["status"]) == {"finished"}
    assert set(table["family"]) == {"transformer", "lstm", "glr"}
    for record in study.records:
        losses = [evaluation.loss for evaluation in record.evaluations]
        assert losses[-1] < losses[0], record.label
    assert set(study.sliding()["family"]) == {"transformer", "lstm", "glr"}
    glr = study.plan["families"]["glr"]
    assert (glr["file"], glr["causal"]) == ("glr.py", "checked")
    assert glr["shapes"] == "2 of 2 planned checked"
    (families,) = tables.family_tables(study)
    assert "later tokens do not leak: passed" in str(families)
    arguments = shlex.split(tables.command(study.plan))
    assert arguments == shlex.split("isoloss run vs.toml --scale mini --family glr.py")
    ended = command(*arguments[1:])
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("Nothing to do"), "it makes the same runs"
    assert_the_report_has_it(here / "studies" / "tiny-study-mini")


def assert_the_report_has_it(folder):
    ended = command("report", str(folder), "--out", "page")
    assert ended.returncode == 0, ended.stderr
    page = Path("page", "index.html").read_text("utf-8")
    for pair in ("Transformer minus glr model", "LSTM minus glr model"):
        assert pair in page
    figures = Path("page", "figures")
    assert "glr" in set(pl.read_csv(figures / "loss-by-params.csv")["curve"])
    for pair in ("transformer-glr", "lstm-glr"):
        assert "glr" in set(pl.read_csv(figures / f"loss-by-position-{pair}.csv")["curve"])
        assert pl.read_csv(figures / f"gap-by-tokens-{pair}.csv")["tokens"].to_list() == [640, 1280]


def test_a_forgotten_file_is_named_in_the_error(glr_file):
    with pytest.raises(InputError, match="there is no family 'glr'") as caught:
        isoloss.run("vs.toml")
    assert "family_files" in caught.value.mend


def test_the_dry_run_says_what_was_checked(glr_file):
    ended = command("run", "vs.toml", "--family", "glr.py", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    begin = "glr: file: glr.py; logits are finite and of the right shape: passed; later tokens do not"
    assert f"{begin} leak: passed; " in ended.stdout
    result = json.loads(command("run", "vs.toml", "--family", "glr.py", "--dry-run", "--json").stdout)
    assert result["families"]["glr"]["causal"] == "checked"
    assert len(result["runs"]) == 5


@pytest.mark.parametrize("dry", [["--dry-run"], []])
@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        (
            "self.embedding(x_BT)",
            "self.embedding(x_BT.roll(-1, 1))",
            "forward(self, x_BT)",
            "it sees what it",
        ),
        ("chunk(3, dim=-1)", "chunk(2, dim=-1)", "chunk(2", "ValueError: not enough values to unpack"),
    ],
    ids=["peeks", "raises"],
)
def test_a_fault_is_one_message_with_the_users_line_and_nothing_is_written(
    glr_file, here, dry, old, new, line, what
):
    text = glr_file.read_text()
    assert text.count(old) == 1
    glr_file.write_text(text.replace(old, new))
    number = next(n for n, row in enumerate(glr_file.read_text().splitlines(), 1) if line in row)
    ended = command("run", "vs.toml", "--family", "glr.py", *dry)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"glr.py, line {number}: " in ended.stderr
    assert what in ended.stderr
    assert len(ended.stderr.splitlines()) == 2, "the fault, and how to mend it"
    assert not (here / "studies").exists()


def test_an_error_while_training_is_one_line_with_the_users(glr_file):
    """What comes late passes the check: here at the fourth update, in the worker."""
    late = "self.updates = getattr(self, 'updates', 0) + torch.is_grad_enabled()"
    late += "\n        if self.updates == 4:\n            raise ValueError('late')"
    text = glr_file.read_text().replace(
        "h_BTD = self.embedding(x_BT)", f"{late}\n        h_BTD = self.embedding(x_BT)"
    )
    glr_file.write_text(text)
    number = next(n for n, row in enumerate(text.splitlines(), 1) if "raise ValueError" in row)
    with pytest.raises(
        RunError, match=f"not all runs ended: glr.py, line {number}: ValueError: late\n"
    ) as caught:
        isoloss.run("vs.toml", family_files=["glr.py"], workers=2)
    assert "Traceback" not in str(caught.value)


def test_every_setting_of_a_shape_that_is_no_number_is_checked(glr_file, here):
    """A switch that lets later tokens in is found, though the smallest shape has it off."""
    text = glr_file.read_text()
    text = text.replace("class GLRShape(Shape):\n", "class GLRShape(Shape):\n    ahead: bool = False\n")
    text = text.replace("self.layers =", "self.ahead = shape.ahead\n        self.layers =")
    text = text.replace("self.embedding(x_BT)\n", "self.embedding(x_BT.flip(1) if self.ahead else x_BT)\n")
    glr_file.write_text(text)
    study = (here / "vs.toml").read_text()
    (here / "ahead.toml").write_text(study.replace("d_model = 12 }", "d_model = 12, ahead = true }"))
    assert isoloss.run("vs.toml", family_files=["glr.py"], workers=2).plan["families"]["glr"]
    with pytest.raises(InputError, match="it sees what it is to predict"):
        isoloss.run("ahead.toml", family_files=["glr.py"], out="ahead")
    assert not (here / "ahead").exists()


SCALE = """
name = "other"
[scale.mini]
corpus = "tiny"
vocabulary = 300
context = 32
batch_size = 2
tokens = [640, 1280]
evaluation = { windows = 4, final_windows = 8, trace_windows = 2, targets = 64, trace_targets = 64 }
"""
TRANSFORMERS = """
[[scale.mini.models]]
family = "transformer"
shapes = [{ n_layer = 1, d_model = 8, n_head = 1 }, { n_layer = 2, d_model = 12, n_head = 1 }]
"""
SHORT = """
[[scale.mini.models]]
family = "glr"
context = 8
shapes = [{ n_layer = 1, d_model = 8 }]
learning_rates = [0.01]
"""
LOOPS = """
[[scale.mini.models]]
family = "looped"
shape = { n_layer = 1, n_head = 1, d_model = 8 }
shapes = [{ recurrence = 1 }, { recurrence = 2 }]
"""
ONE_SIZE = """
[[scale.mini.models]]
family = "transformer"
params = 2304
shape = { n_head = 1 }
shapes = [{ n_layer = 1 }, { n_layer = 2 }, { n_layer = 3 }]
"""


@pytest.fixture
def train(glr_file, monkeypatch):
    """Train a study with glr in this process, which saves each worker's start, and analyse it."""

    def here(tasks, stops):
        for task in tasks:
            with ExitStack() as claims:
                yield Ended(task, *worker.train_claimed(task, claims, lambda _: None, lambda: False))

    def study(*models):
        Path("other.toml").write_text("".join([SCALE, *models]))
        outcome = launch.launch("other.toml", family_files=["glr.py"], console=Console(file=io.StringIO()))
        assert outcome.ended == outcome.planned
        return analyse(isoloss.load(outcome.folder))

    monkeypatch.setattr(launch, "engine_of", lambda *_: Engine(False, here))
    return study


STUDIES = {
    "context": (TRANSFORMERS, GLR, SHORT),
    "looped": (LOOPS, GLR),
    "shape": (ONE_SIZE, GLR),
}
"""Models of a study like the shipped one of that name; one like ``architectures`` is above."""


@pytest.mark.parametrize("question", STUDIES)
def test_it_goes_through_each_other_study(train, question):
    analysis = train(*STUDIES[question])
    chapters = {section.anchor: section for section in sections(analysis)}
    assert {"gap", "params", "position", question} <= chapters.keys()
    assert "minus glr model" in chapters["gap"].tables[0].caption
    assert "glr" in set(chapters["params"].figures[0].table["curve"])
    assert "glr" in set(chapters["position"].figures[0].table["curve"])
    if question == "context":
        sliding = analysis.study.sliding().filter(family="glr")
        reach = sliding.group_by("run_id").agg(pl.col("last").max())["last"]
        assert sorted(reach) == [8, 32, 32], "losses at every place, of the short context too"
        assert set(sliding["cooled"]) == {True, False}, "and along training"
        assert "glr, context 8" in set(chapters["params"].figures[0].table["curve"])
        own = chapters["context-glr"]
        assert own.title == "How glr models use context"
        drawn = {figure.name: figure for figure in own.figures}
        assert {"context-laws-glr", "context-sizes-glr"} <= drawn.keys()
        assert all(figure.title.startswith("Glr model: ") for figure in own.figures)
        glr = analysis.study.table().filter(family="glr", context=32)
        assert set(drawn["context-laws-glr"].table["params"]) == set(glr["params"])


def test_the_best_of_its_rates_enters_the_figures(train):
    analysis = train(TRANSFORMERS, GLR.replace("[0.01]", "[0.0001, 0.01]"))
    runs = analysis.study.table().filter(pl.col("family") == "glr", pl.col("cooled"), tokens=1280)
    best = runs.group_by("params").agg(pl.col("loss").min()).sort("params")
    assert len(runs) == 2 * len(best) == 4
    (params,) = (section for section in sections(analysis) if section.anchor == "params")
    drawn = params.figures[0].table.filter(curve="glr").sort("params")
    assert drawn.select("params", "loss").rows() == best.rows()


@pytest.fixture
def peeks_in_its_second_layer(glr_file):
    old = "        for layer in self.layers:\n"
    new = "        for n, layer in enumerate(self.layers):\n            h_BTD = h_BTD.roll(-n, 1)\n"
    text = glr_file.read_text()
    assert text.count(old) == 1
    glr_file.write_text(text.replace(old, new))


def test_every_planned_shape_is_checked(peeks_in_its_second_layer):
    with pytest.raises(InputError, match=r"it sees what it is to predict \(glr 2x12\)"):
        dry_run("vs.toml", "mini", [], ["glr.py"])


def test_shapes_too_large_to_check_are_named(peeks_in_its_second_layer, monkeypatch):
    monkeypatch.setattr(own_families, "MOST_PARAMS", 1000)
    glr = dry_run("vs.toml", "mini", [], ["glr.py"]).families["glr"]
    assert glr["shapes"] == "1 of 2 planned checked, not glr 2x12"


def test_a_family_without_a_size_is_refused(glr_file):
    text = glr_file.read_text()
    glr_file.write_text(text.replace("for _ in range(shape.n_layer)", "for _ in range(0)"))
    with pytest.raises(InputError, match=r"glr 1x8 has no parameters but .* N = 0") as caught:
        dry_run("vs.toml", "mini", [], ["glr.py"])
    assert caught.value.where == "glr.py"


@pytest.mark.parametrize("change", ["recipe.name=muon", "recipe.version=2", "recipe.lr=0.1"])
def test_a_recipe_that_there_is_not_is_refused_with_its_keys(glr_file, change):
    with pytest.raises(InputError, match=change.partition("=")[0]) as caught:
        isoloss.run("vs.toml", family_files=["glr.py"], changes=[change])
    assert "the keys of recipe are name, version, warmup, cooldown, beta1" in caught.value.mend


def test_a_plan_of_before_names_its_study_and_says_not_checked(ran):
    study = isoloss.load(ran.folder)
    assert not {"arguments", "families"} & files.read_json(ran.folder / "study.json").keys()
    assert tables.command(study.plan) == "isoloss run tiny-study --scale mini"
    (families,) = tables.family_tables(study)
    assert str(families).count("not checked") == 4
