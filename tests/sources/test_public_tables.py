"""Checks over public run tables: the good ones raise nothing, the dirty ones are named row by row."""

import polars as pl
import pytest
from run_tables import kinds, one

from isoloss.sources import accept, runs, usable

EPOCH = "epoch-chinchilla/svg_extracted_data.csv"


@pytest.mark.parametrize(("name", "columns", "where", "rows"), [
    (EPOCH, {}, "loss < 3.41", 240),
    (EPOCH, {}, None, 245),
    ("kyo-takano-chinchilla/df.csv", {}, None, 234),
    ("porian/isoflop_points.csv", {"params": "n", "tokens": "t"}, "dataset = 'rw'", None),
    ("porian/isoflop_points.csv", {"params": "n", "tokens": "t"}, "dataset = 'owt2'", None),
    ("gadre-overtraining/runs_104.csv", {"loss": "loss_c4_val"}, "dataset = 'rpj'", 35),
    ("steplaw/dense_lr_bs_loss.csv", {}, "loss < 3.2", None),
    ("steplaw/moe_lr_bs_loss.csv", {}, None, 708),
])  # fmt: skip
def test_good_public_tables_raise_nothing(run_tables, name, columns, where, rows):
    runs_read = runs(run_tables / name, columns=columns, where=where)
    assert runs_read.findings == ()
    assert rows in (None, runs_read.frame.height)


def test_several_data_sets_under_one_law_are_told(run_tables):
    runs_read = runs(run_tables / "gadre-overtraining/runs_104.csv", columns={"loss": "loss_c4_val"})
    assert kinds(runs_read) == {"mixed-dataset"}
    assert "3 values" in one(runs_read, "mixed-dataset").message


def test_units_that_show_only_in_a_derived_column(run_tables):
    millions = runs(run_tables / EPOCH).frame.select(pl.col("params") / 1e6, "flops", "loss")
    runs_read = runs(millions)
    assert "params-unit" in kinds(runs_read, "refuse")


def test_the_unit_trap_of_datablations(run_tables):
    table = pl.read_csv(run_tables / "datablations/runs.csv").with_row_index("row", offset=1)
    fitted = pl.col("set") == "fit_182_outliers_removed"
    names = ("params", "tokens", "unique_tokens")
    assert not kinds(runs(table), "refuse")
    billions = table.with_columns(pl.when(fitted).then(pl.col(n) / 1e9).otherwise(n).alias(n) for n in names)
    runs_read = runs(billions)
    rows = tuple(billions.filter(fitted)["row"])
    refused = [finding for finding in runs_read.findings if finding.severity == "refuse"]
    assert [(f.kind, f.rows) for f in refused] == [("mixed-units", rows)] * 3


def test_steplaw_counts_its_batch_in_sequences(run_tables):
    runs_read = runs(
        run_tables / "steplaw/dense_lr_bs_loss.csv", columns={"steps": "ti", "batch_tokens": "bs"}
    )
    assert "sequences of 2048 tokens" in one(runs_read, "batch-unit").message


@pytest.mark.parametrize("export", ["comma", "dclm", "nemotron"])
def test_tracker_exports_in_gigaflop(run_tables, export):
    columns = {
        "params": "parameter_count", "tokens": "throughput/total_tokens", "flops": "throughput/total_gflops",
        "loss": "eval/paloma/macro_loss",
    }  # fmt: skip
    runs_read = runs(run_tables / f"openathena-isoflops/isoflop-{export}.csv", columns=columns)
    assert kinds(runs_read) == set()
    assert "flops is the column 'throughput/total_gflops' times 1e+09" in runs_read.source["notes"][-1]
    unnamed = pl.read_csv(run_tables / f"openathena-isoflops/isoflop-{export}.csv").rename(
        {columns["flops"]: "C"}
    )
    assert "gigaFLOP" in one(runs(unnamed, columns=columns | {"flops": "C"}), "flops-unit").message


def test_copies_in_openathena(run_tables):
    path = run_tables / "openathena-isoflops/isoflops_transform.csv"
    flagged = pl.read_csv(path).with_row_index("row", offset=1)
    pairs = runs(path, where="source = 'ml_scalefit'")
    rows = one(pairs, "near-duplicates").rows
    # Seven pairs, of each of which the authors flag one; two more that they flag differ in loss.
    reasons = flagged.filter(pl.col("row").is_in(rows))["reason"].to_list()
    assert (len(rows), reasons.count("exact_duplicate"), reasons.count("near_duplicate_params")) == (14, 4, 3)
    finding = one(runs(path, where="source <> 'marin_202603'"), "near-duplicates")
    assert len(finding.rows) > 200  # two readings of one figure
    whole = pl.concat([flagged.drop("row"), flagged.drop("row")[:3]])
    assert one(runs(whole), "duplicate-rows").rows == (506, 507, 508)


def test_the_dirty_rows_of_xlstm(run_tables):
    path = run_tables / "xlstm/isoflop_runs.csv"
    table = pl.read_csv(path).with_row_index("row", offset=1)
    runs_read = runs(path)
    assert one(runs_read, "no-loss").rows == tuple(table.filter(pl.col("final_val_loss").is_null())["row"])
    assert len(one(runs_read, "no-loss").rows) == 29
    early = table.filter(pl.col("last_step") < pl.col("planned_steps"))["row"]
    assert one(runs_read, "unfinished").rows == tuple(early)
    assert len(early) == 7
    bad = table.filter(pl.col("final_val_loss") > 5)["row"]
    assert one(runs_read, "diverged").rows == tuple(bad)
    usable_runs = usable(runs_read)
    assert usable_runs.frame.height + len(usable_runs.excluded) == 459
    assert {e.row for e in usable_runs.excluded if e.by_outcome} == set(bad)
    assert {e.row for e in usable_runs.excluded if e.reason.startswith("unfinished")} == set(early)
    assert kinds(accept(usable_runs)) == {"mixed-family", "mixed-context", "mixed-dataset"}
    alone = runs(path, where="arch = 'llama' AND context = 2048")
    assert accept(usable(alone)).findings == ()


def test_steplaw_diverged(run_tables):
    usable_runs = usable(runs(run_tables / "steplaw/dense_lr_bs_loss.csv"))
    assert all(e.by_outcome for e in usable_runs.excluded)
    assert usable_runs.frame["loss"].max() < 3.2
    assert usable_runs.frame.height > 1700
