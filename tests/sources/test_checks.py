"""Checks: each finds what it is for and names the rows, and none speaks up over a good table."""

import numpy as np
import polars as pl
import pytest
from run_tables import kinds, one

from isoloss.errors import InputError
from isoloss.sources import accept, runs, usable


def grid(sizes=6, horizons=4, seed=0):
    """A clean Chinchilla grid: 7e6 to 7e9 parameters, ratios of 5 to 160."""
    rng = np.random.default_rng(seed)
    params = np.repeat(np.geomspace(7e6, 7e9, sizes).round(), horizons)
    tokens = (params * np.tile(np.geomspace(5, 160, horizons), sizes)).round()
    noise = rng.normal(0, 0.005, len(params))
    loss = (1.8 + 480 * params**-0.35 + 2100 * tokens**-0.37) * np.exp(noise)
    return pl.DataFrame({"params": params, "tokens": tokens, "loss": loss})


def changed(rows, **values):
    """A clean grid with other values in ``rows`` (counting from 1)."""
    table = grid().with_row_index("row", offset=1)
    for name, value in values.items():
        table = table.with_columns(pl.when(pl.col("row").is_in(rows)).then(value).otherwise(name).alias(name))
    return table.drop("row")


@pytest.mark.parametrize("seed", range(20))
def test_clean_grids_raise_nothing(seed):
    runs_read = runs(grid(seed=seed))
    assert runs_read.findings == ()
    assert accept(runs_read) is runs_read
    assert usable(runs_read).excluded == ()


@pytest.mark.parametrize(
    ("least", "most", "ratio"),
    [
        (768, 1.5e9, 20),
        (768, 1e5, 300),
        (1e3, 1e5, 0.05),
        (5e8, 1e12, 20),
        (1e5, 1e8, 1e3),
        (1e8, 1e10, 0.02),
    ],
)
def test_clean_tables_of_any_scale_raise_no_alarm(least, most, ratio):
    params = np.geomspace(least, most, 8).round()
    table = pl.DataFrame({"params": params, "tokens": params * ratio, "loss": 3 * (params / 1e6) ** -0.08})
    assert runs(table).findings == ()


@pytest.mark.parametrize(
    ("names", "unit", "kind", "severity"),
    [
        (("params",), 1e9, "params-unit", "refuse"),
        (("params",), 1e6, "params-unit", "refuse"),
        (("params",), 1e3, "params-unit", "warn"),
        (("tokens",), 1e9, "tokens-unit", "refuse"),
        (("tokens",), 1e6, "tokens-unit", "refuse"),
        (("params", "tokens"), 1e9, "params-unit", "refuse"),
        (("params", "tokens"), 1e6, "params-unit", "warn"),  # might be a table of tiny models
    ],
)
def test_counts_in_another_unit(names, unit, kind, severity):
    runs_read = runs(grid().with_columns(pl.col(name) / unit for name in names))
    finding = one(runs_read, kind)
    assert (finding.severity, finding.mend) == (severity, "give raw counts: 7e9, not 7 for 7 billion")
    if severity == "refuse":
        with pytest.raises(InputError, match="thousands, millions, billions"):
            accept(runs_read)
    else:
        assert accept(runs_read) is runs_read


def test_a_column_of_two_units_is_refused_and_the_rows_named():
    table = changed([2, 9, 24], tokens=pl.col("tokens") / 1e9)
    finding = one(runs(table), "mixed-units")
    assert (finding.severity, finding.rows) == ("refuse", (2, 9, 24))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("perplexity", "loss-is-perplexity"),
        ("val_ppl", "loss-is-perplexity"),
        ("top1_accuracy", "loss-is-accuracy"),
        ("avg_acc", "loss-is-accuracy"),
        ("err", "loss-is-accuracy"),
    ],
)
def test_losses_named_like_something_else(name, kind):
    runs_read = runs(grid().rename({"loss": name}), columns={"loss": name})
    assert one(runs_read, kind).severity == "warn"


@pytest.mark.parametrize(
    "name", ["loss", "eval/paloma/macro_loss", "loss_accumulated", "exit_loss", "habit_loss"]
)
def test_losses_named_like_losses(name):
    assert runs(grid().rename({"loss": name}), columns={"loss": name}).findings == ()


def test_losses_that_behave_like_perplexity_or_bits():
    assert one(runs(grid().with_columns(pl.col("loss").exp() * 2)), "loss-is-perplexity")
    bytes_ = grid().with_columns(vocab=pl.lit(8), loss=pl.col("loss") * 0.05 + 1.7)
    assert not kinds(runs(bytes_))
    assert "loss-in-bits" in kinds(runs(bytes_.with_columns(pl.col("loss") / np.log(2))))


def test_a_batch_in_sequences():
    table = grid().with_columns(batch_tokens=pl.lit(256), steps=pl.col("tokens") / 256 / 2048)
    finding = one(runs(table), "batch-unit")
    assert "sequences of 2048 tokens" in finding.message
    right = table.with_columns(pl.col("batch_tokens") * 2048)
    assert not kinds(runs(right))
    wrong = right.with_columns(
        pl.when(pl.int_range(pl.len()) == 4).then(7.0).otherwise("steps").alias("steps")
    )
    assert one(runs(wrong), "batch-unit").rows == (5,)


@pytest.mark.parametrize(
    ("factor", "kind", "says"),
    [
        (1.0, None, ""),
        (1 / 3, "flops-rule", "2 N D"),
        (1 / 6, "flops-rule", "N D"),
        (1.5, "flops-rule", "1.5 times"),
        (1e-9, "flops-unit", "gigaFLOP"),
        (1e-12, "flops-unit", "teraFLOP"),
        (1 / 8.64e19, "flops-unit", "PF-days"),
    ],
)
def test_flops_under_another_rule(factor, kind, says):
    runs_read = runs(grid().with_columns(flops=6 * factor * pl.col("params") * pl.col("tokens")))
    assert kinds(runs_read) == ({kind} if kind else set())
    if kind:
        assert says in one(runs_read, kind).message


def test_exact_flops_are_no_finding():
    """Attention and head add a share that falls with size."""
    exact = 6 * pl.col("params") * pl.col("tokens") * (1 + 1e3 * pl.col("params") ** -0.5)
    assert not kinds(runs(grid().with_columns(flops=exact)))


@pytest.mark.parametrize("value", [-0.1, 0.0, float("nan"), float("inf"), float("-inf")])
def test_losses_that_cannot_be(value):
    runs_read = runs(changed([3, 7], loss=pl.lit(value)))
    kind = "loss-not-positive" if np.isfinite(value) else "loss-not-finite"
    assert (one(runs_read, kind).severity, one(runs_read, kind).rows) == ("refuse", (3, 7))
    with pytest.raises(InputError, match="rows 3, 7"):
        accept(runs_read)


def test_negative_losses_on_request():
    assert not kinds(runs(changed([3], loss=pl.lit(-0.1)), allow_negative=True), "refuse")
    assert kinds(runs(changed([3], loss=pl.lit(np.nan)), allow_negative=True), "refuse") == {
        "loss-not-finite"
    }


@pytest.mark.parametrize("name", ["params", "tokens", "flops", "unique_tokens"])
def test_counts_that_cannot_be(name):
    table = changed([4], params=-pl.col("params")) if name == "params" else grid()
    if name != "params":
        table = table.with_columns(
            pl.when(pl.int_range(pl.len()) == 3).then(float("-inf")).otherwise(1e9).alias(name)
        )
    runs_read = runs(table)
    (finding,) = [f for f in runs_read.findings if f.kind.startswith(f"{name}-not")]
    assert (finding.severity, finding.rows) == ("refuse", (4,))


def test_runs_inside_their_warmup():
    for done, name in (("tokens", "warmup_tokens"), ("steps", "warmup_steps")):
        table = grid().with_columns(steps=pl.col("tokens") / 1e5)
        limit = table[done].sort()[2]
        finding = one(runs(table.with_columns(pl.lit(limit).alias(name))), "in-warmup")
        short = table.with_row_index("row", offset=1).filter(pl.col(done) <= limit)["row"]
        assert (finding.severity, finding.rows) == ("refuse", tuple(short))


def test_copies_and_near_copies_are_named():
    table = pl.concat([grid(), grid()[[4, 9]]])
    assert one(runs(table), "duplicate-rows").rows == (25, 26)
    assert "5 = 25; 10 = 26" in one(runs(table), "duplicate-rows").message
    near = pl.concat([grid(), grid()[[4, 9]].with_columns(pl.col("loss") * (1 + 1e-12))])
    assert one(runs(near), "near-duplicates").rows == (5, 10, 25, 26)
    assert "duplicate-rows" not in kinds(runs(near))
    seeds = near.with_columns(seed=pl.int_range(pl.len()))
    assert not kinds(runs(seeds))
    noise = pl.concat([grid(), grid()[[4, 9]].with_columns(pl.col("loss") * (1 + 1e-4))])
    assert not kinds(runs(noise))


def test_unfinished_runs():
    table = grid().with_columns(status=pl.lit("finished"), steps=pl.lit(999.0), planned_steps=pl.lit(1000.0))
    assert not kinds(runs(table))
    crashed = table.with_columns(
        status=pl.Series(["finished"] * 20 + ["Crashed", "running", "failed", "diverged"]),
        steps=pl.Series([999.0] * 10 + [500.0] + [999.0] * 13),
    )
    runs_read = runs(crashed)
    assert one(runs_read, "unfinished").rows == (11, 21, 22, 23)
    assert one(runs_read, "diverged").rows == (24,)
    usable_runs = usable(runs_read)
    assert [(e.row, e.by_outcome) for e in usable_runs.excluded] == [
        (11, False), (21, False), (22, False), (23, False), (24, True),
    ]  # fmt: skip
    assert usable_runs.excluded[0].reason == "unfinished: stopped at step 500 of 1000"
    assert usable_runs.frame.height == usable_runs.source["rows_kept"] == 19
    assert not kinds(usable_runs)


def test_unknown_states_exclude_nothing():
    assert not kinds(runs(grid().with_columns(state=pl.lit("California"))))


def test_diverged_runs_are_those_that_smaller_ones_beat():
    runs_read = runs(changed([24], loss=pl.lit(5.0)))  # the largest, on most tokens
    assert one(runs_read, "diverged").rows == (24,)
    assert [(e.row, e.by_outcome) for e in usable(runs_read).excluded] == [(24, True)]
    low = runs(changed([1], loss=pl.lit(0.5)))  # one loss too low accuses nobody
    assert not kinds(low)
    above = runs(grid().with_columns(vocab=pl.lit(50_000), loss=pl.Series([11.0] + [3.0] * 23)))
    assert "ln 50000" in one(above, "diverged").message


def test_diverged_runs_are_those_of_the_plain_definition():
    rng = np.random.default_rng(0)
    accused = 0
    for _ in range(60):
        count = int(rng.integers(1, 40))
        params, tokens = rng.integers(1, 8, (2, count)) * 1e6
        loss = rng.choice([1.0, 1.2, 1.6, 2.0, 2.5, 4.0, 9.0], count)
        expected = []
        for place in range(count):
            smaller = (params <= params[place]) & (tokens <= tokens[place])
            smaller[place] = False
            below = np.sort(loss[smaller])
            if len(below) >= 2 and 1.5 * below[1] < loss[place]:
                expected.append(place + 1)
        runs_read = runs(pl.DataFrame({"params": params, "tokens": tokens, "loss": loss}))
        rows = [row for finding in runs_read.findings if finding.kind == "diverged" for row in finding.rows]
        assert rows == expected
        accused += len(rows)
    assert accused > 100


def test_runs_that_repeat_their_data_may_overfit():
    table = changed([24], loss=pl.lit(5.0)).with_columns(unique_tokens=pl.col("tokens") / 3)
    assert kinds(runs(table)) == {"epochs"}


def test_epochs():
    passes = [1.0, 1.0005, 1.5, 4.0, 5.0, 9000.0] + [1.0] * 18
    table = grid().with_columns(unique_tokens=pl.col("tokens") / pl.Series(passes))
    runs_read = runs(table)
    assert one(runs_read, "epochs").rows == (3, 4)
    assert one(runs_read, "many-epochs").rows == (5, 6)
    assert not kinds(runs_read, "refuse")


def test_mixed_vocabularies_are_refused_unless_in_bits_per_byte():
    for name, values in (("vocab", [32_000, 50_000]), ("tokenizer", ["a", "b"])):
        table = grid().with_columns(pl.Series(name, values * 12))
        assert one(runs(table), "mixed-vocabularies").severity == "refuse"
        bits = table.rename({"loss": "val_bpb"})
        assert "mixed-vocabularies" not in kinds(runs(bits, columns={"loss": "val_bpb"}))
        assert not kinds(runs(table, where=f"{name} = {values[0]!r}"))


def test_checkpoints_beside_finals_and_single_layers():
    table = grid().with_columns(cooled=pl.Series([False, True] * 12), n_layer=pl.Series([1, 2, 3, 4] * 6))
    runs_read = runs(table)
    assert one(runs_read, "mixed-cooldown").rows == tuple(range(1, 25, 2))
    assert one(runs_read, "one-layer").rows == tuple(range(1, 25, 4))
    assert not kinds(runs(table, where="cooled AND n_layer > 1"))
    assert not kinds(runs(table, where="NOT cooled AND n_layer = 1"))


def test_missing_values_are_left_out_with_a_reason():
    table = changed([2], loss=None).with_columns(
        tokens=pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("tokens")
    )
    runs_read = runs(table)
    assert kinds(runs_read) == {"no-loss", "no-tokens"}
    assert [(e.row, e.reason, e.by_outcome) for e in usable(runs_read).excluded] == [
        (2, "no loss", False),
        (6, "no tokens", False),
    ]
    usable_runs = usable(usable(runs_read))
    assert len(usable_runs.excluded) == 2
    with pytest.raises(InputError, match="no row is usable"):
        usable(runs(grid().with_columns(loss=pl.lit(None))))


def test_evaluations_before_the_first_step_are_unfinished():
    runs_read = runs(changed([1], tokens=0.0))
    assert one(runs_read, "unfinished").rows == (1,)
    assert not kinds(runs_read, "refuse")


@pytest.mark.parametrize("label", ["eval", None])
def test_two_kinds_of_loss_in_one_column_are_refused_with_the_column_that_mixes_them(label):
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 7), np.geomspace(1e9, 1e11, 6)))
    second = np.arange(42) % 3 == 0
    loss = (1.8 + 480 * N**-0.34 + 2000 * D**-0.37) * np.where(second, 1.9, 1.0)
    table = pl.DataFrame({"params": N, "tokens": D, "loss": loss})
    if label:
        table = table.with_columns(pl.Series(label, np.where(second, "paloma", "c4")))
    words = "eval tells them apart" if label else "losses of two kinds in one column"
    with pytest.raises(InputError, match=words):
        accept(usable(runs(table)))
    assert usable(runs(table, accepted=("many-diverged",))).excluded
    few = table.with_columns(pl.when(pl.int_range(42) == 41).then(9.0).otherwise("loss").alias("loss"))
    few = few.filter(~pl.Series(second) | (pl.int_range(42) == 41))
    assert len(accept(usable(runs(few))).excluded) == 1
