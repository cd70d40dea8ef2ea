"""Hostile tables: whatever comes in, the way out is a table or an error that explains itself."""

import io
import warnings

import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoloss.errors import InputError, IsolossError
from isoloss.sources import accept, read, runs, usable
from isoloss.sources.naming import SYNONYMS

KNOWN = [name for names in SYNONYMS.values() for name in names]
HEADERS = st.one_of(
    st.sampled_from(
        [*KNOWN, "row", "row_", "c0", "", " ", '"', "a,b", "😀", "a\nb", "^.*$", "*", "\u202e", "N\u0301"]
    ),
    st.text(max_size=8),
)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
COUNTS = st.sampled_from([0, 1, -1, 7, 500, 10**6, 7 * 10**9, 2**63 - 1, -(2**63)])
CELLS = {
    "float": FLOATS,
    "count": COUNTS,
    "plausible": st.floats(1e3, 1e12),
    "loss": st.floats(1.5, 12),
    "text": st.text(max_size=6),
    "figure": st.sampled_from(
        ["1", "1,5", "1.000.000", "7B", "nan", "inf", "1e400", "-0", "", " 3 ", "0x10", "١"]
    ),
    "bool": st.booleans(),
    "list": st.lists(st.integers(0, 3), max_size=2),
    "struct": st.fixed_dictionaries({"a": st.integers(0, 3)}),
    "bytes": st.binary(max_size=3),
    "date": st.dates(),
    "status": st.sampled_from(["finished", "diverged", "running", "?"]),
    "null": st.none(),
}
WHERE = st.one_of(
    st.none(),
    st.sampled_from(
        ["loss > 2", "1 = 1", "row > 1", "status = 'finished'", "N IS NOT NULL", '"" = 1', "*", "a b"]
    ),
    st.text(max_size=20),
)


@st.composite
def tables(draw):
    headers = draw(st.lists(HEADERS, min_size=1, max_size=6, unique=True))
    height = draw(st.integers(0, 6))
    columns = {}
    for header in headers:
        cells = CELLS[draw(st.sampled_from(sorted(CELLS)))]
        values = draw(st.lists(st.one_of(cells, st.none()), min_size=height, max_size=height))
        columns[header] = pl.Series(header, values, strict=False)
    return pl.DataFrame(columns)


@st.composite
def likely_tables(draw):
    """Tables that pass the mapping, so that the checks are reached, with any numbers in them."""
    height = draw(st.integers(1, 8))
    number = st.one_of(FLOATS, COUNTS.map(float), st.floats(1e3, 1e12), st.none())
    names = ["params", "tokens", "loss", *draw(st.sets(st.sampled_from(list(SYNONYMS)), max_size=8))]
    columns = {}
    for name in dict.fromkeys(names):
        cells = {"status": CELLS["status"], "cooled": st.booleans(), "tokenizer": st.text(max_size=2)}.get(
            name, number
        )
        columns[name] = draw(st.lists(st.one_of(cells, st.none()), min_size=height, max_size=height))
    return pl.DataFrame({name: pl.Series(name, values, strict=False) for name, values in columns.items()})


def explained(error, path=""):
    assert error.what
    assert str(path) in error.where


def taken(source, **options):
    """Whether ``source`` came through all steps; any error but ours fails the test."""
    try:
        runs_read = runs(source, **options)
        for finding in runs_read.findings:
            assert finding.message
            assert finding.mend
            assert set(finding.rows) <= set(runs_read.frame["row"])
        usable_runs = usable(runs_read)
        assert {excluded.row for excluded in usable_runs.excluded}.isdisjoint(usable_runs.frame["row"])
        accept(usable_runs)
    except IsolossError as error:
        explained(error)
        return False
    return True


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(table=tables(), where=WHERE, mapped=st.booleans(), data=st.data())
def test_any_table(table, where, mapped, data):
    columns = {}
    if mapped:
        for name in ("params", "tokens", "loss", "status", "cluster"):
            columns[name] = data.draw(st.sampled_from(table.columns))
    taken(table, columns=columns, where=where)


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(table=likely_tables())
def test_any_numbers(table):
    taken(table, allow_negative=True)
    taken(table, needed=("params", "flops", "loss"), bytes_per_token=3.5, tied_embeddings=True)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(table=tables())
def test_any_pandas_table(table):
    columns = {name: pd.Series(table[name].to_list(), dtype=object) for name in table.columns}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taken(pd.DataFrame(columns))


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.text(alphabet='N,D;loss\n\r"\t 0123456789.e-{}[]:😀\0\ufeff', max_size=60).map(
            lambda text: text.encode()
        ),
    ),
    ending=st.sampled_from(["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "json"]),
)
def test_any_file(tmp_path_factory, content, ending):
    path = tmp_path_factory.getbasetemp() / f"any.{ending}"
    path.write_bytes(content)
    try:
        read(path)
    except IsolossError as error:
        explained(error, path)
    taken(path)


def test_control_a_good_table_comes_through(tmp_path):
    table = pl.DataFrame({"N": [1e6, 1e7, 1e8], "D": [1e9, 1e9, 1e10], "loss": [4.0, 3.5, 3.0]})
    assert taken(table)
    assert taken(table.to_pandas())
    path = tmp_path / "t.csv"
    path.write_bytes(table.write_csv().encode())
    assert taken(path)
    assert not taken(table.with_columns(loss=pl.lit(-1.0)))
    damaged = io.BytesIO()
    table.write_parquet(damaged)
    (tmp_path / "t.parquet").write_bytes(damaged.getvalue()[:-20])
    assert not taken(tmp_path / "t.parquet")


def test_huge_whole_numbers(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"N": {10**400}, "D": 1, "loss": 3}}\n{{"N": 1, "D": {10**30}, "loss": 3}}\n')
    assert read(path)["N"].to_list() == [float("inf"), 1.0]
    assert not taken(path)
    assert not taken(pd.DataFrame({"N": [10**400], "D": [1], "loss": [3.0]}))


def test_deep_json(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(InputError, match="JSON"):
        read(path)
