"""Scales that a law has no input for: told where they vary beside its inputs, silent elsewhere."""

import numpy as np
import polars as pl
import pytest
from run_tables import grid, taken

import isoloss
from isoloss.errors import InputError
from isoloss.laws import FORMS, from_function, registered
from isoloss.sources.scales import _NAMED


def messages(table, laws="chinchilla", **options):
    issues = taken(table, laws, **options).runs.findings
    return [issue.message for issue in issues if issue.kind == "unread-scale"]


def varied(name="recurrence", values=(1, 2, 4, 8, 2)):
    """The grid of 25 runs, with a column that goes through ``values``."""
    return grid().with_columns(pl.Series(name, (list(values) * 25)[:25]))


@pytest.mark.parametrize(("name", "mend"), [
    ("recurrence", "fit loop-total or keep one value of recurrence with --where"),
    ("num_loops", "fit loop-total or keep one value of num_loops with --where"),
    ("position", "keep one value of position with --where"),
])  # fmt: skip
def test_a_scale_that_varies_and_that_the_law_does_not_take_is_told(name, mend):
    ours = "position" if name == "position" else "recurrence"
    told = f"the runs differ in {ours} too, which chinchilla does not read. {mend[0].upper()}{mend[1:]}"
    assert messages(varied(name)) == [told]
    assert told in isoloss.fit("chinchilla", varied(name)).warnings
    with pytest.raises(InputError, match=f"the runs differ in {ours} too"):
        isoloss.forecast(varied(name), params=1e10, tokens=1e11)


def test_one_value_is_silent_in_the_column_and_by_where():
    assert messages(varied(values=[4])) == []
    assert messages(varied(values=[None])) == []
    assert messages(varied(), where="recurrence = 2") == []
    assert messages(varied(values=[1, None])) != []


def test_what_a_law_reads_is_silent_under_its_own_name_too(monkeypatch):
    assert messages(varied(), "loop-total") == []
    own = from_function(
        "own",
        lambda at, x: at["E"] + x["params"] ** -0.3 / x["loops"] + x["tokens"] ** -0.3,
        formula="L = E + 1 / (N^0.3 loops) + D^-0.3",
        inputs=("params", "tokens", "loops"),
        starts={"E": (1.0,)},
    )
    monkeypatch.setitem(FORMS, "own", own)
    assert messages(varied("loops"), own) == []
    assert messages(varied(), "chinchilla", columns={"position": "recurrence"}) != []
    assert messages(varied(), ["chinchilla", "loop-total"]) == []
    (both,) = messages(varied(), ["chinchilla", "kaplan-nd"])
    assert "which chinchilla and kaplan-nd do not read. Fit loop-total or" in both


def test_data_are_repeated_by_unique_tokens_or_by_epochs():
    unique = grid().with_columns(unique_tokens=pl.col("tokens") / pl.Series(np.resize([1, 2, 4], 25)))
    (told,) = messages(unique)
    assert told.endswith("Fit data-constrained or keep one value of unique_tokens with --where")
    (told,) = messages(
        unique.select("params", "tokens", "loss", epoch=pl.col("tokens") / pl.col("unique_tokens"))
    )
    assert "differ in unique_tokens (tokens / epochs) too" in told
    assert told.endswith("keep one value of epoch with --where")
    assert messages(unique, "data-constrained") == []
    for once in (pl.col("tokens"), 2 * pl.col("tokens"), pl.col("tokens") / 3, pl.lit(1e9)):
        assert messages(grid().with_columns(unique_tokens=once)) == []
    batch = {"steps": pl.col("tokens") / 1e5, "batch_tokens": pl.lit(1e5), "unique_tokens": pl.col("tokens")}
    assert messages(grid().with_columns(**batch), "kaplan-ns") == []


def test_a_law_of_one_size_is_told_the_other_unless_it_follows():
    (told,) = messages(grid().with_columns(flops=6 * pl.col("params") * pl.col("tokens")), "power-floor")
    assert told == (
        "the runs differ in tokens too, which power-floor does not read. Fit chinchilla or keep one value of "
        "tokens with --where"
    )
    line = (
        grid().filter(pl.col("tokens") == pl.col("tokens").max()).with_columns(tokens=20 * pl.col("params"))
    )
    assert messages(line, "power-floor") == []
    assert messages(grid().rename({"loss": "best"}), "optimal-params", columns={"loss": "best"}) == []


@pytest.mark.parametrize("name", _NAMED)
def test_the_laws_that_are_named_can_be_fitted(name):
    assert registered(name).gives == "loss"
