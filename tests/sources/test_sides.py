"""Budgets are those of the table's own FLOPs, or of N D; rows without weight are on no side."""

import numpy as np
import polars as pl
import pytest
from run_tables import law, taken


def budgets(least=0.1, most=10.0):
    """Five budgets of 9 sizes each about the best one, tokens by exact FLOPs with 30M of embeddings."""
    C, side = np.repeat(np.geomspace(1e18, 1e20, 5), 9), np.tile(np.geomspace(least, most, 9), 5)
    N = 0.12 * (C / 6) ** 0.514 * side
    D = C / 6 / (N + 3e7)
    return pl.DataFrame({"flops": C, "params": N, "tokens": D, "loss": law(N, D), "side": side})


def said(table, **options):
    return taken(table, **options).source.get("one_sided", "")


@pytest.mark.parametrize(
    ("ends", "end"), [((0.05, 0.7), "largest"), ((1.5, 20), "smallest"), ((0.1, 10), "")]
)
def test_each_value_of_the_flops_is_a_budget(ends, end):
    words = said(budgets(*ends))
    assert words.startswith(f"in 5 of 5 budgets the loss is lowest at the {end} size") == bool(end)
    assert bool(words) == bool(end)
    assert said(budgets(*ends), laws="power-floor") == ""


def test_of_flops_with_an_empty_cell_budgets_are_those_of_n_d():
    cut = budgets(0.05, 0.7).with_columns(tokens=pl.col("flops") / 6 / pl.col("params"))
    by_n_d = pl.when(pl.int_range(45) != 7).then(pl.col("flops").shuffle(seed=1))
    assert said(cut.with_columns(flops=by_n_d)) == said(cut.drop("flops")) != ""
    assert said(cut.with_columns(flops=pl.col("flops").shuffle(seed=1))) == ""


def test_rows_without_weight_are_on_no_side():
    table = budgets().with_columns(weight=(pl.col("side") < 0.7).cast(float))
    assert said(table) == ""
    assert "at the largest size" in said(table, weights="weight")
