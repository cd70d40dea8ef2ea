"""The live page over loopback: who may see it, what is told and when, and what drawing may do to it."""

import asyncio
import json
import sys
import time
from contextlib import contextmanager
from html import unescape

import pytest
import speaking
from halfway import HOSTILE, halfway
from markupsafe import escape
from speaking import TOKEN

from isoloss.serve import server, view
from isoloss.serve.board import Board

DRAWN = """
import json, sys
from pathlib import Path
ended = len(list(Path(sys.argv[1]).glob("runs/*/record.json")))
name = sys.argv[2] + "-chapter"
print(json.dumps({"trouble": "", "parts": {name: f"<p id={name}>{ended} drawn</p>"}}))
"""


def said(words):
    return lambda parts: words in "".join(parts.values())


def ask(port, path="/", token=TOKEN, method="GET", **headers):
    return speaking.ask(port, method, f"{path}?token={token}", **headers)


def events(port, **headers):
    return speaking.hearing(port, f"/events?token={TOKEN}&since=0", **headers)


@contextmanager
def serving(*folders, draw=(sys.executable, "-c", DRAWN)):
    board = Board(folders)

    def make(ending):
        return server.application(board, token=TOKEN, ending=ending, draw=draw)

    with speaking.served(make) as port:
        yield port, board


@pytest.fixture
def study(tmp_path):
    with halfway(tmp_path / "study", ended=3) as made:
        yield made


@pytest.fixture(autouse=True)
def brisk(monkeypatch):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(server, "LOOK_SHARE", 1.0)
    monkeypatch.setattr(server, "DRAW_SHARE", 1.0)


def test_a_page_has_everything_at_once_and_then_what_changes(study, monkeypatch):
    with serving(study.folder) as (port, board):
        status, headers, text = ask(port)
        assert (status, headers["cache-control"]) == (200, "no-store")
        count = len(study.runs)
        assert f"3 of {count} runs done, 2 running, 1 failed, {count - 6} waiting" in text
        assert str(escape(HOSTILE)) in text
        first = (*study.running, study.failed)
        places = [text.index(f'id="s0-run-{run}"') for run in (*first, *study.runs[:25])]
        assert places[:3] == sorted(places)[:3], "what runs and what failed stands first"
        assert HOSTILE not in text
        with events(port, Last_Event_ID=str(board.version)) as heard:
            version, parts = heard(lambda parts: "s0" in parts)  # figures are new parts: the section is told
            assert "3 drawn" in parts["s0"]
            study.go_on(study.running[0], 300)
            version, parts = heard(lambda parts: "s0-head" in parts)
            run = study.running[0]
            assert parts.keys() == {"s0-head", f"s0-run-{run}", f"s0-curve-{run}"}
            assert f"step 300 of {study.updates(run):,}" in parts[f"s0-run-{study.running[0]}"]
            study.end(study.runs[10])
            row = f"s0-run-{study.runs[10]}"
            version, parts = heard(lambda parts: row in parts and "done" in parts[row])
            assert f"s0-run-{study.runs[0]}" not in parts
            if "s0-chapter" not in parts:
                version, parts = heard(lambda parts: "s0-chapter" in parts)
            assert "4 drawn" in parts["s0-chapter"]
            study.die()
            _, parts = heard(lambda parts: " running" not in parts.get("s0-head", "2 running"))
            assert "Nothing trains it now" not in parts["s0-head"], "its next worker may be on its way"
            monkeypatch.setattr(view, "IDLE_SECONDS", 0.0)
            version, parts = heard(said("Nothing trains it now"))
            assert "isoloss run architectures --scale evening" in parts["s0-head"]
        with events(port, Last_Event_ID=str(version - 1)) as heard:  # a line that was lost
            assert heard() == (version, board.since(version - 1))
        assert "4 drawn" in ask(port)[2], "a reload has it all"


@pytest.mark.parametrize("state", ["running", "all"])
def test_of_many_runs_those_that_run_are_shown_or_all_where_none_does(tmp_path, state):
    with halfway(tmp_path / "study", "reference/shape", ended=2) as study:
        if state == "all":
            study.die()
        with serving(study.folder) as (port, _):
            assert f'value="{state}" checked' in ask(port)[2]


def test_a_study_that_is_planned_while_the_page_is_open_appears(study, tmp_path):
    (tmp_path / "next").mkdir()
    with serving(study.folder, tmp_path / "next") as (port, _):
        assert "the page waits for <code>study.json" in ask(port)[2]
        with events(port) as heard, halfway(tmp_path / "next", "reference/shape", ended=2):
            _, parts = heard(lambda parts: "Shape at fixed size" in parts.get("s1", ""))
            if "2 of 108 runs done" not in parts["s1"]:  # looked at before they were
                heard(said("2 of 108 runs done"))


@pytest.mark.parametrize(
    "code",
    ["raise SystemExit('no more memory')", 'print(\'{"trouble": "no more memory", "parts": {}}\')'],
)
def test_drawing_that_fails_is_said(study, code):
    with serving(study.folder, draw=(sys.executable, "-c", code)) as (port, _), events(port) as heard:
        heard(said("cannot be drawn now: no more memory"))


def test_where_drawing_fails_the_old_figures_stay(study, tmp_path):
    once = tmp_path / "draw.py"
    once.write_text(DRAWN, "utf-8")
    with serving(study.folder, draw=(sys.executable, once)) as (port, _), events(port) as heard:
        heard(said("3 drawn"))
        once.write_text("import os; os.kill(os.getpid(), 9)", "utf-8")
        study.end(study.runs[10])
        heard(said("the process ended with code -9"))
        assert "3 drawn" in ask(port)[2]


def test_a_slow_drawing_holds_up_nothing_and_ends_with_the_server(study):
    slow = (sys.executable, "-c", "import time; time.sleep(600)")
    with serving(study.folder, draw=slow) as (port, _), events(port) as heard:
        heard()
        for done in (200, 300):
            study.go_on(study.running[0], done)
            heard(said(f"step {done} of"))


def test_nothing_is_looked_at_or_drawn_while_no_page_is_open(study, monkeypatch):
    looks = []
    monkeypatch.setattr(Board, "look", lambda self: looks.append(1) or {})
    with serving(study.folder):
        time.sleep(0.5)
    assert looks == []


@pytest.mark.parametrize("path", ["/", "/events", "/nothing", "/../etc/passwd"])
def test_nothing_is_served_without_the_token_or_from_elsewhere(study, path):
    with serving(study.folder) as (port, _):
        for token in ("", "wrong", TOKEN + "x"):
            assert ask(port, path, token)[0] == 403
        for headers in ({"Host": "page.example.org"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
            assert ask(port, path, **headers)[0] == 403
        assert ask(port, "/")[0] == 200  # the control


@pytest.mark.parametrize(
    "path", ["/nothing", "/%2e%2e/etc/passwd", "//etc/passwd", "/study.json", "/events/"]
)
def test_no_other_path_answers(study, path):
    with serving(study.folder) as (port, _):
        assert ask(port, path)[0] == 404
        assert ask(port, "/", method="POST")[0] == 403


@pytest.mark.parametrize("version", ["-1", "1 or so", "9" * 9, "9" * 9999])
def test_a_version_that_there_never_was_gets_everything(study, version):
    with serving(study.folder) as (port, _), events(port, Last_Event_ID=version) as heard:
        assert "s0" in heard()[1]


def test_the_policy_lets_the_pages_own_script_run_and_nothing_else(study):
    with serving(study.folder) as (port, _):
        text = ask(port)[2]
    policy = unescape(text).partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in rules["script-src"]


def test_a_study_that_makes_no_sense_does_not_take_the_other_along(study, monkeypatch):
    with serving(study.folder, study.source) as (port, board):
        monkeypatch.setattr(board.views[0].watch, "look", lambda: 1 / 0)
        text = ask(port)[2]
    assert "Cannot be read now: ZeroDivisionError" in text
    assert f"{len(study.runs)} of {len(study.runs)} runs done" in text


def test_drawing_prints_the_figures_of_the_report(study):
    async def drawn():
        process = await asyncio.create_subprocess_exec(
            *server.DRAW, str(study.source), "s7", stdout=asyncio.subprocess.PIPE
        )
        return json.loads((await process.communicate())[0])

    answer = asyncio.run(drawn())
    assert answer["trouble"] == ""
    parts = answer["parts"]
    assert {"s7-findings", "s7-params", "s7-gap", "s7-position", "s7-missing"} <= parts.keys()
    assert all(f'id="{name}"' in html for name, html in parts.items())
    assert 'id="s7-loss-by-params' in parts["s7-params"]
    assert parts["s7-params"].count("<svg") == 2, "for a screen and for a phone"
    assert "figures/" not in "".join(parts.values()), "there are no files to link to"
