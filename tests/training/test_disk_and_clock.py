"""A full disk, a clock that is set back, a folder that is copied: the run is told, and goes on bitwise."""

import errno
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from isoloss import files
from isoloss.records.store import is_finished, read_record
from isoloss.studies.engines import worker
from isoloss.training import checkpoint, journal
from isoloss.training.loop import train
from isoloss.training.settings import Execution

OFTEN = Execution(checkpoint_steps=5)


@pytest.fixture(scope="module")
def whole(task_in, tmp_path_factory):
    """The run that nothing disturbs."""
    task = task_in(tmp_path_factory.mktemp("whole"), "lstm")
    assert train(task)
    return curve(task)


def curve(task):
    return pl.read_parquet(task.lead.folder / "curve.parquet")["total"].to_numpy()


def stopped_at(task, done):
    """Train up to so many updates, and leave a checkpoint."""
    seen = []
    assert not train(task, report=seen.append, should_stop=lambda: seen[-1].done >= done)
    return task


# A full disk


@pytest.mark.parametrize("name", ["state.safetensors", "state.json", "curve.parquet", "record.json"])
def test_a_full_disk_fails_the_run_in_words_and_tears_nothing(make_task, monkeypatch, whole, name):
    task = stopped_at(make_task("lstm", execution=OFTEN), 7)
    before = sorted(path.name for path in (task.lead.folder / "checkpoints").iterdir())
    genuine = files.replace_file

    def on_a_full_disk(path, write):
        def half(temporary):
            write(temporary)
            os.truncate(temporary, temporary.stat().st_size // 2)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

        genuine(path, half if path.name == name else write)

    with monkeypatch.context() as full:
        full.setattr(files, "replace_file", on_a_full_disk)
        with pytest.raises(OSError, match="No space left on device") as caught:
            train(task)
    assert name in str(caught.value)
    assert "No space left on device" in worker.fail(task, caught.value)[1]
    assert not is_finished(task.lead.folder)
    assert not [path for path in task.lead.folder.rglob("*") if ".part" in path.name]
    kept = sorted(path.name for path in (task.lead.folder / "checkpoints").iterdir())
    assert kept == before if name.startswith("state") else kept[-1] > before[-1]
    assert train(task)
    assert read_record(task.lead.folder).attempt == 2 + (kept != before)
    np.testing.assert_array_equal(curve(task), whole)


# A clock that is set back


class SetBack(datetime):
    """Each look is a day earlier than the one before."""

    days = 0

    @classmethod
    def now(cls, tz=None):
        cls.days += 1
        return datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=cls.days)


def test_a_clock_set_back_changes_no_number_and_no_checkpoint(make_task, monkeypatch, whole):
    monkeypatch.setattr(journal, "datetime", SetBack)
    task = stopped_at(make_task("lstm", execution=OFTEN), 12)
    saved = sorted((task.lead.folder / "checkpoints").iterdir())
    assert [path.name for path in saved] == ["update-000000010", "update-000000012"]
    for age, path in enumerate(saved):  # the newer one seems the older
        for file in (*path.iterdir(), path):
            os.utime(file, (1e9 - 1e6 * age,) * 2)
    assert train(task)
    np.testing.assert_array_equal(curve(task), whole)
    events = read_record(task.lead.folder).events
    assert [(event.kind, event.step) for event in events][:2] == [("started", 0), ("resumed", 12)]
    assert events[0].time > events[-1].time, "the clock was set back"


# A folder that is copied while it trains


def test_a_copy_made_within_any_write_of_a_run_goes_on_to_the_same_numbers(
    make_task, monkeypatch, tmp_path, whole
):
    task, copies = make_task("lstm", execution=OFTEN), []
    genuine = checkpoint.write_tensors

    def copied(path, arrays, dtype=None):
        genuine(path, arrays, dtype)
        copies.append(tmp_path / f"copy-{len(copies)}")  # a folder half filled, its JSON not there
        shutil.copytree(task.lead.folder, copies[-1] / task.lead.run_id)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write_tensors", copied)
        assert train(task)
    np.testing.assert_array_equal(curve(task), whole)
    for number in (0, 3):
        (folder,) = copies[number].iterdir()
        assert [path for path in folder.rglob("*") if ".part" in path.name]
        mine = replace(task, members=(replace(task.lead, folder=folder),))
        assert train(mine)
        resumed = [event.step for event in read_record(folder).events if event.kind == "resumed"]
        assert resumed == ([15] if number else [])
        np.testing.assert_array_equal(curve(mine), whole)
