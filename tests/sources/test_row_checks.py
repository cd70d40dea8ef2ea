"""Checks of rows, each on the smallest table that must alarm it and on one that must not."""

import math

import polars as pl
import pytest

from isoloss.sources import endings, repeats, row_checks, runs

GOOD = {
    "params": [1e6, 1e7, 1e8, 1e9],
    "tokens": [2e7, 2e8, 2e9, 2e10],
    "loss": [5.0, 4.0, 3.2, 2.6],
}


def table(**columns):
    return runs(pl.DataFrame(GOOD | columns))


def kinds(check, **columns):
    return {issue.kind: issue.rows for issue in check(table(**columns))}


@pytest.mark.parametrize(
    "check",
    [row_checks.numbers, row_checks.warmup, repeats.duplicates, endings.endings, row_checks.mixtures],
)
def test_a_good_table_alarms_none(check):
    assert kinds(check) == {}


def test_numbers_that_cannot_be_are_named_by_row():
    assert kinds(row_checks.numbers, loss=[5.0, math.nan, 3.2, -1.0]) == {
        "loss-not-finite": (2,),
        "loss-not-positive": (4,),
    }
    assert kinds(row_checks.numbers, tokens=[0.0, -1.0, 2e9, 2e10]) == {"tokens-not-positive": (2,)}
    assert kinds(row_checks.numbers, loss=[5.0, None, 3.2, 2.6]) == {"no-loss": (2,)}


def test_a_run_inside_its_warmup_is_refused():
    columns = {"steps": [100.0, 200.0, 300.0, 400.0], "warmup_steps": [50.0, 200.0, 50.0, 50.0]}
    assert kinds(row_checks.warmup, **columns) == {"in-warmup": (2,)}


def test_copies_and_near_copies_are_told_apart():
    copy = {name: [*values, values[1]] for name, values in GOOD.items()}
    near = copy | {"loss": [*GOOD["loss"], 4.0 + 1e-12]}
    apart = copy | {"loss": [*GOOD["loss"], 4.001]}
    assert kinds(repeats.duplicates, **copy) == {"duplicate-rows": (5,)}
    assert kinds(repeats.duplicates, **near) == {"near-duplicates": (2, 5)}
    assert kinds(repeats.duplicates, **apart) == {}
    # Seeds tell rows apart that agree in all else.
    assert kinds(repeats.duplicates, **copy, seed=[1.0, 1.0, 1.0, 1.0, 2.0]) == {}


def test_unfinished_runs_are_told_by_status_and_by_steps():
    reasons = endings.unfinished_rows(
        table(
            status=["finished", "Running ", "finished", "finished"],
            steps=[100.0, 10.0, 99.5, 50.0],
            planned_steps=[100.0, 100.0, 100.0, 100.0],
        )
    )
    assert reasons == {2: "status is 'Running '", 4: "stopped at step 50 of 100"}
    assert endings.unfinished_rows(table(tokens=[0.0, 2e8, 2e9, 2e10])) == {1: "not a step was made"}


def test_diverged_runs_are_told_by_status_by_guessing_and_by_smaller_runs():
    assert endings.diverged_rows(table(status=["ok", "NaN", "ok", "ok"])) == {2: "status is 'NaN'"}
    guess = endings.diverged_rows(table(vocab=[100.0] * 4, loss=[5.0, 4.0, 3.2, 2.6]))
    assert guess == {1: f"loss 5 above ln 100 = {math.log(100):.4g}"}
    worse = endings.diverged_rows(table(loss=[5.0, 4.0, 3.2, 7.6]))
    assert worse == {4: "loss 7.6 where smaller runs reach 4"}
    # One smaller run that is better accuses nobody, nor do 1.4 times the second best.
    assert endings.diverged_rows(table(loss=[7.0, 7.0, 1.0, 9.0])) == {}
    assert endings.diverged_rows(table(loss=[5.0, 4.0, 3.2, 1.4 * 4.0])) == {}


def test_overfitting_on_repeated_data_is_no_divergence():
    columns = {"loss": [5.0, 4.0, 3.2, 7.6], "unique_tokens": [2e7, 2e8, 2e9, 1e9]}
    assert endings.diverged_rows(table(**columns)) == {}


def test_runs_that_one_law_cannot_hold():
    assert set(kinds(row_checks.mixtures, vocab=[100.0, 100.0, 200.0, 200.0])) == {"mixed-vocabularies"}
    assert set(kinds(row_checks.mixtures, family=["lstm", "lstm", "looped", "looped"])) == {"mixed-family"}
    assert kinds(row_checks.mixtures, unique_tokens=[2e7, 1e8, 2e9, 1e9]) == {
        "many-epochs": (4,),
        "epochs": (2,),
    }
    assert kinds(row_checks.mixtures, cooled=[True, False, True, True]) == {"mixed-cooldown": (2,)}
    assert kinds(row_checks.mixtures, cooled=[False] * 4) == {}
    assert kinds(row_checks.mixtures, n_layer=[1.0, 2.0, 2.0, 4.0]) == {"one-layer": (1,)}
