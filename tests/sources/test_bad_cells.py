"""A wrong cell in a column that nothing reads: it stops nothing, is named, and no check takes it."""

import numpy as np
import polars as pl
import pytest
from run_tables import grid, kinds, law, one, taken

import isoloss
from isoloss.errors import InputError
from isoloss.sources import columns_for, runs

N_D = 6 * pl.col("params") * pl.col("tokens")
AT = {"params": 1e10, "tokens": 1e11}


def spoilt(table, name, word, row=5):
    """The table with ``word`` in one cell, as text: so a file holds it."""
    cells = pl.col(name).cast(pl.String)
    return table.with_columns(
        pl.when(pl.int_range(pl.len()) == row - 1).then(pl.lit(word)).otherwise(cells).alias(name)
    )


def whole():
    """A grid with columns that the law of N and D does not read."""
    return grid().with_columns(
        flops=N_D, recurrence=1.0, unique_tokens=1e13, vocab=50304.0, warmup_tokens=1e6
    )


UNREAD = ["flops", "recurrence", "unique_tokens", "vocab"]


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("word", ["-1", "0", "inf", "-inf", "1e400", "n/a", "12 or so"])
def test_a_wrong_cell_that_the_law_does_not_read_is_told_and_changes_nothing(name, word):
    data, good = taken(spoilt(whole(), name, word)), taken(whole())
    finding = one(data.runs, "unread-cells")
    assert (finding.severity, finding.rows) == ("warn", (5,))
    assert finding.message.startswith(f"{name} is ")
    assert " in row 5: not read here, and left out of the checks" in finding.message
    assert kinds(data.runs) - {"unread-cells"} == kinds(good.runs) == set()
    for ours, others in ((data.inputs["params"], good.inputs["params"]), (data.loss, good.loss)):
        assert np.array_equal(ours, others)


@pytest.mark.parametrize("name", UNREAD)
def test_a_fit_and_a_forecast_are_those_of_the_good_table(name):
    bad = spoilt(whole(), name, "-1")
    fit, good = isoloss.fit("chinchilla", bad), isoloss.fit("chinchilla", whole())
    assert fit.params == good.params
    assert [words for words in fit.warnings if words not in good.warnings] == [
        f"{name} is -1 in row 5: not read here, and left out of the checks"
    ]
    ours, others = isoloss.forecast(bad, **AT), isoloss.forecast(whole(), **AT)
    assert np.array_equal(ours.interval, others.interval)
    assert set(ours.warnings) - set(others.warnings) == set(fit.warnings) - set(good.warnings)


def test_the_column_is_named_as_in_the_table_and_of_many_rows_the_first():
    table = spoilt(spoilt(whole(), "flops", "-1"), "flops", "none", 2).rename({"flops": "Training FLOP"})
    for options in ({}, {"columns": {"flops": "Training FLOP"}}):
        message = one(taken(table, **options).runs, "unread-cells").message
        assert message.startswith("Training FLOP is wrong in rows 2, 5 ('none' in row 2): not read here")


@pytest.mark.parametrize("word", ["-1", "inf", "n/a"])
@pytest.mark.parametrize("needed", [("flops", "params", "loss"), ("params", "tokens", "loss")])
def test_where_a_column_is_read_its_wrong_cell_stops(word, needed):
    """By itself, or because tokens are derived from it."""
    table = spoilt(whole(), "flops", word).drop("tokens")
    with pytest.raises(InputError, match="row 5"):
        columns_for([], table, more=needed[:2])


def test_rows_that_are_not_kept_are_not_told():
    bad = spoilt(whole(), "flops", "-1")
    assert kinds(taken(bad, where="params > 1e8").runs) == set()
    without_loss = bad.with_columns(pl.when(pl.int_range(pl.len()) != 4).then("loss").alias("loss"))
    assert kinds(taken(without_loss).runs) == set()


def test_nan_is_an_empty_cell():
    """Of a scale an empty one is a question, as where plain models stand beside looped ones."""
    message = one(taken(spoilt(whole(), "flops", "nan")).runs, "unread-cells").message
    assert message == "flops is nan in row 5: not read here, and counts as empty"
    with pytest.raises(InputError, match="recurrence is empty in 1 of 25 runs"):
        isoloss.forecast(spoilt(whole(), "recurrence", "nan"), **AT)
    assert kinds(taken(spoilt(whole(), "warmup_tokens", "nan")).runs) == set()


def test_checks_go_by_the_good_cells():
    rule = "flops is 1.333 times 6 params tokens in every row (8 N D, with recomputation)"
    eight = whole().with_columns(flops=N_D * 8 / 6)
    assert one(taken(spoilt(eight, "flops", "-1")).runs, "flops-rule").message == rule
    loops = whole().with_columns(recurrence=pl.Series([1.0, 2.0, 4.0, 1.0, 2.0] * 5))
    assert "unread-scale" in kinds(taken(spoilt(loops, "recurrence", "-1")).runs)
    with pytest.raises(InputError, match="the runs differ in recurrence too"):
        isoloss.forecast(spoilt(loops, "recurrence", "-1"), **AT)
    two = whole().with_columns(vocab=pl.when(pl.int_range(25) < 9).then(32000.0).otherwise(50304.0))
    with pytest.raises(InputError, match="vocab has 2 values"):
        taken(spoilt(two, "vocab", "-1"))


def test_a_wrong_cell_makes_no_setting_of_what_follows_from_the_size():
    """Seeds of a size whose loops are wrong in one row are seeds; a batch goes by the compute."""
    seeds = pl.concat([whole(), whole().with_columns(loss=pl.col("loss") * 1.002)])
    seeds = seeds.with_columns(seed=pl.int_range(50) // 25)
    assert kinds(taken(spoilt(seeds, "recurrence", "-1")).runs) == {"unread-cells"}
    batch = pl.when(pl.col("flops") > 1e19).then(512.0).otherwise(64.0)
    assert kinds(taken(spoilt(whole().with_columns(bs=batch), "flops", "-1")).runs) == {"unread-cells"}


def test_budgets_are_those_of_the_good_rows():
    C, side = np.repeat(np.geomspace(1e18, 1e20, 5), 9), np.tile(np.geomspace(0.05, 0.7, 9), 5)
    N = 0.12 * (C / 6) ** 0.514 * side
    D = C / 6 / (N + 3e7)  # by N D, which leaves the embeddings out, there is no budget
    table = pl.DataFrame({"flops": C, "params": N, "tokens": D, "loss": law(N, D)})
    assert "at the largest size" in taken(spoilt(table, "flops", "-1")).source["one_sided"]
    assert "one_sided" not in taken(table.drop("flops")).source


@pytest.mark.parametrize("word", ["-1", "1e400"])
def test_a_column_of_nothing_else_is_told_and_left_alone(word):
    for name in ("flops", "recurrence"):
        table = whole().with_columns(pl.lit(word).alias(name))
        assert len(one(taken(table).runs, "unread-cells").rows) == 25
        assert np.array_equal(isoloss.forecast(table, **AT).loss, isoloss.forecast(whole(), **AT).loss)


def test_a_column_of_words_is_no_column_of_numbers():
    table = whole().with_columns(
        flops=pl.when(pl.int_range(25) < 12).then(pl.lit("1e20")).otherwise(pl.lit("x"))
    )
    assert "flops is left out: is 'x', not a number" in runs(table).source["notes"]
    with pytest.raises(InputError, match="'x', not a number"):
        runs(table, columns={"flops": "flops"})
