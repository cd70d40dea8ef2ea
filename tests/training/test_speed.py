"""Timing the loop: what it times is the loop, and it leaves nothing behind."""

import pytest

from isoloss.training import speed


def test_the_loop_is_timed_and_leaves_no_file(make_task, monkeypatch):
    task = make_task("transformer", seeds=(0, 1))
    clock = iter(range(1000))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: float(next(clock)))
    # A tick an update: begin, and one look after each.
    assert speed.tokens_per_second(task, 5.0) == pytest.approx(2 * 4 * 16, rel=0.01)
    assert not any(path for member in task.members for path in member.folder.iterdir())


def test_updates_go_on_beyond_the_trunks_end(make_task):
    setup, some = speed.updater(make_task("lstm"))
    assert [some() for _ in range(40)] == [1] * 40
    assert len(setup.segments[0]) == 16
