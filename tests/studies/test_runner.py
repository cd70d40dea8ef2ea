"""A study from end to end: what runs, what is left alone, what fails, what is stopped and goes on."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from isoloss import files
from isoloss.errors import InputError
from isoloss.records import load
from isoloss.records.store import read_failure
from isoloss.studies import plan, runner, spec
from isoloss.studies.engines import local


def events(folder):
    return [event["kind"] for event in files.read_lines(folder / "log.jsonl")]


def records(folder):
    return {path.parent.name: path.read_bytes() for path in folder.glob("runs/*/record.json")}


@pytest.fixture
def copy(ran, tmp_path):
    shutil.copytree(ran.folder, tmp_path / "out")
    return tmp_path / "out"


def test_every_run_ends_whatever_the_others_do(ran):
    assert (ran.outcome.planned, ran.outcome.already, ran.outcome.ended) == (8, 0, 6)
    assert not ran.outcome.stopped
    assert ran.outcome.failed == {
        ran.ids["my-broken"]: "RuntimeError: broken on purpose",
        ran.ids["my-killed"]: "its process ended with SIGKILL; out of memory is the usual cause",
    }
    assert len(records(ran.folder)) == 6


def test_a_family_of_the_user_trains_like_any_other(ran):
    record = next(r for r in load(ran.folder).records if r.family == "my-bigram")
    losses = [evaluation.loss for evaluation in record.evaluations if evaluation.cooled]
    assert record.evaluations[0].loss > losses[0] > losses[1]
    assert record.settings["family_source"]
    # mix: 8 x 8 weights and 8 biases; embedding, head and its 300 biases carry the vocabulary.
    assert (record.counts.params, record.counts.params_embedding) == (72, 2 * 300 * 8 + 300)


def test_a_failure_leaves_its_reason_and_its_traceback(ran):
    failure = files.read_json(ran.folder / "runs" / ran.ids["my-broken"] / "failure.json")
    assert failure["reason"] == "RuntimeError: broken on purpose"
    assert failure["run_id"] == ran.ids["my-broken"]
    assert "my_families.py" in failure["traceback"]


def test_progress_is_told_in_plain_lines(ran):
    assert "\x1b" not in ran.progress
    assert "lstm 1x8, seed 0: finished" in ran.progress
    assert "my-broken, seed 0: FAILED: RuntimeError: broken on purpose" in ran.progress


def test_a_second_call_trains_only_what_is_missing(ran, copy, family_file, tmp_path):
    before = records(copy)
    mine = tmp_path / "my_families.py"
    shutil.copy(family_file, mine)  # the same file, so the same runs; beside it no run is broken
    (tmp_path / "mended").touch()
    outcome = ran.run(copy, [mine])
    assert (outcome.already, outcome.ended, set(outcome.failed)) == (6, 1, {ran.ids["my-killed"]})
    mended = copy / "runs" / ran.ids["my-broken"]
    assert not (mended / "failure.json").exists()
    after = records(copy)
    assert {run_id: after[run_id] for run_id in before} == before, "finished runs are left alone"
    assert after.keys() - before.keys() == {ran.ids["my-broken"]}


def test_a_whole_study_is_left_alone(ran, tmp_path):
    """Nothing to do means that nothing is started, written or tokenized."""
    runs = [run for run in ran.runs if not run.settings.family.startswith("my-")]
    study, text = spec.read(str(ran.file)), io.StringIO()
    shutil.copytree(ran.folder, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")}
    outcome = runner.run(
        study, "mini", study.scale["mini"], runs, tmp_path / "out", console=Console(file=text)
    )
    assert (outcome.planned, outcome.already, outcome.ended, outcome.failed) == (4, 4, 0, {})
    assert text.getvalue() == ""
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")} == before


# Nothing is written on bad input


def attempt(study, changes, folder, home=None):
    scale = spec.scaled(study, "mini", changes)
    runs = plan.plan(scale, gpu=False, home=home)
    return runner.run(study, "mini", scale, runs, folder, home=home, console=Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (["vocabulary=20000"], "vocabulary of 20,000 is too large"),
        (["context=100000", "tokens=[4000000]"], "too few for"),
        (["device=tpu"], "'tpu' is not a device"),
        (["device=cpu:x"], "is not a device"),
    ],
)
def test_what_the_text_or_the_machine_cannot_give_is_refused_before_anything_is_written(
    tiny, study_file, tmp_path, changes, what
):
    path = study_file()
    with pytest.raises(InputError, match=what):
        attempt(spec.read(str(path)), changes, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_folder_of_another_study_is_refused(ran, copy, study_file):
    path = study_file("tiny-study", "another")
    before = (copy / "study.json").read_bytes()
    with pytest.raises(InputError, match="holds the study 'tiny-study', not 'another'"):
        attempt(spec.read(str(path)), [], copy)
    assert (copy / "study.json").read_bytes() == before


def test_a_file_in_place_of_the_folder_is_refused(tiny, study_file, study_text):
    path = study_file()
    with pytest.raises(InputError, match="is not a folder"):
        attempt(spec.read(str(path)), [], path)
    assert path.read_text() == study_text


# Several processes, and signals


def command(study, folder, *more):
    return [sys.executable, "-m", "isoloss.cli", "run", str(study), "--out", str(folder), "--json", *more]


def test_two_runners_on_one_folder_train_every_run_once(tiny, study_file, tmp_path):
    path = study_file()
    both = [
        subprocess.Popen(
            command(path, tmp_path / "out", "--workers", "2"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    results = [json.loads(out) for out, _ in said]
    assert all(result["already"] + result["ended"] == 4 for result in results)
    folders = sorted((tmp_path / "out" / "runs").iterdir())
    assert len(folders) == 4
    for folder in folders:
        assert events(folder) == ["started", "finished"], "trained once, by one of them"
    assert len(load(tmp_path / "out").records) == 4


def test_sigterm_keeps_a_checkpoint_and_the_next_call_goes_on(tiny, study_text, study_file, tmp_path):
    out = tmp_path / "out"
    long = study_text.replace("tokens = [640, 1280]", "tokens = [64_000]").split("[[scale.mini.models]]")
    path = study_file(text=long[0] + "[[scale.mini.models]]" + long[2])  # the LSTM alone, 1,000 steps
    process = subprocess.Popen(
        command(path, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        end = time.monotonic() + 60
        while not list(out.glob("runs/*/log.jsonl")):
            assert time.monotonic() < end
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    (folder,) = (out / "runs").iterdir()
    assert process.returncode == 1
    result = json.loads(said)
    assert (result["stopped"], result["ended"], result["failed"]) == (True, 0, {})
    assert not (folder / "record.json").exists()
    assert not (folder / "failure.json").exists()
    (kept,) = (folder / "checkpoints").iterdir()
    done = files.read_json(kept / "state.json")["done"]
    assert 0 < done < 1000

    outcome = attempt(spec.read(str(path)), [], out)
    assert (outcome.ended, outcome.failed, outcome.stopped) == (1, {}, False)
    (record,) = load(out).records
    assert record.attempt == 2
    assert [(event.kind, event.step) for event in record.events] == [
        ("started", 0),
        ("resumed", done),
        ("finished", record.steps),
    ]
    assert not (folder / "checkpoints").exists()


def test_a_worker_that_dies_while_all_are_told_to_stop_did_not_fail(tmp_path):
    member = SimpleNamespace(folder=tmp_path / "run")
    job = SimpleNamespace(
        task=SimpleNamespace(members=[member]), outcome="", reason="", process=SimpleNamespace(exitcode=-15)
    )
    assert local.verdict(job, stopping=True).outcome == "stopped"
    assert not member.folder.exists()
    dead = local.verdict(job, stopping=False)
    assert (dead.outcome, "SIGTERM" in dead.reason) == ("failed", True)
    assert read_failure(member.folder)["reason"] == dead.reason
