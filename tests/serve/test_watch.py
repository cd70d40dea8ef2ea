"""A study's folder while it changes: what runs, ends, fails, dies, is half-written, or is not there yet."""

import json
import os
import shutil

import numpy as np
import pytest
from halfway import HOSTILE, Halfway, halfway

from isoloss.records import load
from isoloss.serve import watch as watching
from isoloss.serve.curves import POINTS, reduced
from isoloss.serve.watch import Watch


@pytest.fixture
def study(tmp_path):
    with halfway(tmp_path / "study", ended=4) as made:
        yield made


def looked(study):
    watch = Watch(study.folder)
    watch.look()
    return watch


def states(watch):
    return [run.state for run in watch.runs.values()]


def test_every_run_has_its_state_and_what_is_known_of_it(study):
    watch = looked(study)
    waiting, updates = len(study.runs) - 7, study.updates(study.running[0])
    assert states(watch) == ["done"] * 4 + ["waiting"] * waiting + ["failed"] + ["running"] * 2
    done, *_, failed, running, _ = watch.runs.values()
    assert (running.progress.done, running.share) == (150, 150 / updates)
    batch = study.settings(study.running[0]).batch_tokens
    assert running.speed == pytest.approx(9000 / batch / updates)
    assert failed.reason == HOSTILE
    table = load(study.folder).table().filter(run_id=done.run_id, cooled=True).sort("tokens")
    assert done.loss == table["loss"][-1]
    assert watch.trouble == ""


def test_the_curve_of_a_run_goes_on_from_its_checkpoint_by_its_progress(study):
    watch, run_id = looked(study), study.running[0]
    losses = study.losses(run_id)
    curve = watch.runs[run_id].curve
    assert curve.loss[0] == pytest.approx(losses[0])
    before = len(curve.step)
    for done in range(160, 302, 20):
        study.go_on(run_id, done)
        watch.look()
    curve = watch.runs[run_id].curve
    assert before < len(curve.step) <= POINTS
    study.save(run_id, 300)
    watch.look()
    assert min(watch.runs[run_id].curve.loss) < min(losses[:150])


def test_a_curve_is_the_trunk_and_the_branch_it_is_on():
    branch = np.array([0, 0, 1, 1, 0, 2, 2.0])
    step = np.array([1, 2, 3, 4, 3, 4, 5.0])
    loss = np.array([9, 8, 1, 1, 7, 5, 4.0])
    last = reduced(branch, step, loss)
    assert (last.step, last.loss) == ((1, 2, 3, 4, 5), (9, 8, 7, 5, 4))
    first = reduced(branch[:4], step[:4], loss[:4])
    assert first.loss == (9, 8, 1, 1)
    unknown = np.where(np.arange(7) == 6, np.nan, loss)
    assert reduced(branch, step, unknown).loss == (9, 8, 7, 5)
    assert reduced(branch, step, loss * np.nan).loss == ()


def test_a_study_that_grows_has_new_runs_and_keeps_what_it_knew(study):
    study.write_plan(8)
    watch = looked(study)
    known = watch.runs[study.runs[0]]
    assert len(watch.runs) == 8
    recorded = watch.recorded
    study.write_plan()
    study.end(study.runs[20])
    watch.look()
    assert len(watch.runs) == len(study.runs)
    assert watch.runs[known.run_id] == known
    assert watch.runs[study.runs[20]].state == "done"
    assert watch.recorded != recorded


def test_records_alone_make_figures_anew(study):
    watch = looked(study)
    recorded = watch.recorded
    study.go_on(study.running[0], 200)
    watch.look()
    assert watch.recorded == recorded
    shutil.rmtree(study.folder / "runs" / study.runs[0])
    watch.look()
    assert watch.recorded != recorded
    assert watch.runs[study.runs[0]].state == "waiting"


def test_members_of_a_cohort_have_the_progress_of_the_first_and_curves_of_their_own(study):
    lead, member = study.running
    place = study.folder / "runs" / member
    shutil.rmtree(place / "checkpoints")
    (place / "progress.json").unlink()
    watch = looked(study)
    assert (watch.runs[member].state, watch.runs[member].progress) == ("running", None)
    study.save(lead, 145, member)
    watch.look()
    assert watch.runs[member].progress == watch.runs[lead].progress
    last = study.losses(member)[144]
    assert watch.runs[member].curve.loss[-1] == pytest.approx(last, abs=0.3)
    assert watch.runs[member].curve != watch.runs[lead].curve


def test_when_its_process_dies_a_run_waits_and_keeps_its_curve(study):
    watch = looked(study)
    curve = watch.runs[study.running[0]].curve
    study.die()
    watch.look()
    assert states(watch)[-2:] == ["waiting", "waiting"]
    assert watch.runs[study.running[0]].curve == curve
    study.begin(study.running[0], 170)
    watch.look()
    assert states(watch)[-2:] == ["running", "waiting"]


def test_a_look_at_a_thousand_reads_some_records_at_a_time(study, monkeypatch):
    monkeypatch.setattr(watching, "READ_AT_ONCE", 3)
    watch = looked(study)
    assert sum(run.loss is not None for run in watch.of_state("done")) == 3
    assert len(watch.of_state("done")) == 4
    watch.look()
    assert sum(run.loss is not None for run in watch.of_state("done")) == 4


def test_a_record_is_read_once(study, monkeypatch):
    watch = looked(study)
    monkeypatch.setattr(watching, "ended", lambda folder: pytest.fail("read again"))
    watch.look()
    assert len(watch.of_state("done")) == 4
    shutil.copytree(study.source / "runs" / study.runs[9], study.folder / "runs" / study.runs[9])
    with pytest.raises(pytest.fail.Exception):
        watch.look()


@pytest.mark.parametrize("name", ["record.json", "curve.parquet"])
def test_what_is_half_written_is_a_failure_with_its_reason_until_it_is_whole(study, name):
    place = study.folder / "runs" / study.runs[0] / name
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    watch = looked(study)
    run = watch.runs[study.runs[0]]
    assert run.state == "failed"
    assert name in run.reason
    place.write_bytes(whole)
    watch.look()
    assert watch.runs[study.runs[0]].state == "done"


def test_a_plan_that_is_half_written_changes_nothing_that_was_known(study):
    watch = looked(study)
    before = dict(watch.runs)
    path = study.folder / "study.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    watch.look()
    assert "is not JSON" in watch.trouble
    assert watch.runs == before
    path.write_bytes(whole)
    watch.look()
    assert watch.trouble == ""
    shutil.rmtree(study.folder / "runs")
    os.replace(path, path.with_name("elsewhere"))
    watch.look()
    assert "study.json" in watch.trouble
    assert watch.runs == before


def test_a_study_that_is_not_planned_yet_is_waited_for(tmp_path):
    watch = Watch(tmp_path / "study")
    watch.look()
    assert (watch.runs, watch.trouble) == ({}, "")
    made = Halfway(tmp_path / "study", ended=1)
    watch.look()
    assert len(watch.runs) == len(made.runs)
    assert len(watch.of_state("done")) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: run.update(run_id="../../etc"), "usable name"),
        (lambda run: run["settings"].pop("tokens"), "no tokens"),
        (lambda run: run["settings"].update(tokens=["many"]), "no tokens"),
    ],
)
def test_a_plan_that_cannot_be_is_said(study, change, words):
    plan = json.loads((study.folder / "study.json").read_text("utf-8"))
    change(plan["runs"][5])
    (study.folder / "study.json").write_text(json.dumps(plan), "utf-8")
    watch = looked(study)
    assert words in watch.trouble
    assert watch.runs == {}


@pytest.mark.parametrize(
    "progress", ["{}", "[1]", "{", '{"done": "x"}', '{"run_id": "a", "label": "b", "done": null}']
)
def test_progress_that_makes_no_sense_decides_nothing(study, progress):
    (study.folder / "runs" / study.running[0] / "progress.json").write_text(progress, "utf-8")
    run = looked(study).runs[study.running[0]]
    assert (run.state, run.progress, run.share, run.speed) == ("running", None, 0.0, 0.0)


def test_a_checkpoint_that_is_damaged_is_passed_over_for_the_older_one(study):
    run_id = study.running[0]
    study.save(run_id, 148)
    newest = study.folder / "runs" / run_id / "checkpoints" / "update-000000148" / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:100])
    steps = looked(study).runs[run_id].curve.step
    assert len(steps) > 20
