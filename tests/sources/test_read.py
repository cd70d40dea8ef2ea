"""Reading: every way in gives the same table, and what cannot be read says where and why."""

import gzip
import json
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isoloss.errors import InputError
from isoloss.sources import read, runs

TABLE = pl.DataFrame(
    {
        "N": [1_000_000, 3_000_000],
        "loss": [4.5, None],
        "arch": ["lstm", 'héro, "x"\n2'],
        "done": [True, False],
    }
)


def as_csv(table):
    return table.write_csv().encode("utf-8")


def as_ndjson(table):
    return "".join(json.dumps(row) + "\n" for row in table.to_dicts()).encode("utf-8")


def as_parquet(table, path):
    table.write_parquet(path)
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "ndjson", "jsonl", "jsonl.gz", "parquet", "pq"])
def test_files_of_every_kind(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    if kind in ("parquet", "pq"):
        as_parquet(TABLE, path)
    else:
        data = as_csv(TABLE) if kind.startswith("csv") else as_ndjson(TABLE)
        path.write_bytes(gzip.compress(data, mtime=0) if kind.endswith(".gz") else data)
    assert read(path).equals(TABLE)
    assert read(str(path)).equals(TABLE)


def test_tables_of_every_library():
    for table in (
        TABLE,
        TABLE.lazy(),
        TABLE.to_pandas(),
        TABLE.to_arrow(),
        pd.DataFrame({name: TABLE[name].to_list() for name in TABLE.columns}),
        pa.table(TABLE.to_dict(as_series=False)),
    ):
        assert read(table).equals(TABLE)


def test_a_study(ahead):
    runs_read = runs(ahead.folder)
    assert {"params", "tokens", "loss", "family", "seed"} <= runs_read.columns.keys()
    assert runs_read.source["sha256"] is None
    assert [finding for finding in runs_read.findings if finding.severity == "refuse"] == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x\n1\n2\n", [1, 2]),
        ("x\n1\n2.5\n", [1.0, 2.5]),
        ("x\n1e9\nNA\n\n", [1e9, None]),
        ('x\n"7"\n" 8 "\n', [7, 8]),
        ("x\n100000000000000000000\n1\n", [1e20, 1.0]),
        ("x\n1,000\n".replace(",", ""), [1000]),
        ("x\nTrue\nfalse\n", [True, False]),
        ("x\n1\nb\n", ["1", "b"]),
        ("\ufeffx\r\n1\r\n", [1]),
        ("x\nN/A\nnull\n", [None, None]),
    ],
)
def test_fields_become_what_they_all_are(tmp_path, text, values):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("utf-8"))
    assert read(path)["x"].to_list() == values


def test_a_nan_is_not_a_missing_value(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x\nNaN\nNA\n")
    column = read(path)["x"]
    assert column.is_nan().to_list() == [True, None]


@pytest.mark.parametrize(
    ("name", "data", "says", "where"),
    [
        ("t.csv", b"", "is empty", "t.csv"),
        ("t.csv", b"\n\n", "no columns", "t.csv"),
        ("t.csv", b"a,b\n", "no rows", "t.csv"),
        ("t.csv", b"a,b\n1,2\n\n1,2,3\n", "3 fields where the header has 2", "line 4"),
        ("t.csv", b"a,b\n1,2\n3\n", "1 fields", "line 3"),
        ("t.csv", b"a,a\n1,2\n", "'a' twice", "line 1"),
        ("t.csv", b"a,\n1,2\n", "without a name", "line 1"),
        ("t.csv", b"a;b\n1,5;2\n", "semicolons", "line 1"),
        ("t.csv", b"a\tb\n1\t2\n", "tabs", "line 1"),
        ("t.csv", b'a,b\n1,"2\n', "is not CSV", "line"),
        ("t.csv", b'a,b\n1,"2"3\n', "is not CSV", "line 2"),
        ("t.csv", "a\n1\n\u00e9\n".encode("latin-1"), "not UTF-8: byte 0xe9 at offset 4", "line 3"),
        ("t.csv", "a\n1\n".encode("utf-16"), "not UTF-8", "line 1"),
        ("t.csv.gz", b"a\n1\n", "cannot be read (Not a gzipped file", "t.csv.gz"),
        ("t.csv.gz", gzip.compress(b"a\n1\n" * 99, mtime=0)[:-9], "ended before the end", "t.csv.gz"),
        ("t.jsonl", b'{"a": 1}\n[1]\n', "is not a JSON object", "line 2"),
        ("t.jsonl", b'{"a": 1}\n\n{"a": }\n', "is not JSON", "line 3"),
        ("t.jsonl", b'{"a": 1, "a": 2}\n', "'a' twice", "line 1"),
        ("t.jsonl", b"{}\n", "no columns", "t.jsonl"),
        ("t.jsonl", b"\n\n", "no columns", "t.jsonl"),
        ("t.parquet", b"PAR1 but not really", "not Parquet", "t.parquet"),
        ("t.xlsx", b"PK", "no kind", "t.xlsx"),
        ("t.json", b"[]", "no kind", "t.json"),
        ("t.pkl", b"cos\nsystem\n(S'true'\ntR.", "no kind", "t.pkl"),
        ("table", b"a\n1\n", "no kind", "table"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path, name, data, says, where):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    assert says in caught.value.what
    assert where in caught.value.where
    assert caught.value.mend


def test_what_is_not_there(tmp_path):
    for path, says in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path / "none" / "none.csv", "no such file"),
        (tmp_path, "folder without a study"),
        ("a\0b.csv", "null"),
        ("x" * 5000 + ".csv", "too long"),
        ("/dev/zero", "not a regular file"),
    ):
        with pytest.raises(InputError, match=says):
            read(path)


def test_a_small_archive_of_much_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["isoloss.sources.read"], "MAX_BYTES", 1 << 16)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 100_000, mtime=0))
    with pytest.raises(InputError, match="holds more than 65,536 bytes"):
        read(path)


@pytest.mark.parametrize(
    "source",
    [
        5,
        None,
        [1, 2],
        {"a": [1]},
        pd.Series([1]),
        pl.Series([1]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [{1}, object()]}),
        pd.DataFrame({"a": []}),
        pl.DataFrame(),
        pl.LazyFrame({"a": [1]}).select("b"),
        pl.scan_csv("none.csv"),
    ],
    ids=lambda source: type(source).__name__,
)
def test_other_things_are_no_tables(source):
    with pytest.raises(InputError) as caught:
        read(source)
    assert caught.value.mend


def test_mixed_json_keeps_every_value(tmp_path):
    path = tmp_path / "table.jsonl"
    path.write_text('{"a": 1, "b": [1, 2], "c": 1}\n{"a": "7B", "b": null}\n{"c": 2.5, "d": 1e999}\n')
    table = read(path)
    assert table["a"].to_list() == ["1", "7B", None]
    assert table["b"].to_list() == ["[1, 2]", None, None]
    assert table["c"].to_list() == [1.0, None, 2.5]
    assert table["d"].to_list() == [None, None, float("inf")]
