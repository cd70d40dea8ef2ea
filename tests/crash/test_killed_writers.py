"""What a reader meets of one file while its writer is killed again and again."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from appended import read_lines

from isoloss import files

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the writers are forked, so that each starts in a millisecond"
)

KILLS = 20
PATIENCE = 60.0

WRITERS = """
import os, sys
from pathlib import Path
from isoloss import files

path, way = Path(sys.argv[1]), sys.argv[2]

def atomic():
    while True:
        for letter in "abcdefgh":
            files.write_text(path, letter * 300_000)

def in_place():
    while True:
        for letter in "abcdefgh":
            with open(path, "w") as file:
                file.write(letter * 300_000)

def append():
    number = path.read_bytes().count(b"\\n") if path.exists() else 0
    while True:
        files.append_line(path, {"n": number, "fill": "x" * 1500})
        number += 1

for _ in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        {"atomic": atomic, "in_place": in_place, "append": append}[way]()
    print(child, flush=True)
    os.waitpid(child, 0)
"""


def kill_writers(path: Path, way: str, check, kills: int = KILLS) -> None:
    """Let a writer begin, look at its file while it writes, kill it, look again; ``kills`` times."""
    command = [sys.executable, "-c", WRITERS, path, way, str(kills)]
    wait = random.Random(1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        written = None
        for line in parent.stdout:
            try:
                end = time.monotonic() + PATIENCE
                while stamp(path) == written:
                    assert time.monotonic() < end, "it writes nothing"
                    time.sleep(0.0005)
                for _ in range(3):
                    time.sleep(wait.uniform(0.002, 0.015))
                    check(path)
            except BaseException:
                parent.kill()
                raise
            finally:
                os.kill(int(line), signal.SIGKILL)
            check(path)
            written = stamp(path)
    assert parent.returncode == 0, "every writer was started and ended"


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Another one after each write; None without a file."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns


def is_torn(path: Path) -> bool:
    if not path.exists():
        return False
    text = path.read_text()
    return len(text) != 300_000 or len(set(text)) != 1


def test_no_reader_meets_a_torn_file_however_often_its_writer_is_killed(tmp_path):
    path = tmp_path / "state.txt"
    looks = []
    kill_writers(path, "atomic", lambda path: looks.append((path.exists(), is_torn(path))))
    assert sum(existed for existed, _ in looks) > KILLS, "the writers must have written"
    assert not any(torn for _, torn in looks)
    files.remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_control_a_file_written_in_place_is_torn(tmp_path):
    looks = []
    kill_writers(tmp_path / "state.txt", "in_place", lambda path: looks.append(is_torn(path)))
    assert any(looks)


def test_no_line_is_lost_or_doubled_however_often_its_writer_is_killed(tmp_path):
    path = tmp_path / "log.jsonl"

    def consecutive(path):
        if path.exists():
            numbers = [line["n"] for line in read_lines(path)]
            assert numbers == list(range(len(numbers)))

    kill_writers(path, "append", consecutive)
    consecutive(path)
    assert len(read_lines(path)) >= KILLS, "each has written"
