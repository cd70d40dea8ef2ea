"""Words and shares that move the loss beside the sizes are named; those that follow a size are not."""

import numpy as np
import polars as pl
import pytest
from run_tables import grid, law, taken

from isoloss.sources.mixed_labels import label_gap, share_gap

RNG = np.random.default_rng(11)


def messages(table):
    return [
        issue.message for issue in taken(table).runs.findings if issue.kind in ("mixed-label", "mixed-share")
    ]


def labelled(values, gap=0.0, seed=0):
    """A grid of 36 runs, those of the second value ``gap`` worse."""
    table = grid(6, 6, noise=2e-3, seed=seed)
    second = np.array(values) == "muon"
    return table.with_columns(
        pl.Series("optimizer", values), loss=pl.col("loss") * pl.Series(np.exp(gap * second))
    )


def random_values():
    return RNG.permutation(["adamw"] * 20 + ["muon"] * 16).tolist()


def test_a_word_that_moves_the_loss_is_named_with_by_how_much():
    table = labelled(random_values(), gap=0.03)
    (message,) = messages(table)
    assert message.startswith("optimizer moves the loss by ")
    assert message.endswith("% at equal sizes: one law over all its values")
    logs = np.log(table.select("params", "tokens", "loss").to_numpy().T)
    assert label_gap(logs, table["optimizer"].to_numpy()) == pytest.approx(0.03, abs=0.006)


def test_words_that_move_nothing_are_silent():
    assert [messages(labelled(random_values(), seed=seed)) for seed in range(20)] == [[]] * 20


def test_words_that_follow_a_size_may_be_its_bend():
    table = labelled(["adamw"] * 18 + ["muon"] * 18, gap=0.03)
    assert messages(table) == []


def test_names_of_runs_and_words_of_few_runs_are_silent():
    assert messages(labelled([f"run {index}" for index in range(36)], gap=0.03)) == []
    assert messages(labelled(["muon"] * 2 + ["adamw"] * 34, gap=0.3)) == []


def test_checkpoints_of_one_run_count_once():
    """Twelve runs lie off by chance: their rows would be sure of what the runs are not."""
    by_rows = 0
    for seed in range(6):
        rows = checkpoints(np.exp(0.02 * np.random.default_rng(seed).standard_normal(12)))
        assert messages(rows) == []
        logs = np.log(rows.select("params", "tokens", "loss").to_numpy().T)
        by_rows += label_gap(logs, rows["host"].to_numpy()) > 0
    assert by_rows >= 2


def checkpoints(off):
    """Of each run 30, with a loss that is so many times the law's."""
    parts = []
    for run, factor in enumerate(off):
        tokens = grid(1, 30)["tokens"]
        params, host = float(round(2e7 * 1.5**run)), "ab"[run % 2]
        loss = law(params, tokens.to_numpy()) * factor
        parts.append(
            pl.DataFrame(
                {"run_id": f"run {run}", "host": host, "params": params, "tokens": tokens, "loss": loss}
            )
        )
    return pl.concat(parts)


def shared(effect, name="code_share", seed=0):
    """36 runs of two sizes, and a part of code that costs up to ``effect``."""
    rng = np.random.default_rng(seed)
    N, D, part = 10 ** rng.uniform(7, 9, 36), 10 ** rng.uniform(9, 11, 36), rng.uniform(0, 1, 36)
    loss = law(N, D) * np.exp(effect * part + 0.003 * rng.standard_normal(36))
    return pl.DataFrame({"params": N, "tokens": D, name: part, "loss": loss})


@pytest.mark.parametrize("name", ["code_share", "data.fraction", "mix", "frac_web", "ratio of code"])
def test_a_share_that_moves_the_loss_is_named_with_by_how_much(name):
    table = shared(0.1, name)
    (message,) = messages(table)
    assert message.startswith(f"{name} moves the loss by ")
    logs = np.log(table.select("params", "tokens", "loss").to_numpy().T)
    assert share_gap(logs, table[name].to_numpy()) == pytest.approx(np.expm1(0.1), abs=0.02)


def test_shares_that_move_nothing_and_numbers_of_other_names_are_silent():
    assert [messages(shared(0.0, seed=seed)) for seed in range(20)] == [[]] * 20
    for name in ("hellaswag", "val_ratio", "overlap", "z"):
        assert messages(shared(0.1, name)) == []


def test_a_share_that_follows_a_size_may_be_its_bend():
    table = shared(0.0)
    for size in ("params", "tokens"):
        follows = table.with_columns(
            code_share=pl.col(size).rank() / 36, loss=pl.col("loss") + pl.col(size).log() ** 3 / 1e5
        )
        assert messages(follows) == []


def test_one_run_with_a_share_of_its_own_does_not_tell_what_it_costs():
    one = pl.int_range(36) == 7
    table = shared(0.0).with_columns(
        code_share=pl.when(one).then(0.5).otherwise(0.0),
        loss=pl.when(one).then(1.1 * pl.col("loss")).otherwise("loss"),
    )
    assert messages(table) == []


def test_checkpoints_count_once_for_a_share_too():
    by_rows = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        parts = dict(zip([f"run {run}" for run in range(12)], rng.uniform(0, 1, 12), strict=True))
        rows = checkpoints(np.exp(0.02 * rng.standard_normal(12))).drop("host")
        rows = rows.with_columns(code_share=pl.col("run_id").replace_strict(parts))
        assert messages(rows) == []
        logs = np.log(rows.select("params", "tokens", "loss").to_numpy().T)
        by_rows += share_gap(logs, rows["code_share"].to_numpy()) > 0
    assert by_rows >= 2
