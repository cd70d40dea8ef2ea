"""A claim on a folder: held by one process, for as long as that lives."""

import errno
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from isoloss import files
from isoloss.errors import InputError

HOLD = """
import sys, time
from pathlib import Path
from isoloss import files
with files.claim(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holder(path: Path, seconds: float) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path, str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "True\n"
    return process


def claimed(path: Path, wait_seconds: float = 0.0) -> bool:
    with files.claim(path, wait_seconds=wait_seconds) as mine:
        return mine


def test_a_claim_is_held_by_one_process_and_ends_with_it(tmp_path):
    path = tmp_path / "run" / "claim.lock"
    with holder(path, 60) as process:
        assert not claimed(path)
        assert claimed(tmp_path / "other" / "claim.lock"), "control: another folder is free"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert claimed(path), "the kernel releases a dead process's claim"
    assert path.exists(), "the file may stay; it means nothing by itself"


def test_waiting_for_a_claim_gets_it_when_it_is_released(tmp_path):
    path = tmp_path / "claim.lock"
    with holder(path, 0.5):
        assert not claimed(path, wait_seconds=0.05)
        assert claimed(path, wait_seconds=30)


def test_one_process_cannot_claim_twice(tmp_path):
    with files.claim(tmp_path / "claim.lock") as first, files.claim(tmp_path / "claim.lock") as second:
        assert (first, second) == (True, False)
    assert claimed(tmp_path / "claim.lock")


def test_an_error_inside_releases_the_claim(tmp_path):
    with pytest.raises(RuntimeError), files.claim(tmp_path / "claim.lock"):
        raise RuntimeError
    assert claimed(tmp_path / "claim.lock")


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def no_lock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    with pytest.raises(InputError, match="has no locks") as caught:
        claimed(tmp_path / "run" / "claim.lock")
    assert str(tmp_path / "run") in str(caught.value)
