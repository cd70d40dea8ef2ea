"""One table for terminal and page: what a cell says, where it stands, and when lines fold."""

import math

import polars as pl
import pytest

from isoloss import table as tables
from isoloss.table import NOTHING, Table, cell, lines, table_of, text_table


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, NOTHING), (math.nan, NOTHING), (True, "yes"), (False, "no"), (12345, "12,345"), (0, "0"),
        (0.5, "0.5000"), (-0.5, "−0.5000"), (0.01234567, "0.01235"), (2.5e-7, "2.5e−7"),
        (123456.0, "1.235e5"), ("as it is", "as it is"),
    ],
)  # fmt: skip
def test_a_cell(value, words):
    assert cell(value) == words


def test_numbers_of_a_frame_stand_to_the_right():
    table = table_of("sizes", pl.DataFrame({"curve_name": ["a"], "params": [1200], "loss": [3.25]}))
    assert table == Table(
        "sizes", ("curve name", "params", "loss"), (("a", "1,200", "3.2500"),), (False, True, True)
    )


def test_lines_are_the_table_in_columns():
    table = text_table("two runs", ("run", "loss"), [("first", 3.0), ("the second", None)], numeric=True)
    assert list(lines(table)) == [
        "two runs:",
        "  run            loss",
        "  first        3.0000",
        "  the second        –",
    ]


def test_lines_keep_what_looks_like_markup_and_fold_only_to_a_width():
    long = "[bold]no markup[/bold] " + "word " * 40
    table = text_table("", ("name", "what"), [("a", long.strip())])
    whole = list(lines(table))
    assert len(whole) == 2
    assert whole[1].endswith(long.strip())
    folded = list(lines(table, 60))
    assert len(folded) > 4
    assert max(map(len, folded)) <= 60
    assert "".join("".join(folded[1:]).split()).endswith("word" * 40)


@pytest.mark.parametrize(
    "cells",
    [("a", "-0.5", "−3"), ("損失", "é", ""), ("two\nlines", "a\tb", "é"), ("[bold]x[/bold]", " y ", " z")],
)
def test_a_table_that_fits_is_written_as_one_that_folds(cells):
    table = Table("", ("name", "left", "right"), (cells, ("other", "longer", "12")), (False, False, True))
    assert list(lines(table)) == list(tables._folded(table, tables.WIDE))
