"""What is said and kept while a cohort trains: speed, losses of the living, seconds, when to save."""

from types import SimpleNamespace

import numpy as np
import pytest
from appended import read_lines

from isoloss.training import journal
from isoloss.training.journal import Journal
from isoloss.training.settings import Execution
from isoloss.training.setup import set_up


@pytest.fixture
def time(monkeypatch):
    """Clocks that tests turn by hand: ``wall`` and ``cpu`` seconds."""
    now = SimpleNamespace(wall=1000.0, cpu=50.0)
    monkeypatch.setattr(
        journal, "time", SimpleNamespace(monotonic=lambda: now.wall, process_time=lambda: now.cpu)
    )
    return now


@pytest.fixture
def begun(make_task, time):
    """begun(done=..., ...) -> the journal and state of two members; so many updates were made before."""

    def make(done=0, **options):
        task = make_task("transformer", seeds=(0, 1), **options)
        setup = set_up(task)
        state = setup.first_state()
        state.done = done
        return Journal(setup, state), state

    return make


def log(notes):
    return read_lines(notes.log)


# Progress


def test_progress_worked_by_hand(begun, time):
    notes, state = begun()
    state.curve_UKP[:2, :, 0] = [[9.0, 9.0], [2.0, 4.0]]
    state.done = 2
    time.wall += 0.5
    progress = notes.progress()
    assert (progress.done, progress.updates, progress.members, progress.diverged) == (2, 44, 2, 0)
    assert progress.loss == 3.0, "of the last update, over members"
    assert progress.tokens == 2 * 64, "of one member"
    assert progress.tokens_per_second == pytest.approx(2 / 0.5 * 64 * 2), "of all members"


def test_updates_of_an_earlier_attempt_are_no_speed_of_this_one(begun, time):
    notes, state = begun(done=30)
    state.done = 33
    time.wall += 1.5
    assert notes.progress().tokens_per_second == pytest.approx(3 / 1.5 * 64 * 2)


def test_losses_are_those_of_the_living_and_absent_when_none_lives(begun, time):
    notes, state = begun()
    state.done = 1
    state.curve_UKP[0, :, 0] = [2.0, np.nan]
    state.diverged = [None, 0]
    assert (notes.progress().loss, notes.progress().diverged) == (2.0, 1)
    state.curve_UKP[0, :, 0] = np.nan
    assert notes.progress().loss is None


# Events


def test_a_member_diverges_once_and_by_the_first_number_that_broke(begun):
    notes, state = begun(done=7)
    notes.note_divergence(loss=[1.0, 2.0], gradient=[1.0, 1.0])
    assert state.diverged == [None, None]
    notes.note_divergence(loss=[1.0, float("inf")], gradient=[1.0, float("nan")])
    state.done = 8
    notes.note_divergence(validation_loss=[1.0, float("nan")])
    assert state.diverged == [None, 7]
    kinds = [(event["kind"], event["step"], event["detail"]) for event in log(notes)]
    assert kinds == [("started", 7, ""), ("diverged", 7, f"{notes.run_ids[1]}: loss not finite")]
    notes.note_divergence(validation_loss=[float("nan"), 1.0])
    assert log(notes)[-1]["detail"] == f"{notes.run_ids[0]}: validation loss not finite"


def test_an_attempt_goes_on_counting_and_keeps_what_happened_before(begun):
    first, _ = begun()
    first.save()
    second, _ = begun()
    assert (first.attempt, second.attempt) == (1, 2)
    assert [(event.kind, event.attempt) for event in second.events] == [("started", 1), ("resumed", 2)]
    assert [event["kind"] for event in log(second)] == ["started", "resumed"], "one log, for people"


# Seconds, and when to save


def test_seconds_of_all_attempts_add_up(begun, time):
    notes, state = begun()
    time.wall, time.cpu = time.wall + 10.0, time.cpu + 4.0
    notes.save()
    assert (state.wall_seconds, state.cpu_seconds) == (10.0, 4.0)
    time.wall += 500.0  # nobody trains
    later, state = begun()
    assert (state.wall_seconds, state.cpu_seconds) == (10.0, 4.0), "put back with the checkpoint"
    time.wall, time.cpu = time.wall + 1.0, time.cpu + 1.0
    later.finish()
    assert (state.wall_seconds, state.cpu_seconds) == (11.0, 5.0)


def saved(notes):
    return sorted(int(place.name.removeprefix("update-")) for place in notes.checkpoints.glob("update-*"))


def test_checkpoints_come_by_the_clock_and_only_the_newest_two_stay(begun, time):
    notes, state = begun(execution=Execution(checkpoint_seconds=30.0))
    for state.done in range(1, 101):
        time.wall += 1.0
        notes.save_if_due()
    assert saved(notes) == [60, 90]


def test_checkpoints_come_by_updates_where_that_is_asked(begun):
    notes, state = begun(execution=Execution(checkpoint_seconds=0.0, checkpoint_steps=7))
    for state.done in range(1, 20):
        notes.save_if_due()
    assert saved(notes) == [7, 14]
