"""From sums to records, against numbers worked by hand."""

from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from settings_of_a_run import run_settings

from isoloss import files
from isoloss.records.store import check, read_record
from isoloss.training import finish
from isoloss.training.evaluation import PositionSums, sums_of
from isoloss.training.loop import train
from isoloss.training.schedule import segments
from isoloss.training.settings import Execution, Recipe
from isoloss.training.state import Measured

SETTINGS = run_settings(tokenizer="bpe-3", vocab=3, recipe=Recipe(cooldown=0.2))
SETUP = SimpleNamespace(settings=SETTINGS, segments=segments(SETTINGS), parts=["total"])
PLAIN = np.array([[1.0, 3.0], [2.0, 6.0]])  # nats, 2 windows of 2 positions: means 2 and 4
BYTES = np.array([1.0, 2.0, 5.0])


@pytest.fixture
def corpus(monkeypatch):
    """Two windows with targets 0 1 and 2 1, which are 1 + 2 + 5 + 2 = 10 bytes of text."""
    y_MT = np.array([[0, 1], [2, 1]])
    monkeypatch.setattr(finish, "evaluation_windows", lambda tokens, count, context: (y_MT, y_MT))
    return SimpleNamespace(validation=None, token_bytes=BYTES)


def evaluation(corpus, by_part, *, step=7, branch=0):
    return finish.evaluation(corpus, SETTINGS, Measured(step, branch, []), sums_of(by_part))


# Losses


def test_a_plain_model_worked_by_hand(corpus):
    e = evaluation(corpus, {"exit_1": PLAIN})
    assert (e.step, e.tokens, e.cooled, e.windows) == (7, 14, False, 2)
    assert e.loss == pytest.approx(3.0)
    # The windows' means are 2 and 4: their standard deviation is sqrt(2), of the mean of two it is 1.
    assert e.loss_se == pytest.approx(1.0)
    assert e.bits_per_byte == pytest.approx(12.0 / log(2) / 10)
    assert (e.exits, e.expected, e.entropy, e.total) == ([e.loss], e.loss, 0.0, e.loss)


def test_a_model_with_exits_is_scored_by_its_last_and_keeps_what_its_gate_made_of_them(corpus):
    parts = {"exit_1": 2 * PLAIN, "exit_2": PLAIN}
    parts |= {"expected": 1.5 * PLAIN, "entropy": np.full((2, 2), 0.5), "total": 1.5 * PLAIN - 0.05}
    e = evaluation(corpus, parts, branch=1)
    assert e.cooled
    assert (e.loss, e.exits) == (pytest.approx(3.0), pytest.approx([6.0, 3.0]))
    assert (e.expected, e.entropy, e.total) == pytest.approx((4.5, 0.5, 4.45))
    assert e.bits_per_byte == pytest.approx(12.0 / log(2) / 10), "bytes are predicted by the last exit alone"


def test_one_window_has_no_standard_error_rather_than_none():
    one = sums_of({"exit_1": PLAIN[:1]})
    assert one.mean("exit_1") == 2.0
    with pytest.raises(ValueError, match="one window has no standard error"):
        one.standard_error("exit_1")


def test_windows_that_agree_have_no_error_even_after_rounding():
    same = PositionSums(("exit_1",), np.ones((1, 2)), np.ones((1, 2)), np.array([0.3]), np.array([0.03]), 3)
    assert same.standard_error("exit_1") == pytest.approx(0.0, abs=1e-8)
    spread = sums_of({"exit_1": np.array([[0.0], [1.0], [2.0]])})
    assert spread.standard_error("exit_1") == pytest.approx(1 / sqrt(3))


# Tables


def state(losses, diverged=None):
    curve_UKP = np.asarray(losses, dtype=float).reshape(-1, 1, 1)
    return SimpleNamespace(curve_UKP=curve_UKP, diverged=[diverged], measured=[])


def test_the_curve_counts_steps_along_the_branch_that_an_update_belongs_to():
    # D points after 10 and 20 steps, a fifth of each cooled down: trunk to 8, branch to 10, trunk to 16, ...
    table = finish.curve(SETUP, state(range(22)), 0)
    steps = {b: table.filter(pl.col("branch") == b)["step"].to_list() for b in (0, 1, 2)}
    assert steps == {0: list(range(1, 17)), 1: [9, 10], 2: [17, 18, 19, 20]}
    assert table["tokens"].to_list() == [2 * step for step in table["step"]]
    assert table.filter("cooled")["branch"].unique().sort().to_list() == [1, 2]
    assert table.filter(pl.col("branch") == 1)["total"].to_list() == [8.0, 9.0]


def test_updates_that_were_not_made_are_absent_and_not_zero():
    losses = [5.0, 4.0, *[np.nan] * 20]
    table = finish.curve(SETUP, state(losses, diverged=2), 0)
    assert table["total"].to_list() == [5.0, 4.0]
    assert table["step"].to_list() == [1, 2]


def test_a_member_that_never_was_measured_has_an_empty_table_of_the_same_columns():
    full = finish.positions(SETTINGS, [(Measured(0, 0, []), sums_of({"exit_1": PLAIN}))])
    assert full["sum"].to_list() == [3.0, 9.0]
    assert full["sumsq"].to_list() == [5.0, 45.0]
    assert full.select("step", "position", "count").rows() == [(0, 1, 2), (0, 2, 2)]
    assert finish.positions(SETTINGS, []).schema == full.schema
    assert finish.positions(SETTINGS, []).is_empty()


# What stands on the disk


def test_a_record_vouches_for_every_file_beside_it(make_task):
    task = make_task("transformer", execution=Execution(keep_weights=True))
    files.write_json(task.lead.folder / "failure.json", {"reason": "an earlier attempt"})
    assert train(task)
    folder = task.lead.folder
    record = read_record(folder)
    tables = {"positions.parquet", "sliding.parquet", "curve.parquet"}
    assert set(record.files) == tables | {"weights.safetensors"}
    assert all(files.sha256(folder / name) == digest for name, digest in record.files.items())
    left = {path.name for path in folder.iterdir()}
    assert left == {"record.json", "log.jsonl", *record.files}, "no failure, no checkpoints"
    check(folder)


def test_counts_of_the_record_are_per_token(make_task):
    settings = make_task("transformer").lead.settings
    counts = finish.counts_of(settings)
    # 2 blocks of width d = 16: 4 d^2 of attention, 2 * 4 d^2 of FFN; norms have none.
    assert counts.params == counts.params_executed == 2 * (4 * 16**2 + 8 * 16**2) == 6144
    assert counts.flops_6nd_per_token == 6 * 6144
    # Forward: 2 a weight, scores and weighted sum over (T + 1) / 2 = 8.5 places a layer, a head of 300.
    assert counts.flops_exact_per_token == pytest.approx(3 * (2 * 6144 + 2 * 4 * 16 * 8.5 + 2 * 16 * 300))
