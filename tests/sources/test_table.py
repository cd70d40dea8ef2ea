"""The records of a table."""

import polars as pl

from isoloss.sources.table import Runs, row_words


def test_rows_are_named_and_a_long_list_is_cut():
    assert row_words([7]) == "row 7"
    assert row_words((3, 5, 9)) == "rows 3, 5, 9"
    assert row_words(range(1, 13)) == "rows " + ", ".join(map(str, range(1, 13)))
    assert row_words(range(1, 21)).endswith("11, 12 and 8 more")


def test_a_column_is_the_tables_only_if_it_was_mapped():
    frame = pl.DataFrame({"row": [1], "params": [1.0], "tokens": [2.0]})
    runs = Runs(frame, {"params": "N"}, ("params", "tokens"), {})
    assert runs.has("params")
    assert not runs.has("params", "tokens")
