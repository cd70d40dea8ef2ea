"""What a reader meets after a writer failed or met a full disk."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from appended import read_lines
from hypothesis import given
from hypothesis import strategies as st

from isoloss import files
from isoloss.errors import InputError


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Whole files


def test_a_new_text_takes_the_place_of_the_old(tmp_path):
    path = tmp_path / "a" / "b" / "note.txt"  # folders are made on the way
    files.write_text(path, "old")
    files.write_text(path, "new é")
    assert path.read_bytes() == "new é".encode()
    assert names(path.parent) == {"note.txt"}
    assert path.stat().st_mode & 0o777 == 0o644  # mkstemp alone would leave 0600


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "note.txt"
    files.write_text(path, "old")

    def half(temporary):
        temporary.write_text("hal")
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        files.replace_file(path, half)
    assert path.read_text() == "old"
    assert names(tmp_path) == {"note.txt"}


@pytest.mark.parametrize("step", ["mkstemp", "write", "fsync", "chmod", "replace"])
def test_a_full_disk_at_any_step_leaves_the_old_content(tmp_path, monkeypatch, step):
    path = tmp_path / "record.json"
    files.write_json(path, {"old": 1})

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    owner, name = {
        "mkstemp": (files.tempfile, "mkstemp"),
        "write": (Path, "write_bytes"),
        "fsync": (os, "fsync"),
        "chmod": (os, "chmod"),
        "replace": (os, "replace"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, full)
        with pytest.raises(OSError, match="No space"):
            files.write_json(path, {"new": 2})
    assert files.read_json(path) == {"old": 1}
    assert names(tmp_path) == {"record.json"}
    files.write_json(path, {"new": 2})  # control: without the fault the same call writes
    assert files.read_json(path) == {"new": 2}


LIMITED = """
import resource, sys
from pathlib import Path
from isoloss import files
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
path = Path(sys.argv[1])
files.write_text(path, "s" * 10_000)
try:
    files.write_text(path, "b" * 50_000)
except OSError:
    sys.exit(7)
"""


def test_a_write_that_the_system_refuses_leaves_the_old_file(tmp_path):
    """A real write error, by a limit on file sizes: part of the data is written before it comes."""
    pytest.importorskip("resource")
    path = tmp_path / "big.txt"
    assert subprocess.run([sys.executable, "-c", LIMITED, path], timeout=60).returncode == 7
    assert path.read_text() == "s" * 10_000
    assert names(tmp_path) == {"big.txt"}


@contextmanager
def as_nobody():
    """Root may write into any folder, so root is somebody else for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="folders have no such permissions")
def test_a_read_only_folder_raises_and_keeps_the_file():
    with tempfile.TemporaryDirectory() as name:  # others may not enter pytest's own folder
        folder = Path(name)
        path = folder / "note.txt"
        files.write_text(path, "old")
        folder.chmod(0o555)
        try:
            with as_nobody(), pytest.raises(PermissionError):
                files.write_text(path, "new")
        finally:
            folder.chmod(0o700)
        assert path.read_text() == "old"
        assert names(folder) == {"note.txt"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_takes_no_number_that_json_has_not(tmp_path, number):
    path = tmp_path / "value.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, {"loss": number})
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.append_line(path, number)
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.hash_of(number)
    assert names(tmp_path) == set()
    path.write_text(json.dumps({"loss": number}))  # as another program may have written it
    with pytest.raises(InputError, match="no JSON number") as caught:
        files.read_json(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1', b"\xff\xfe{}", b"\0" * 40, b"[" * 100_000])
def test_what_is_not_json_names_the_file(tmp_path, content):
    path = tmp_path / "value.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not JSON") as caught:
        files.read_json(path)
    assert caught.value.where == str(path)
    assert caught.value.mend


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "\ud800" not in json.dumps(value))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


def encodable(value) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@given(json_values.filter(encodable))
def test_json_comes_back_as_it_was(scratch, value):
    files.write_json(scratch / "value.json", value)
    assert files.read_json(scratch / "value.json") == value


def test_the_hash_of_settings_ignores_the_order_of_keys_and_nothing_else():
    assert files.hash_of({"a": 1, "b": [1, 2]}) == files.hash_of({"b": [1, 2], "a": 1})
    different = [{"a": 1}, {"a": 2}, {"b": 1}, {"a": [1]}, {"a": "1"}, {"a": None}, {"a": 1.5}, {}]
    assert len({files.hash_of(value) for value in different}) == len(different)


# Whole folders


def test_a_folder_appears_only_when_it_is_full(tmp_path):
    target = tmp_path / "made"
    with files.new_folder(target) as part:
        (part / "inside.txt").write_text("x")
        assert not target.exists()
    assert (target / "inside.txt").read_text() == "x"
    assert names(tmp_path) == {"made"}
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_exists_is_never_replaced(tmp_path):
    target = tmp_path / "made"
    target.mkdir()  # empty: os.replace alone would accept that
    with pytest.raises(InputError, match="exists already"), files.new_folder(target) as part:
        (part / "inside.txt").write_text("x")
    assert names(tmp_path) == {"made"}
    assert names(target) == set()


def test_a_block_that_fails_leaves_no_folder(tmp_path):
    def interrupted():
        with files.new_folder(tmp_path / "made") as part:
            (part / "inside.txt").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == set()


def test_leftovers_of_killed_writers_go_and_nothing_else(tmp_path):
    (tmp_path / ".record.json.abc.part").write_text("torn")
    (tmp_path / ".made.xyz.part").mkdir()
    (tmp_path / ".made.xyz.part" / "inside").write_text("x")
    kept = {"record.json", ".hidden", "song.part", "claim.lock"}
    for name in kept:
        (tmp_path / name).write_text("{}")
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == kept


# Logs


def test_lines_come_back_in_order(tmp_path):
    path = tmp_path / "log.jsonl"
    for number in range(5):
        files.append_line(path, {"n": number, "text": "a\nb é"})
    assert read_lines(path) == [{"n": number, "text": "a\nb é"} for number in range(5)]


@pytest.mark.parametrize("tail", [b'{"n": 2, "te', b"\0" * 300, b'{"n": 2}', b"\xc3"])
def test_a_torn_tail_is_dropped_and_then_repaired(tmp_path, tail):
    path = tmp_path / "log.jsonl"
    files.append_line(path, {"n": 1})
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert read_lines(path) == [{"n": 1}]
    assert path.read_bytes() == whole + tail, "reading must not write"
    files.append_line(path, {"n": 2})
    assert read_lines(path) == [{"n": 1}, {"n": 2}]
    assert path.read_bytes() == whole + b'{"n": 2}\n'


def test_a_line_that_does_not_fit_on_the_disk_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    files.append_line(path, {"n": 1})
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: write(handle, data[: len(data) // 2]))
        with pytest.raises(OSError, match="No space"):
            files.append_line(path, {"n": 2})
    assert read_lines(path) == [{"n": 1}]
    files.append_line(path, {"n": 3})
    assert read_lines(path) == [{"n": 1}, {"n": 3}]


# Names


def test_plain_names_are_children(tmp_path):
    for name in ("a", "lstm-1x40-s0-0123456789ab", "0", "a.b_c-d", "x" * 128):
        assert files.safe_child(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../a",
        "a/b",
        "/etc",
        "a\\b",
        ".hidden",
        "-rf",
        "a b",
        "A",
        "é",
        "a\n",
        "a\0",
        "x" * 129,
        "~",
        "$x",
    ],
)
def test_hostile_names_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="not a usable name"):
        files.safe_child(tmp_path, name)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="symbolic link"):
        files.safe_child(tmp_path / "inside", "link")


@given(st.text())
def test_no_accepted_name_leaves_its_folder(name):
    folder = Path("/somewhere/deep")
    try:
        child = files.safe_child(folder, name)
    except InputError:
        return
    assert child.parent == folder
    assert child.name == name
    assert Path(os.path.normpath(child)) == child


@pytest.mark.parametrize("inner", ["fit.json", "deeper/fit.json"])
def test_a_file_where_a_folder_should_be_is_named_with_a_way_out(tmp_path, inner):
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match=r"taken.*a file is in the way(.|\n)*name another place"):
        files.write_text(tmp_path / "taken" / inner, "new")
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "a file"


def test_a_folder_is_tried_and_nothing_is_left(tmp_path):
    (held := tmp_path / "held").mkdir()
    for path in (tmp_path / "a" / "b", held):
        files.try_folder(path)
    assert list(tmp_path.iterdir()) == [held]
    (held / "file").touch()
    with pytest.raises(NotADirectoryError):
        files.try_folder(held / "file" / "c")
    assert list(held.iterdir()) == [held / "file"]
