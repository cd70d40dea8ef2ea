"""Seeds, reruns, copies and labels: which rows are one run, each with a control."""

import numpy as np
import polars as pl
import pytest
from run_tables import curves, cut, grid, kinds, out, taken

from isoloss import fit
from isoloss.errors import Refusal
from isoloss.sources.repeats import last_digit


@pytest.mark.parametrize("seeds", [(42, 42), (0, 0), ("first", "first")])
def test_a_seed_that_was_run_again_is_one_run(seeds):
    first, second = grid(), grid().with_columns(pl.col("loss") + 1e-5)
    table = pl.concat([first.with_columns(seed=pl.lit(seeds[0])), second.with_columns(seed=pl.lit(seeds[1]))])
    data = taken(table)
    assert len(data.loss) == 25
    assert {reason[:7] for _, reason in out(data)} == {"a rerun"}


def test_one_run_written_with_two_roundings_is_one_run():
    for digits in (2, 3):
        table = pl.concat(
            [grid().with_columns(pl.col("loss").round(6)), grid().with_columns(pl.col("loss").round(digits))]
        )
        data = taken(table)
        assert [row for row, _ in out(data)] == list(range(26, 51))
        assert len(data.loss) == 25


@pytest.mark.parametrize("factor", [1.0, 1 / np.log(2), 1e-5, 0.37, 1e4])
def test_a_factor_on_the_losses_changes_no_copies(factor):
    seeds = pl.concat([grid(seed=s) for s in range(8)]).with_columns(pl.col("loss").round(3))
    assert seeds.is_duplicated().sum() > 10
    scaled = {"columns": {"loss": "ce"}, "allow_negative": True}
    assert out(taken(seeds.select("params", "tokens", ce=pl.col("loss") * factor), **scaled)) == []
    exact = pl.concat([grid(), grid()[3:6]]).select("params", "tokens", ce=pl.col("loss") * factor)
    assert [row for row, _ in out(taken(exact, **scaled))] == [26, 27, 28]
    twice = pl.concat([grid(), grid().with_columns(pl.col("loss").round(3))])
    coarse = taken(twice.select("params", "tokens", ce=pl.col("loss") * factor), **scaled)
    assert [row for row, _ in out(coarse)] == list(range(26, 51))


@pytest.mark.parametrize("factor", [1.0, 1 / np.log(2), 3e-7])
def test_thelast_digit_of_losses_in_any_unit(factor):
    rng = np.random.default_rng(1)
    for digits in range(1, 5):
        losses = np.round(rng.uniform(2, 5, 300), digits)
        assert last_digit(losses * factor) == pytest.approx(factor * 10.0**-digits)
    assert last_digit(rng.uniform(2, 5, 300) * factor) is None
    assert last_digit(np.array([np.nan, 0.0])) is None


def test_control_seeds_are_no_reruns():
    table = pl.concat([grid(seed=s).with_columns(seed=pl.lit(s)) for s in (1, 2)])
    assert out(taken(table)) == []
    assert out(taken(table.drop("seed"))) == []
    assert taken(table.drop("seed")).warnings == ()


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("domain", ["c4_en", "wiki", "books"]),
        ("eval_set", ["c4", "pile"]),
        ("Tag", ["train/loss", "val/loss"]),
        ("lab", ["A", "B"]),
    ],
)
def test_rows_that_differ_in_a_label_are_no_seeds(label, values):
    parts = [
        grid(seed=place).with_columns(pl.col("loss") + 0.05 * place, pl.lit(value).alias(label))
        for place, value in enumerate(values)
    ]
    data = taken(pl.concat(parts))
    assert any(
        f"differ in {label}" in warning and f"{label} = '{values[0]}'" in warning for warning in data.warnings
    )
    assert len(set(data.cluster)) == 25
    assert taken(pl.concat(parts), where=f"\"{label}\" = '{values[0]}'").warnings == ()


def test_control_labels_that_say_nothing_are_silent():
    table = grid().with_columns(note=pl.format("run of {}", "params"), who=pl.lit("me"))
    assert taken(table).warnings == ()
    seeds = pl.concat(
        [grid(seed=s).with_columns(uid=pl.format("{}-{}", pl.lit(s), pl.int_range(25))) for s in (1, 2)]
    )
    assert taken(seeds).warnings == ()


@pytest.mark.parametrize("gap", [0.02, -0.05, 0.2])
def test_two_evaluation_losses_stacked_are_told(gap):
    table = pl.concat([grid(noise=1e-3), grid(noise=1e-3, seed=1).with_columns(pl.col("loss") + gap)])
    assert "stacked" in kinds(taken(table).runs)


def test_two_readings_of_one_plot_are_told():
    rng = np.random.default_rng(3)
    loose = [
        pl.col(name) * pl.Series(np.exp(rng.normal(0, 0.002, 25))) for name in ("params", "tokens", "loss")
    ]
    assert "paired" in kinds(taken(pl.concat([grid(), grid().with_columns(loose)])).runs)
    assert "paired" not in kinds(taken(grid()).runs)
    assert "paired" not in kinds(taken(pl.concat([grid(), grid(seed=4)])).runs)


@pytest.mark.parametrize("name", ["run_id", "run", "trial"])
def test_steps_logged_twice_after_a_restart_are_taken_once(name):
    run = curves(seeds=1, sizes=6).with_columns(pl.format("n{}", "params").alias(name)).drop("seed")
    repeated = run[2:4].with_columns(pl.col("loss") * 0.99)
    table = pl.concat([run[:4], repeated, run[4:]])
    data = taken(table)
    assert [row for row, _ in out(data)] == [3, 4]
    assert len(set(data.cluster)) == 6
    assert out(taken(run)) == []


def test_steps_logged_at_other_steps_after_a_restart_and_files_in_any_order():
    run = curves(seeds=1, sizes=6).with_columns(pl.format("n{}", "params").alias("run")).drop("seed")
    shifted = run[1:3].with_columns(pl.col("step") + 500, pl.col("tokens") + 5e8)
    assert [row for row, _ in out(taken(pl.concat([run[:3], shifted, run[3:]])))] == [3]
    assert out(taken(run.reverse())) == []
    sets = pl.concat([run.with_columns(set=pl.lit(name)) for name in ("a", "b")])
    assert not any("logged twice" in reason for _, reason in out(taken(sets)))


def test_a_refusal_says_its_reason_and_under_it_what_was_left_out():
    table = cut(state=("crashed", "finished"))
    with pytest.raises(Refusal) as caught:
        fit("power", table, params="params")
    reason, left_out, *_ = caught.value.what.splitlines()
    assert reason.startswith("power has 2 free parameters")
    assert left_out.startswith("  warning: left out as unfinished: rows 1, 2, 3")
    with pytest.raises(Refusal) as caught:
        fit("power", grid()[:1])
    assert caught.value.what.splitlines()[0].startswith("power has 2 free parameters")
