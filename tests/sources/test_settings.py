"""Settings in columns that nobody reads: told where they change by no rule of the size, silent elsewhere."""

import numpy as np
import polars as pl
import pytest
from run_tables import grid, kinds, taken

from isoloss.sources import columns_for

RNG = np.random.default_rng(7)


def messages(table, **options):
    return [
        issue.message for issue in taken(table, **options).runs.findings if issue.kind == "unread-setting"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "batch_size",
        "bs",
        "global_batch_size",
        "batch",
        "config.batch_size",
        "weight_decay",
        "dropout",
        "warmup",
    ],
)
def test_a_setting_by_name_that_changes_by_no_rule_is_told(name):
    table = grid().with_columns(pl.Series(name, RNG.choice([32.0, 64.0, 128.0, 256.0], 25)))
    (message,) = messages(table)
    assert message.startswith(f"{name} changes among the runs and is not used: ")
    batch = f"name it with --column batch_tokens={name}"
    assert message.endswith(batch if "b" in name else "keep one value with --where")
    assert messages(table.with_columns(pl.lit(64).alias(name))) == []
    many = grid().with_columns(pl.Series(name, RNG.uniform(32, 256, 25)))
    assert len(messages(many)) == 1


def test_what_is_named_is_read_and_told_no_more():
    table = grid().with_columns(bs=pl.Series(RNG.choice([32, 64, 128], 25)))
    assert messages(table, columns={"batch_tokens": "bs"}) == []
    assert messages(table.with_columns(batch_tokens=pl.col("bs") * 2048)) == []


def test_a_sweep_at_equal_sizes_is_told_and_what_follows_from_it_is_not():
    sweep = pl.concat([grid(seed=bs).with_columns(bs=pl.lit(bs)) for bs in (32, 64, 128)] * 2)
    steps = sweep.with_columns(
        ti=pl.col("tokens") / pl.col("bs") / 2048, loss=pl.col("loss") + 1e-3 * pl.int_range(150)
    )
    (message,) = messages(steps)
    assert message.startswith("bs changes among the runs")


@pytest.mark.parametrize("name", ["experts", "schedule_power2", "ratio of code"])
def test_any_other_number_of_few_values_is_told(name):
    few = grid().with_columns(pl.Series(name, RNG.choice([0.0, 1.0, 2.0], 25)))
    assert messages(few) == [f"{name} changes among the runs and is not used: keep one value with --where"]
    assert messages(few.with_columns(pl.Series(name, RNG.uniform(0, 1, 25)))) == []


@pytest.mark.parametrize(
    "name",
    [
        "train_loss", "val_acc", "bpb_wiki", "wall_time", "gpu_hours", "id", "job_id", "random_seed_2", "rep",
        "num_gpus", "nodes", "num_blocks", "model_width", "year", "tflops", "last_epoch", "micro_batch_size",
        "version", "params_no_embed",
    ],
)  # fmt: skip
def test_losses_times_names_seeds_and_machines_are_no_settings(name):
    assert messages(grid().with_columns(pl.Series(name, RNG.choice([1, 2, 4], 25)))) == []


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("topk", pl.col("params").rank("dense")),
        ("experts", (pl.col("params").rank("dense") * 7) % 5 + 1),
        ("chinchilla_multiplier", (pl.col("tokens") / pl.col("params")).round(1)),
        (
            "global_batch",
            pl.lit(2) ** (pl.col("tokens").log(2) * 0.7 + 0.2 * pl.col("params").log(2)).round(),
        ),
        ("bs", 64 * (1 + (pl.col("tokens") > 4e9))),
        ("weight_decay", pl.col("params") ** -0.3),
    ],
)
def test_what_follows_from_the_sizes_is_silent(name, rule):
    table = grid().with_columns(rule.alias(name))
    assert table[name].n_unique() > 1
    assert messages(table) == []
    shuffled = table.with_columns(pl.col(name).shuffle(seed=3))
    assert len(messages(shuffled)) == (name != "chinchilla_multiplier")  # of many values and no known name


def test_loops_are_recurrence_and_a_batch_in_tokens_is_one():
    table = grid().with_columns(loops=pl.Series([1, 2, 4, 8, 2] * 5), tokens_per_batch=pl.lit(65536))
    data = columns_for("chinchilla", table)
    assert data.runs.columns["recurrence"] == "loops"
    assert data.runs.columns["batch_tokens"] == "tokens_per_batch"


def test_the_batch_of_steplaw_is_told_and_that_of_marin_follows_from_its_sizes(run_tables):
    (message,) = messages(run_tables / "steplaw/dense_lr_bs_loss.csv", where="loss < 3.2")
    assert message == "bs changes among the runs and is not used: name it with --column batch_tokens=bs"
    marin = {
        "params": "parameter_count",
        "tokens": "throughput/total_tokens",
        "loss": "eval/paloma/macro_loss",
    }
    for name in ("comma", "dclm", "nemotron"):
        assert messages(run_tables / f"openathena-isoflops/isoflop-{name}.csv", columns=marin) == []
    gadre = taken(run_tables / "gadre-overtraining/runs_104.csv", columns={"loss": "loss_c4_val"})
    assert "unread-setting" not in kinds(gadre.runs)
