"""Unfinished runs and checkpoints, in many words and of many kinds, each with a control."""

import polars as pl
import pytest
from run_tables import curves, cut, grid, kinds, out, taken

LARGEST = [21, 22, 23, 24, 25]


def test_a_reason_that_not_all_rows_share_names_its_row():
    ends = ["finished"] * 23 + ["crashed", "running"]
    (warning,) = [words for words in taken(grid(state=ends)).warnings if "left out" in words]
    assert warning == "left out as unfinished: rows 24, 25 (row 24: state is 'crashed')"
    same = ["finished"] * 23 + ["crashed"] * 2
    (warning,) = [words for words in taken(grid(state=same)).warnings if "left out" in words]
    assert warning == "left out as unfinished: rows 24, 25 (state is 'crashed')"


@pytest.mark.parametrize(
    "columns",
    [
        {"state": ("COMPLETED", "TIMEOUT")},
        {"state": ("COMPLETED", "CANCELLED by 1000")},
        {"job_state": ("COMPLETED", "NODE_FAIL")},
        {"status": ("TERMINATED", "ERROR")},
        {"trial_status": ("COMPLETE", "PRUNED")},
        {"State": ("TrialState.COMPLETE", "TrialState.FAIL")},
        {"Run Status": ("finished", "ran out of time")},
        {"state": (None, "crashed")},
        {"finished": (True, False)},
        {"result": ("success", "oom-killed")},
        {"exit reason": ("done", "wall clock")},
        {"finished_at": ("2026-01-01", None)},
        {"pct_done": (100.0, 60.0)},
        {"iteration": (1000, 600), "train_iters": (1000, 1000)},
        {"num_updates": (1000, 600), "max_update": (1000, 1000)},
        {"is_finished": ("yes", "no")},
        {"done": (1, 0)},
        {"crashed": (0, 1)},
        {"oom": (False, True)},
        {"exit_code": (0, 137)},
        {"error": (None, "CUDA out of memory")},
        {"step": (1000, 600), "max_steps": (1000, 1000)},
        {"global_step": (1000, 600), "num_training_steps": (1000, 1000)},
        {"iter": (999, 600), "max_iters": (1000, 1000)},
        {"trainer/global_step": (1000, 600), "config.maxSteps": (1000, 1000)},
        {"epoch": (3, 1), "num_train_epochs": (3, 3)},
        {"progress": (1.0, 0.6)},
    ],
    ids=str,
)
def test_unfinished_runs_in_other_words(columns):
    data = taken(cut(**columns))
    assert [row for row, _ in out(data)] == LARGEST
    assert all(reason.startswith("unfinished") for _, reason in out(data))
    assert any("unfinished: rows 21, 22" in warning for warning in data.warnings)


@pytest.mark.parametrize(
    "columns",
    [
        {"state": ("COMPLETED", "COMPLETED")},
        {"status": ("Succeeded", "Done")},
        {"state": ("California", "Texas")},
        {"optimizer_state": ("adam", "sgd")},
        {"finished": (True, True)},
        {"step": (1000, 1000), "max_steps": (1000, 1001)},
        {"epoch": (2, 2), "max_epochs": (3, 3)},
        {"num_steps": (1000, 3000)},
        {"notes": ("done", "with another seed")},
        {"optimizer": ("adam", "muon")},
    ],
    ids=str,
)
def test_control_finished_runs_stay(columns):
    assert out(taken(cut(**columns))) == []


def test_words_that_nobody_knows_are_asked_about():
    data = taken(cut(status=("fertig", "abgebrochen")))
    assert kinds(data.runs) == {"unknown-status"}
    assert "'abgebrochen', 'fertig'" in data.warnings[0]


@pytest.mark.parametrize(
    "table",
    [
        curves(),
        curves("iteration", seeds=1, sizes=8),
        curves(spacing=[1000, 2000, 4000, 8000, 16000]),
        curves("steps"),
        curves().with_columns(pl.format("seed {}", "seed").alias("seed")),
        curves().with_columns(pl.format("n{}-s{}", "params", "seed").alias("experiment")).drop("seed"),
        curves().with_columns(pl.format("n{}-s{}", "params", "seed").alias("trial")).drop("seed", "step"),
        curves().with_columns(pl.format("{} of {}", "seed", "params").alias("whatever")).drop("seed"),
    ],
    ids=range(8),
)
def test_checkpoints_are_one_run_under_any_label(table):
    data = taken(table)
    assert len(set(data.cluster)) == table.height // (5 if table.height == 50 else 6)
    assert any("count once" in note for note in data.runs.source["notes"])


@pytest.mark.parametrize(
    "table",
    [
        grid(),
        grid().with_columns(seed=0, batch_tokens=1e6, steps=pl.col("tokens") / 1e6),
        grid().with_columns(num_iterations=pl.col("tokens") / 1e6),
        grid().with_columns(name=pl.format("n{}", "params"), D=pl.col("tokens")).drop("tokens", "name"),
        grid().with_columns(run=pl.format("n{}-d{}", "params", "tokens")),
        pl.concat([grid(seed=s).with_columns(seed=pl.lit(s)) for s in range(3)]),
    ],
    ids=range(6),
)
def test_control_separate_runs_are_not_checkpoints(table):
    data = taken(table)
    assert data.cluster is None
    assert data.warnings == ()
