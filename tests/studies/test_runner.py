"""A study from end to end: what runs, what is left alone, what fails, what is stopped and goes on."""

import io
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from appended import read_lines
from rich.console import Console
from train_planned import train

from isoloss import files
from isoloss.errors import InputError
from isoloss.records import load
from isoloss.records.store import read_failure
from isoloss.studies import plan, runner, spec
from isoloss.studies.engines import local
from isoloss.studies.engines.messages import Ended, Engine, Held
from isoloss.studies.status import holder
from isoloss.training.settings import RunSettings


def events(folder):
    return [event["kind"] for event in read_lines(folder / "log.jsonl")]


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
        ran.ids["my-broken"]: f"{ran.broken}: RuntimeError: broken on purpose",
        ran.ids["my-killed"]: "its process ended with SIGKILL; out of memory is the usual cause",
    }
    assert len(records(ran.folder)) == 6
    assert ran.outcome.diverged == {ran.ids["my-unsteady"]: "loss or gradient not finite at update 5"}


def test_a_family_of_the_user_trains_like_any_other(ran):
    record = next(r for r in load(ran.folder).records if r.family == "my-bigram")
    losses = [evaluation.loss for evaluation in record.evaluations if evaluation.cooled]
    assert record.evaluations[0].loss > losses[0] > losses[1]
    assert record.settings["family_source"]
    # mix: 8 x 8 weights and 8 biases; embedding, head and its 300 biases carry the vocabulary.
    assert (record.counts.params, record.counts.params_embedding) == (72, 2 * 300 * 8 + 300)


def test_a_failure_leaves_its_reason_and_its_traceback(ran):
    failure = files.read_json(ran.folder / "runs" / ran.ids["my-broken"] / "failure.json")
    assert failure["reason"] == f"{ran.broken}: RuntimeError: broken on purpose"
    assert failure["run_id"] == ran.ids["my-broken"]
    assert "my_families.py" in failure["traceback"]


def test_progress_is_told_in_plain_lines(ran):
    assert "\x1b" not in ran.progress
    assert "lstm 1x8, seed 0: finished" in ran.progress
    assert f"my-broken, seed 0: FAILED: {ran.broken}: RuntimeError: broken on purpose" in ran.progress


def test_a_second_call_trains_only_what_is_missing(ran, copy, family_file, tmp_path):
    before = records(copy)
    mine = tmp_path / "my_families.py"
    shutil.copy(family_file, mine)  # the same file, so the same runs; beside it no run is broken
    (tmp_path / "mended").touch()
    outcome = ran.run(copy, [mine])
    assert outcome.diverged == ran.outcome.diverged, "named again: they still enter nothing"
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
    outcome = train(study, study.scale["mini"], runs, tmp_path / "out", console=Console(file=text))
    assert (outcome.planned, outcome.already, outcome.ended, outcome.failed) == (4, 4, 0, {})
    others = sum("my-" in place.parent.name for place in (tmp_path / "out").glob("runs/*/record.json"))
    assert others
    (sentence,) = " ".join(text.getvalue().split()).split(": kept, but no part of this plan")[:-1]
    assert sentence.startswith(f"{others} finished runs of other settings in ")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")} == before


def attempt_with(engine, ran, folder, runs=None):
    study, stream = spec.read(str(ran.file)), io.StringIO()
    engine, console = Engine(False, engine), Console(file=stream, width=200)
    outcome = train(study, study.scale["mini"], runs or ran.runs, folder, engine, console=console)
    return outcome, stream.getvalue()


def test_what_is_missing_is_found_without_comparing_settings(ran, copy, monkeypatch):
    """Which would take the square of the number of runs."""
    compared = []
    monkeypatch.setattr(RunSettings, "__eq__", lambda one, other: compared.append(1) or one is other)
    outcome, _ = attempt_with(lambda tasks, _: [Ended(task, "stopped") for task in tasks], ran, copy)
    assert (outcome.already, outcome.ended) == (6, 0)
    assert compared == []


def test_who_holds_a_run_is_named_by_its_number(ran, tmp_path, monkeypatch):
    def held(tasks, _):
        (tasks[0].lead.folder).mkdir(parents=True)
        with files.claim(tasks[0].lead.folder / "claim.lock"):
            yield Held(tasks[0])
        yield from (Ended(task, "stopped") for task in tasks)

    number = f"process {os.getpid()} of this machine" if Path("/proc/locks").exists() else "another process"
    _, printed = attempt_with(held, ran, tmp_path / "one", ran.runs[:1])
    assert f"{number} trains it; waiting for it to end" in printed
    monkeypatch.setattr(runner, "holder", lambda folder: None)
    _, printed = attempt_with(held, ran, tmp_path / "two", ran.runs[:1])
    assert "another process trains it; waiting for it to end" in printed
    assert holder(tmp_path / "two") is None


# Nothing is written on bad input


def attempt(study, changes, folder):
    scale = spec.scale_of(study, "mini", changes)
    runs = plan.plan(scale, gpu=False)
    return train(study, scale, runs, folder)


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


def test_a_worker_that_dies_while_all_are_told_to_stop_did_not_fail(tmp_path):
    member = SimpleNamespace(folder=tmp_path / "run")
    task = SimpleNamespace(members=[member])
    worker = SimpleNamespace(outcome="", reason="", process=SimpleNamespace(exitcode=-15))
    assert local.verdict(worker, task, stopping=True).outcome == "stopped"
    assert not member.folder.exists()
    dead = local.verdict(worker, task, stopping=False)
    assert (dead.outcome, "SIGTERM" in dead.reason) == ("failed", True)
    assert read_failure(member.folder)["reason"] == dead.reason
