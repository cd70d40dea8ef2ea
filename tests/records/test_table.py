"""The loss table: one row per run and evaluation, and none of a planned run's absence."""

import polars as pl
import pytest

from isoloss.records import load
from isoloss.records.table import loss_table

CONTRACT = [
    "run_id", "study", "family", "params", "params_total", "params_executed", "tokens", "flops_6nd",
    "flops_exact", "loss", "loss_se", "bits_per_byte", "n_layer", "d_model", "d_ff", "n_head", "recurrence",
    "context", "vocab", "batch_tokens", "learning_rate", "seed", "step", "cooled", "status",
]  # fmt: skip


@pytest.fixture(scope="module")
def data(ran):
    return load(ran.folder)


@pytest.fixture(scope="module")
def table(data):
    return data.table()


def rows(table, run_id):
    return table.filter(pl.col("run_id") == run_id)


def test_the_contract_columns_are_there_in_their_order(table):
    assert [name for name in table.columns if name in CONTRACT] == CONTRACT


def test_one_row_per_run_and_evaluation(table, data):
    assert len(table) == sum(len(record.evaluations) for record in data.records) + 2
    assert table.select("run_id", "step", "cooled").is_unique().all()
    assert set(table["run_id"]) == {run["run_id"] for run in data.plan["runs"]}


def test_rows_say_what_the_record_says(table, data):
    for record in data.records:
        for row, evaluation in zip(rows(table, record.run_id).to_dicts(), record.evaluations, strict=True):
            assert row["loss"] == evaluation.loss
            assert row["loss_se"] == evaluation.loss_se
            assert row["bits_per_byte"] == evaluation.bits_per_byte
            assert (row["step"], row["tokens"], row["cooled"]) == (
                evaluation.step,
                evaluation.step * 4 * 16,
                evaluation.cooled,
            )
            assert row["params"] == record.counts.params
            assert row["flops_6nd"] == 6 * record.counts.params_executed * row["tokens"]
            assert row["flops_exact"] == record.counts.flops_exact_per_token * row["tokens"]
            assert row["status"] == record.status


def test_shape_and_settings_are_columns(table, ran):
    row = rows(table, ran.ids["looped"]).to_dicts()[-1]
    expected = {
        "n_layer": 1,
        "d_model": 8,
        "d_ff": 32,
        "n_head": 2,
        "recurrence": 2,
        "context": 16,
        "vocab": 300,
    }
    assert {key: row[key] for key in expected} == expected
    assert (row["batch_tokens"], row["learning_rate"], row["seed"]) == (64, 0.01, 0)
    lstm = rows(table, ran.ids["lstm"]).to_dicts()[-1]
    assert (lstm["n_head"], lstm["recurrence"]) == (None, 1)
    assert row["params_executed"] > row["params"]
    assert lstm["params_executed"] == lstm["params"]


def test_a_cooled_row_stands_at_every_d_point(table, ran):
    for family in ("transformer", "lstm", "looped", "my-bigram"):
        cooled = rows(table, ran.ids[family]).filter(pl.col("cooled"))
        assert cooled["tokens"].to_list() == [640, 1280]


def test_a_run_that_diverged_keeps_its_step_and_what_it_measured(table, ran):
    diverged = rows(table, ran.ids["my-unsteady"])
    assert set(diverged["status"]) == {"diverged"}
    assert set(diverged["diverged_step"]) == {5}
    assert diverged["step"].to_list() == [0, 1, 2, 3, 4]
    assert diverged["loss"].is_finite().all()
    assert "not finite at update 5" in diverged["reason"][0]


@pytest.mark.parametrize(("family", "reason"), [("my-broken", "broken on purpose"), ("my-killed", "SIGKILL")])
def test_a_failed_run_has_one_row_without_any_loss(table, ran, family, reason):
    (row,) = rows(table, ran.ids[family]).to_dicts()
    assert row["status"] == "failed"
    assert reason in row["reason"]
    measured = ("loss", "loss_se", "bits_per_byte", "tokens", "step", "cooled", "flops_6nd", "flops_exact")
    assert all(row[key] is None for key in measured), "null, never 0"
    assert row["params"] > 0


def test_a_planned_run_without_record_or_failure_is_running(data):
    table = loss_table(data.plan, [], {})
    assert table["status"].to_list() == ["running"] * 8
    assert table["loss"].null_count() == 8


def test_a_run_that_diverged_before_any_evaluation_still_has_its_row(data, ran):
    record = next(r for r in data.records if r.run_id == ran.ids["my-unsteady"])
    bare = record.model_copy(update={"evaluations": [], "diverged_step": 0})
    (row,) = rows(loss_table(data.plan, [bare], {}), record.run_id).to_dicts()
    assert (row["status"], row["diverged_step"], row["loss"]) == ("diverged", 0, None)
