"""Tables as spreadsheets, pandas and trackers write them, each with a control."""

import subprocess
import sys

import polars as pl
import pytest
from run_tables import curves, grid, kinds, out, taken

from isoloss.errors import InputError
from isoloss.sources import read, runs


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",params,loss\n0,1e6,3\n1,1e7,2\n", ["params", "loss"]),
        (",params,loss\n1,1e6,3\n2,1e7,2\n", ["params", "loss"]),
        ("params,loss,,\n1e6,3,,\n1e7,2,,\n", ["params", "loss"]),
        ("params,loss\n1e6,3,,\n1e7,2,\n", ["params", "loss"]),
        ("sep=;\nparams;loss\n1e6;3\n1e7;2\n", ["params", "loss"]),
        ("# exported\n# today\nparams,loss\n1e6,3\n# half\n1e7,2\n", ["params", "loss"]),
        ("# params,loss\n1e6,3\n1e7,2\n", ["params", "loss"]),
        ("\ufeffsep=,\r\nparams,loss\r\n1e6,3\r\n1e7,2\r\n", ["params", "loss"]),
    ],
)
def test_csv_as_spreadsheets_and_pandas_write_it(tmp_path, text, columns):
    path = tmp_path / "runs.csv"
    path.write_text(text, "utf-8")
    table = read(path)
    assert table.columns == columns
    assert table["params"].to_list() == [1e6, 1e7]


@pytest.mark.parametrize("text", [",params\n7,1e6\n9,1e7\n", ",\n1,1e6\n", "a,b\n1,2,3\n"])
def test_control_columns_without_a_name_that_hold_something_are_refused(tmp_path, text):
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(InputError):
        read(tmp_path / "runs.csv")


def test_nested_logs_are_read_by_the_last_of_their_names(tmp_path):
    path = tmp_path / "runs.ndjson"
    path.write_text(
        '{"name": "a", "config": {"model": {"n_params": 1000000}}, "summary": {"val/loss": 3.5}}\n'
    )
    assert runs(path, needed=("params", "loss")).frame["params"].to_list() == [1e6]


@pytest.mark.parametrize("axis", ["Step", "Relative Time (Wall)", "trainer/global_step"])
def test_an_exported_panel_is_recognised(axis):
    table = pl.DataFrame({axis: [1, 2], "big - val/loss": [3.0, 2.5], "big - val/loss__MIN": [3.0, 2.5]})
    with pytest.raises(InputError, match="W&B panel"):
        runs(table)


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("name", ["run_id", "seed", None])
def test_rounded_losses_are_no_copies(name, digits):
    parts = [grid(seed=s).with_columns(pl.col("loss").round(digits)) for s in (1, 2, 3)]
    table = pl.concat(parts)
    table = table if name is None else table.with_columns(pl.int_range(75).alias(name))
    data = taken(table)
    assert "near-duplicates" not in kinds(data.runs)
    assert (out(data), len(data.loss)) == ([], 75)


def test_control_copies_are_told():
    data = taken(pl.concat([grid(), grid()[:4]]))
    assert [row for row, _ in out(data)] == [26, 27, 28, 29]


PANDAS = """
import sys
sys.modules["pyarrow"] = None
from decimal import Decimal
import pandas as pd
from isoloss.sources import columns_for
texts = ["1000000", "10000000", "100000000", "1e9"]
for dtype, values in (
    ("Int64", [10**6, 10**7, 10**8, 10**9]),
    ("Float64", [1e6, 1e7, 1e8, 1e9]),
    ("object", [Decimal(text) for text in texts]),
    ("category", texts),
    ("string", texts),
    ("str", texts),
):
    columns = {"params": pd.Series(values, dtype=dtype), "loss": [4.0, 3.5, 3.0, 2.6], "family": ["lstm"] * 4}
    frame = pd.DataFrame(columns)
    assert columns_for("power", frame).inputs["params"].tolist() == [1e6, 1e7, 1e8, 1e9], dtype
    frame.loc[1, "params"] = None
    assert [one.row for one in columns_for("power", frame).runs.excluded] == [2], dtype
"""


def test_pandas_columns_of_any_kind_without_pyarrow():
    ended = subprocess.run([sys.executable, "-c", PANDAS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        ("a\ncaf\u00e9 \u201cx\u201d\n".encode("cp1252"), "iconv -f cp1252"),
        ("a\n\u20ac 5, \u00e9\n".encode("cp1252"), "iconv -f cp1252"),
        ("a\ncaf\u00e9\n".encode("latin-1"), "iconv -f latin1"),
        ("a\n1\n".encode("utf-16"), "iconv -f utf-16"),
        ("a\n\u30c6\u30b9\u30c8\n".encode("shift-jis"), "the editor that wrote it"),
    ],
)
def test_advice_on_encodings_does_not_damage_text(tmp_path, data, advice):
    (tmp_path / "runs.csv").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "runs.csv")
    assert advice in caught.value.mend


def test_control_names_of_seeds_are_no_labels():
    for name in ("model", "group", "experiment"):
        named = curves().with_columns(pl.format("m{}-{}", "params", "seed").alias(name)).drop("seed")
        assert taken(named).warnings == ()
