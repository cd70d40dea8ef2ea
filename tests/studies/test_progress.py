"""Progress: live pictures for a terminal, plain lines without control codes for anything else."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from isoloss.studies import progress
from isoloss.studies.progress import BARS, Board, sparkline
from isoloss.training.task import Progress

ESCAPE = "\x1b"


def report(run_id="a", done=50, loss=3.25, label="lstm 1x40", **changes):
    values = {
        "run_id": run_id,
        "label": label,
        "done": done,
        "updates": 100,
        "tokens": done * 64,
        "loss": loss,
        "tokens_per_second": 12_345.0,
        "members": 1,
        "diverged": 0,
    }
    return Progress(**values | changes)


def test_a_run_is_said_with_the_time_it_still_takes():
    half = report(done=50, updates=100, tokens=5_000, tokens_per_second=100.0, loss=5.1234)
    assert progress.facts(half) == "step 50 of 100, loss 5.123, about 50 s left"
    three = report(done=50, updates=100, tokens=5_000, tokens_per_second=100.0, members=3, loss=None)
    assert progress.facts(three) == "step 50 of 100, about 2.5 min left"
    assert progress.facts(report(done=0, updates=100, tokens=0, loss=None)) == "step 0 of 100"


class Time:
    """A clock that tests turn by hand."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr(progress, "time", time)
    return time


def board(terminal, *, done=0.0, total=100.0, weights=None):
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=120, _environ={})
    return Board(console, weights or {"a": 60.0, "b": 40.0}, done, total), text


def test_lines_are_plain_where_there_is_no_terminal(time):
    shown, text = board(False)
    with shown:
        shown.update(report())
        shown.end("a", "lstm 1x40, seed 0: finished")
    assert ESCAPE not in text.getvalue()
    assert "\r" not in text.getvalue()
    first, second = text.getvalue().splitlines()
    assert first == " 30% done, estimating | lstm 1x40 step 50/100, 12.3K tokens/s, loss 3.250"
    assert second == "lstm 1x40, seed 0: finished"


def test_control_a_terminal_gets_a_live_picture():
    shown, text = board(True)
    with shown:
        for loss in (4.0, 3.5, 3.0):
            shown.update(report(loss=loss))
        shown.live.refresh()
    assert ESCAPE in text.getvalue()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue())
    assert "50/100" in plain
    assert "12.3K tokens/s" in plain
    assert "loss 3.000" in plain
    assert "█▄▁" in plain


@pytest.mark.parametrize("widgets", [None, object()])
def test_a_notebook_redraws_where_it_can_and_gets_lines_where_not(monkeypatch, widgets):
    monkeypatch.setattr(progress, "find_spec", lambda name: widgets)
    console = Console(file=io.StringIO(), force_terminal=False, force_jupyter=True)
    assert (Board(console, {}, 0.0, 1.0).live is None) == (widgets is None)


def test_plain_lines_come_now_and_then(time):
    shown, text = board(False)
    for _ in range(100):
        shown.update(report())
        time.now += 1.0
    assert len(text.getvalue().splitlines()) == 7  # at 0, 15, 30, ..., 90 seconds


def test_names_are_not_markup(time):
    shown, text = board(False)
    shown.update(report(label="[red]x[/red] [/]"))
    shown.end("a", "[bold]done[/] [/nothing]")
    assert "[red]x[/red] [/] step" in text.getvalue()
    assert "[bold]done[/] [/nothing]" in text.getvalue()


def test_share_counts_what_ended_and_what_is_under_way():
    shown, _ = board(False)
    assert shown.share() == 0.0
    shown.update(report("a", done=50))
    assert shown.share() == pytest.approx(0.3)
    shown.update(report("b", done=25))
    assert shown.share() == pytest.approx(0.4)
    shown.end("a", "finished")
    assert shown.share() == pytest.approx(0.7)
    shown.end("b", "finished")
    assert shown.share() == 1.0


def test_time_left_follows_the_speed_of_this_session(time):
    # 500 of 1,000 were there before: they must not count as speed.
    shown, _ = board(False, done=500.0, total=1000.0, weights={"a": 500.0})
    assert shown.seconds_left() is None
    time.now += 60.0
    assert shown.seconds_left() is None, "nothing was made yet"
    shown.update(report("a", done=20))  # 100 of 500 in 60 s: 400 more take 240 s
    assert shown.seconds_left() == pytest.approx(240.0)
    assert "about 4 min left" in shown.headline()


def test_sparkline_shows_the_course():
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == BARS
    assert sparkline([8, 1]) == "█▁"
    assert sparkline([3, 3, 3]) == "▁▁▁"
    assert sparkline([]) == sparkline([1.0]) == ""
    assert len(sparkline(range(1000), width=24)) == 24


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=200), st.integers(1, 50))
def test_sparkline_is_never_wider_than_asked(values, width):
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set(BARS)


def test_a_loss_that_is_not_there_is_not_zero(time):
    shown, text = board(False)
    shown.update(report(loss=None))
    assert "loss none" in text.getvalue()


def test_a_failed_run_is_no_longer_waited_for_and_a_stopped_one_is_not_done():
    board = Board(Console(file=io.StringIO()), {"a": 10.0, "b": 30.0, "c": 60.0}, 0.0, 100.0)
    board.end("a", "failed", "failed")
    assert board.share() == 0.0
    assert board.total == 90.0
    board.end("b", "stopped", "stopped")
    assert board.share() == 0.0
    board.end("c", "done", "done")
    assert board.share() == pytest.approx(60 / 90)
