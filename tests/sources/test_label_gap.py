"""Words that tell losses apart beside the sizes are named; others, and those that follow a size, are not."""

import numpy as np
import polars as pl
import pytest
from run_tables import grid, taken

from isoloss.sources.label_gap import label_gap

RNG = np.random.default_rng(11)


def said(table):
    return [issue.message for issue in taken(table).runs.findings if issue.kind == "mixed-label"]


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
    (message,) = said(table)
    assert message.startswith("optimizer moves the loss by ")
    assert message.endswith("% at equal sizes: one law over all its values")
    data = table.with_columns(pl.col("optimizer").alias("label"))
    assert label_gap(data, ["params", "tokens"], "label") == pytest.approx(0.03, abs=0.006)


def test_words_that_move_nothing_are_silent():
    assert [said(labelled(random_values(), seed=seed)) for seed in range(20)] == [[]] * 20


def test_words_that_follow_a_size_may_be_its_bend():
    table = labelled(["adamw"] * 18 + ["muon"] * 18, gap=0.03)
    assert said(table) == []


def test_names_of_runs_and_words_of_few_runs_are_silent():
    assert said(labelled([f"run {index}" for index in range(36)], gap=0.03)) == []
    assert said(labelled(["muon"] * 2 + ["adamw"] * 34, gap=0.3)) == []
