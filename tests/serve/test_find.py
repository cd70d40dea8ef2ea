"""Which studies `isoloss serve` shows, and what it says where it can show none."""

import os
import socket

import pytest
from halfway import Halfway

from isoloss.errors import InputError
from isoloss.records import reference
from isoloss.serve import find, server


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_named_folders_in_their_order_each_once(here):
    for name in ("b", "a"):
        Halfway(here / name)
    (here / "empty").mkdir()
    folders = find.studies(["b", "a", "b", "empty", "reference"])
    assert [path.name for path in folders] == ["b", "a", "empty", "architectures"]
    assert folders[-1] == reference.folder("reference")


def test_without_a_name_what_lies_here_the_newest_first(here):
    for number, name in enumerate(("studies/one", "runs/two", "studies/three")):
        Halfway(here / name)
        os.utime(here / name / "study.json", (number, number))
    Halfway(here / "elsewhere")
    (here / "runs" / "no-study").mkdir()
    assert [path.name for path in find.studies([])] == ["three", "two", "one"]


@pytest.mark.parametrize(
    ("name", "what", "mend"),
    [
        ("nowhere", "there is no such folder", "check the path"),
        ("file", "is not a folder", "isoloss run"),
        ("other", "holds no study", "isoloss run"),
        ("reference/none", "there is no such reference study", "use one of"),
    ],
)
def test_what_is_no_study_is_said_with_place_and_way_out(here, isoloss, name, what, mend):
    (here / "file").write_text("mine")
    (here / "other").mkdir()
    (here / "other" / "notes.txt").write_text("mine")
    code, out, err = isoloss("serve", name, "--no-open")
    assert (code, out) == (2, "")
    assert err.startswith(f"isoloss: {name}: {what}")
    assert mend in err


def test_where_no_study_lies_it_says_how_to_begin_one(here, isoloss):
    code, _, err = isoloss("serve", "--no-open")
    assert code == 2
    assert "./studies and ./runs: there is no study here" in err
    assert "isoloss run architectures" in err


def test_a_port_that_is_taken_is_said(here, isoloss):
    Halfway(here / "studies" / "one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = isoloss("serve", "--no-open", "--port", port)
    assert (code, out) == (2, "")
    assert f"127.0.0.1: port {port} is taken" in err
    assert "leave --port out" in err


def test_the_command_shows_what_was_found_as_it_was_asked(here, isoloss, monkeypatch):
    Halfway(here / "studies" / "one")
    asked = []
    monkeypatch.setattr(server, "serve", lambda *values, **options: asked.append((values, options)))
    assert isoloss("serve", "--no-open", "--port", 8123)[0] == 0
    [((folders, port), options)] = asked
    assert ([path.name for path in folders], port, options) == (["one"], 8123, {"open_browser": False})
    with pytest.raises(InputError):
        find.folder_of("nowhere")
