"""A study by name or file, costed before it starts: what it would take, where, and what speaks against it."""

import re
from types import SimpleNamespace

import pytest
import torch

from isoloss.errors import InputError
from isoloss.studies import launch, runner
from isoloss.studies.launch import dry_run


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(runner, "cores", lambda: 6)
    monkeypatch.setattr(launch.os, "getloadavg", lambda: (0.0, 0.0, 0.0))


@pytest.fixture
def path(tiny, study_file):
    return str(study_file())


def test_a_dry_run_writes_nothing_and_names_its_basis(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    cost = dry_run(path, "mini", [])
    assert (cost.study, cost.scale, len(cost.runs), cost.workers) == ("tiny-study", "mini", 4, 6)
    assert cost.basis.startswith("measured now: ")
    assert cost.warnings == []
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"engine": "slurm", "engine_settings": ["partitoin=gpu"]}, "partitoin"),
        ({"engine": "lsf"}, "there is no engine 'lsf'"),
        ({"engine_settings": ["cpus=2"]}, "the local engine has no settings"),
        ({"out": "s3://bucket/study"}, "is an address, not a folder"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would_refuse(path, asked, why):
    with pytest.raises(InputError, match=why):
        dry_run(path, "mini", [], **asked)


def test_a_dry_run_of_a_cluster_counts_a_worker_a_run_and_needs_no_cluster(path, monkeypatch):
    monkeypatch.setattr(launch.os, "getloadavg", lambda: (99.0, 99.0, 99.0))
    cost = dry_run(path, "mini", [], engine="slurm", engine_settings=["hours=8"])
    assert (cost.workers, cost.warnings) == (len(cost.runs), []), "how busy this machine is says nothing"


def test_a_folder_that_cannot_be_made_is_said_before_the_text_is_tokenized(path, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner.files, "try_folder", full)
    monkeypatch.setattr(runner.library, "tokenize", lambda *_, **__: pytest.fail("tokenized"))
    with pytest.raises(InputError, match=r"cannot be made: No space left.*\n.*--out"):
        launch.launch(path, out=tmp_path / "out")


def test_a_scale_meant_for_a_gpu_is_costed_for_one_that_is_not_here(path):
    here, for_gpu = dry_run(path, "mini", []), dry_run(path, "mini", ['meant_for="gpu"'])
    assert for_gpu.basis.startswith("assumed: ")
    assert for_gpu.workers == 1
    assert [run.run_id for run in for_gpu.runs] == [run.run_id for run in here.runs], "costs are no settings"
    assert [run.seconds for run in for_gpu.runs] != [run.seconds for run in here.runs]


def test_every_gpu_that_is_here_is_a_worker(path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert dry_run(path, "mini", []).workers == 4
    assert dry_run(path, "mini", ["device=cpu"]).workers == 6, "unless the study asks for the processor"


def test_how_often_the_text_would_be_read_is_said_before_it_is_paid_for(path, monkeypatch):
    (warning,) = dry_run(path, "mini", ["tokens=[640_000]"]).warnings
    words = r"the longest run takes 640K tokens, and 'tiny' has about (\S+)K: "
    words += r"the text would be read about (\S+) times; "
    thousands, times = map(float, re.match(words, warning).groups())
    assert 5 < thousands < 43, "43 KB; it is counted where another test has tokenized it"
    assert times == pytest.approx(640 / thousands, rel=0.03)
    assert "--set corpus=NAME" in warning
    monkeypatch.setattr(launch, "training_tokens", lambda scale: 1_000)
    (warning,) = dry_run(path, "mini", ["tokens=[1280]"]).warnings
    assert "'tiny' has about 1K: the text would be read about 1.3 times; " in warning


def test_control_a_text_that_is_long_enough_is_no_warning(path, monkeypatch):
    monkeypatch.setattr(launch, "training_tokens", lambda scale: 1_280)
    assert dry_run(path, "mini", ["tokens=[1280]"]).warnings == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("tokens=[641]", "is not a multiple of the batch"),
        ("corpus=nowhere", "there is no corpus 'nowhere'"),
        ("tokenizer=missing.json", "there is no such file"),
    ],
)
def test_a_plan_that_cannot_be_names_the_study(path, change, what):
    with pytest.raises(InputError) as caught:
        dry_run(path, "mini", [change])
    assert what in caught.value.what
    assert caught.value.where.startswith(f"study {path}")
    assert caught.value.mend


def test_a_family_of_the_user_is_known_before_the_study_is_read(tiny, study_file, study_text, family_file):
    text = study_text + "\n[[scale.mini.models]]\nfamily = 'my-unheard'\nshapes = [{ d_model = 8 }]\n"
    path = str(study_file(text=text))
    with pytest.raises(InputError, match="there is no family 'my-unheard'"):
        dry_run(path, "mini", [])
    with pytest.raises(InputError, match="no such file"):
        dry_run(path, "mini", [], [family_file.with_name("missing.py")])


def test_a_launch_goes_to_its_own_folder_with_its_own_options(path, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(runner, "run", lambda *a, **o: given.update(o, folder=a[4]))
    monkeypatch.chdir(tmp_path)
    launch.launch(path, changes=["micro_batches=2"], checkpoint_seconds=1.5, keep_weights=True)
    assert str(given["folder"]) == "studies/tiny-study-mini"
    execution = given["execution"]
    assert (execution.micro_batches, execution.checkpoint_seconds, execution.keep_weights) == (2, 1.5, True)
    launch.launch(path, out=tmp_path / "mine")
    assert given["folder"] == tmp_path / "mine"
    assert (given["execution"].device, given["execution"].keep_weights) == ("auto", False)
    assert not any(tmp_path.glob("studies"))


@pytest.mark.parametrize(("load", "said"), [(0.2, []), (6.8, ["count on 4.4 times as long, 7.3 min"])])
def test_a_busy_machine_is_said_beside_the_estimate(monkeypatch, load, said):
    monkeypatch.setattr(launch.os, "getloadavg", lambda: (load, 9.0, 0.0))
    monkeypatch.setattr(launch.runner, "cores", lambda: 2)
    runs = [SimpleNamespace(seconds=seconds) for seconds in (100.0, 60.0, 40.0)]
    assert [line.partition(": ")[2] for line in launch.load_warnings(runs, 2)] == said
