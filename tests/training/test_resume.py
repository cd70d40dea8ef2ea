"""A run that was cut anywhere equals the run that was not, to the bit; and the test can tell."""

from dataclasses import replace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isoloss import files
from isoloss.training import checkpoint, loop, setup
from isoloss.training.settings import Execution

FAMILIES = ["transformer", "lstm", "looped"]
MASKS = {"dropout": 0.2}  # so that training draws random numbers, which a resume must not lose


def outcome(task):
    """What a run measured, without the clock: curve, positions, evaluations."""
    folder = task.lead.folder
    record = files.read_json(folder / "record.json")
    return (
        pl.read_parquet(folder / "curve.parquet"),
        pl.read_parquet(folder / "positions.parquet"),
        record["evaluations"],
    )


def same(a, b):
    return a[0].equals(b[0]) and a[1].equals(b[1]) and a[2] == b[2]


def train_with_cuts(task, cuts):
    """Stop after each of these numbers of updates of an attempt, as SIGTERM would, then run to the end."""
    for cut in cuts:
        made = iter(range(1, 10_000))
        assert not loop.train(task, should_stop=lambda made=made, cut=cut: next(made) >= cut)
    assert loop.train(task)


def train_with_kills(task, kills):
    """End each attempt after so many updates without any farewell; checkpoints are every 7 updates."""

    class Killed(Exception):
        pass

    for kill in kills:
        made = iter(range(1, 10_000))

        def report(_, made=made, kill=kill):
            if next(made) >= kill:
                raise Killed

        with pytest.raises(Killed):
            loop.train(task, report=report)
    assert loop.train(task)


@pytest.mark.parametrize("family", FAMILIES)
def test_cut_anywhere_equals_uninterrupted(make_task, family):
    whole = make_task(family, shape=MASKS, folder="whole")
    assert loop.train(whole)
    cut = make_task(family, shape=MASKS, folder="cut")
    # 1: at the start; 15: on the trunk; 2, 3: in a branch; 9: across a branch's end
    train_with_cuts(cut, [1, 15, 2, 3, 9])
    assert same(outcome(whole), outcome(cut))
    assert files.read_json(cut.lead.folder / "record.json")["attempt"] == 6


@pytest.mark.parametrize("family", FAMILIES)
def test_killed_between_checkpoints_equals_uninterrupted(make_task, family):
    whole = make_task(family, shape=MASKS, folder="whole")
    assert loop.train(whole)
    killed = make_task(family, shape=MASKS, folder="killed", execution=Execution(checkpoint_steps=7))
    train_with_kills(killed, [5, 17, 11, 13])
    assert same(outcome(whole), outcome(killed))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dropped", ["generator", "optimizer"])
def test_control_a_resume_that_drops_state_is_noticed(make_task, family, dropped, monkeypatch):
    whole = make_task(family, shape=MASKS, folder="whole")
    assert loop.train(whole)
    put_back = checkpoint.put_back

    def forgetful(state, saved):
        fresh = checkpoint.tensors(state)
        put_back(state, saved | {name: t for name, t in fresh.items() if name.startswith(dropped)})

    monkeypatch.setattr(checkpoint, "put_back", forgetful)
    cut = make_task(family, shape=MASKS, folder="cut")
    train_with_cuts(cut, [15])
    assert not same(outcome(whole), outcome(cut))


def test_carried_state_survives_a_resume(make_task):
    whole = make_task("lstm", shape={"carry": True}, folder="whole")
    assert loop.train(whole)
    cut = make_task("lstm", shape={"carry": True}, folder="cut")
    train_with_cuts(cut, [15, 4])
    assert same(outcome(whole), outcome(cut))


def test_a_damaged_checkpoint_is_passed_over_for_the_older_one(make_task):
    whole = make_task("transformer", folder="whole")
    assert loop.train(whole)
    task = make_task("transformer", folder="damaged", execution=Execution(checkpoint_steps=5))
    made = iter(range(1, 10_000))
    assert not loop.train(task, should_stop=lambda: next(made) >= 15)
    kept = sorted((task.lead.folder / "checkpoints").iterdir())
    assert [place.name for place in kept] == ["update-000000010", "update-000000015"]
    damaged = kept[-1] / "state.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert loop.train(task)
    assert same(outcome(whole), outcome(task))


def test_checkpoints_of_another_cohort_do_not_push_out_new_ones(make_task):
    """They count more updates than a fresh start does, and only the newest two are kept."""
    often = Execution(checkpoint_steps=5)
    both = make_task("transformer", seeds=(0, 1), folder="one", execution=often)
    made = iter(range(1, 10_000))
    assert not loop.train(both, should_stop=lambda: next(made) >= 25)
    alone = replace(both, members=both.members[:1])
    made_alone = iter(range(1, 10_000))
    assert not loop.train(alone, should_stop=lambda: next(made_alone) >= 11)
    kept = sorted(place.name for place in (alone.lead.folder / "checkpoints").iterdir())
    assert kept == ["update-000000010", "update-000000011"]
    assert loop.train(alone)
    assert files.read_json(alone.lead.folder / "record.json")["attempt"] == 2


def test_a_change_of_threads_is_stamped_in_the_record(make_task, monkeypatch):
    task = make_task("transformer")
    made = iter(range(1, 10_000))
    assert not loop.train(task, should_stop=lambda: next(made) >= 15)
    genuine = setup.environment_of

    def elsewhere(device, cohort_size, **values):
        return genuine(device, cohort_size, **values).model_copy(update={"threads": 99})

    monkeypatch.setattr(setup, "environment_of", elsewhere)
    assert loop.train(task)
    events = files.read_json(task.lead.folder / "record.json")["events"]
    changed = [event for event in events if event["kind"] == "environment changed"]
    assert len(changed) == 1
    assert "threads" in changed[0]["detail"]
    assert "99" in changed[0]["detail"]


def test_curves_of_both_halves_are_there_once(make_task):
    task = make_task("transformer")
    train_with_cuts(task, [7, 9])
    curve = pl.read_parquet(task.lead.folder / "curve.parquet")
    assert curve.select("branch", "step").is_unique().all()
    assert_frame_equal(
        curve.select("step").filter(curve["branch"] == 0), pl.DataFrame({"step": range(1, 33)})
    )
