"""`isoloss demo` and `isoloss deck` as their users meet them; tests/teach has what the panels measure."""

import io
import json
import sys

import pytest
import typer

from isoloss import cli
from isoloss.cli import teaching
from isoloss.errors import InputError
from isoloss.teach import panels, start
from isoloss.teach.result import read


class Terminal(io.StringIO):
    def isatty(self):
        return True


QUICK = ["--set", "size=64", "--set", "repeats=3"]


def test_a_demo_says_what_it_measured_with_n_and_the_machine(isoloss):
    code, out, err = isoloss("demo", "machine", *QUICK)
    assert code == 0
    assert "GFLOP/s" in out
    assert "n = 3 repeats" in out
    assert "CPU-seconds" in out
    assert "What this does not show" in out
    assert "\x1b" not in out + err


def test_a_demo_as_json_is_one_list_of_results(isoloss):
    code, out, _ = isoloss("demo", "machine", *QUICK, "--json")
    [result] = json.loads(out)
    assert code == 0
    assert result["panel"] == "machine"
    assert result["settings"] == {"size": 64, "repeats": 3}
    assert result["basis"]["n"] == 3
    assert {"tables", "sentences", "machine", "made", "cpu_seconds", "experiment"} <= result.keys()


def test_a_result_is_kept_and_read_back(isoloss, tmp_path):
    code, _, _ = isoloss("demo", "machine", *QUICK, "-o", tmp_path / "mine")
    assert code == 0
    assert read(tmp_path / "mine" / "machine.json").settings["size"] == 64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["poker"], "there is no demo 'poker'"),
        (["machine", "--panel", "poker"], "no panel 'poker'"),
        (["machine", "--set", "size"], "not KEY=VALUE"),
        (["machine", "--set", "size=5"], "size"),
        (["machine", "--set", "size=1e9"], "size"),
        (["machine", "--set", "width=3"], "no setting 'width'"),
        (["machine", "--set", 'size="64"'], "size"),
        (["machine", "--set", "size=" + "[" * 5000], "size"),
        (["machine", "--set", "size=" + "9" * 5000], "size"),
        (["amnesia", "--seeds", "0"], "--seeds"),
    ],
)
def test_wrong_usage_is_said_and_is_code_2(isoloss, arguments, words):
    code, out, err = isoloss("demo", *arguments)
    assert code == 2
    assert words in err
    assert out == ""


def test_a_folder_that_is_a_file_is_said_before_anything_is_measured(isoloss, tmp_path):
    (tmp_path / "taken").write_text("mine")
    code, out, err = isoloss("demo", "machine", *QUICK, "-o", tmp_path / "taken")
    assert (code, out) == (2, "")
    assert "is a file" in err
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_terminal_without_a_sign_gets_a_question_mark(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["isoloss", "demo", "attention", "--panel", "steps"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out.flush()
    assert not end.value.code
    assert b"Q K? / ?4" in out.buffer.getvalue()


def test_seeds_reach_every_panel_that_has_them():
    chosen = start.select_panels("all", only=None, seeds=7, changes=[], full=False)
    assert [panel.name for panel, _ in chosen] == [panel.name for panel in panels.PANELS]
    seeded = [settings.seeds for _, settings in chosen if hasattr(settings, "seeds")]
    assert len(seeded) >= 5
    assert set(seeded) == {7}


def test_a_panel_that_needs_more_seeds_takes_the_fewest_it_can():
    chosen = start.select_panels("attention", only=None, seeds=1, changes=[], full=False)
    seeds = {panel.name: settings.seeds for panel, settings in chosen if hasattr(settings, "seeds")}
    assert seeds["right-slot"] == 1
    assert seeds["untrained"] == 2


def test_a_change_reaches_the_panels_that_know_it_and_text_needs_no_quotes():
    [(_, settings)] = start.select_panels(
        "attention", only="steps", seeds=None, changes=["sentence=the bank of the river"], full=False
    )
    assert settings.sentence == "the bank of the river"
    with pytest.raises(InputError, match="no setting"):
        start.select_panels("attention", only="steps", seeds=None, changes=["poker=1"], full=False)


def test_the_full_sizes_are_those_of_the_recording():
    for panel, settings in start.select_panels("all", only=None, seeds=None, changes=[], full=True):
        assert settings == panel.settings_from(panel.full)


def test_a_deck_is_one_file_and_says_where(isoloss, tmp_path):
    code, out, _ = isoloss("deck", "--build", tmp_path / "deck.html", "--json")
    assert code == 0
    assert json.loads(out) == {"path": str(tmp_path / "deck.html")}
    html = (tmp_path / "deck.html").read_text("utf-8")
    assert html.count("<section") == 19
    assert "Not measured yet" not in html


def test_a_live_deck_has_no_json(isoloss):
    code, out, err = isoloss("deck", "--json")
    assert code == 2
    assert "give --build FILE" in err
    assert out == ""


def test_a_vote_that_nobody_casts_loses_nothing(monkeypatch):
    def closed(*_, **__):
        raise typer.Abort

    monkeypatch.setattr(typer, "prompt", closed)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    teaching.vote()
    assert "No vote. The names:" in sys.stdout.getvalue()
