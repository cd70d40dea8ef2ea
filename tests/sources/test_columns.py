"""Columns: mapped, known by name, or derived by a rule that is named; never guessed between two."""

import hashlib
import math

import polars as pl
import pytest

from isoloss.errors import InputError
from isoloss.sources import runs

PARAMS = [1e6, 4e6, 1e7, 4e7]
TOKENS = [2e8, 2e8, 8e8, 8e8]
LOSS = [4.2, 3.9, 3.5, 3.3]
PLAIN = pl.DataFrame({"params": PARAMS, "tokens": TOKENS, "loss": LOSS})


def test_a_plain_table_is_taken_as_it_is():
    runs_read = runs(PLAIN)
    assert runs_read.frame.drop("row").equals(PLAIN)
    assert runs_read.frame["row"].to_list() == [1, 2, 3, 4]
    assert runs_read.source == {
        "path": None, "sha256": None, "study": False, "rows_read": 4, "rows_kept": 4, "where": None,
        "columns": {"params": "params", "tokens": "tokens", "loss": "loss"}, "derived": {}, "notes": [],
        "loss_unit": "nats per token",
    }  # fmt: skip
    assert runs_read.findings == ()


def test_a_file_is_named_by_its_hash(tmp_path):
    path = tmp_path / "runs.csv"
    PLAIN.write_csv(path)
    assert runs(path).source["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("names", "noted"),
    [
        (("N", "D", "loss"), ("params is the column 'N'", "tokens is the column 'D'")),
        (("Model Size", "Training Tokens", "val_loss"), ("params is the column 'Model Size'",)),
        (("num-params", "tokens_seen", "Validation Loss"), ("loss is the column 'Validation Loss'",)),
    ],
)
def test_well_known_names_are_taken_and_noted(names, noted):
    runs_read = runs(PLAIN.rename(dict(zip(PLAIN.columns, names, strict=True))))
    assert runs_read.frame.drop("row").equals(PLAIN)
    assert set(noted) <= set(runs_read.source["notes"])


@pytest.mark.parametrize("name", ["n", "Nparams", "size", "my params"])
def test_other_names_are_not(name):
    with pytest.raises(InputError, match="no column for params") as caught:
        runs(PLAIN.rename({"params": name}))
    assert repr(name) in caught.value.mend
    assert runs(PLAIN.rename({"params": name}), columns={"params": name}).columns["params"] == name


def test_two_candidates_are_an_error_that_names_both():
    table = PLAIN.with_columns(N=pl.col("params") * 1.1)
    with pytest.raises(InputError, match="two columns could be params: 'params' and 'N'"):
        runs(table)
    runs_read = runs(table, columns={"params": "N"})
    assert runs_read.frame["params"][0] == 1.1e6
    assert any("'params' count parameters too" in note for note in runs_read.source["notes"])


def test_two_candidates_for_what_nobody_needs_are_left_out():
    runs_read = runs(PLAIN.with_columns(lr=pl.lit(1e-3), learning_rate=pl.lit(1e-3)))
    assert "learning_rate" not in runs_read.frame.columns
    assert any("learning_rate is not read" in note for note in runs_read.source["notes"])


def test_what_nobody_needs_may_hold_anything():
    runs_read = runs(PLAIN.with_columns(d_model=pl.lit("first")))
    assert "d_model" not in runs_read.frame.columns
    assert any("d_model is left out" in note for note in runs_read.source["notes"])


def test_the_mapping_may_name_anything():
    table = PLAIN.with_columns(group=pl.Series(list("aabb")), weird=pl.Series([1, 2, 3, 4]))
    runs_read = runs(
        table, columns={"cluster": "group", "d_gate": "weird"}, needed=("params", "loss", "d_gate")
    )
    assert runs_read.frame["cluster"].to_list() == list("aabb")
    assert (
        runs(table, columns={"cluster": "group"}, needed=("params", "loss", "cluster")).needed[2] == "cluster"
    )
    assert runs_read.frame["d_gate"].to_list() == [1.0, 2.0, 3.0, 4.0]


def test_where_uses_the_tables_own_names_and_keeps_row_numbers():
    table = PLAIN.rename({"params": "Model Size"})
    runs_read = runs(table, where='"Model Size" > 3e6 AND loss < 3.6')
    assert runs_read.frame["row"].to_list() == [3, 4]
    assert (runs_read.source["rows_read"], runs_read.source["rows_kept"]) == (4, 2)
    assert runs(table, where="1 = 1").frame.height == 4
    assert runs(table, where="loss <= AVG(loss)").frame["row"].to_list() == [3, 4]


def test_where_may_meet_a_column_that_is_called_row():
    table = PLAIN.with_columns(row=pl.Series([9, 8, 7, 6]), row_=pl.lit(0))
    assert runs(table, where="row < 8").frame["row"].to_list() == [3, 4]
    with pytest.raises(InputError, match="number of the row"):
        runs(table, columns={"row": "row_"})


@pytest.mark.parametrize(
    "where",
    [
        "nothing > 1", "loss", "loss +", "", "loss > 'a'", "loss > 100", "(SELECT 1)", "*",
        "1; DROP TABLE self", "read_csv('/etc/passwd')", "__import__('os').system('true')", "(" * 5000,
        "loss > NULL", "COUNT(*)", "loss ~ '('",
    ],
)  # fmt: skip
def test_a_where_that_does_not_work_is_an_error(where):
    with pytest.raises(InputError, match="where"):
        runs(PLAIN, where=where)


@pytest.mark.parametrize(
    ("given", "needed", "rule", "value"),
    [
        ({"params": 1e6, "flops": 1.2e15}, "tokens", "tokens = flops / (6 params)", 2e8),
        ({"params": 1e6, "tokens": 2e8}, "flops", "flops = 6 params tokens", 1.2e15),
        ({"tokens": 2e8, "flops": 1.2e15}, "params", "params = flops / (6 tokens)", 1e6),
        ({"steps": 1000.0, "batch_tokens": 2e5}, "tokens", "tokens = steps * batch_tokens", 2e8),
        ({"unique_tokens": 1e8, "epochs": 2.0}, "tokens", "tokens = unique_tokens * epochs", 2e8),
        ({"tokens": 2e8, "epochs": 2.0}, "unique_tokens", "unique_tokens = tokens / epochs", 1e8),
    ],
)  # fmt: skip
def test_what_is_needed_is_derived_by_a_rule_that_is_named(given, needed, rule, value):
    table = pl.DataFrame({**given, "loss": 3.0})
    runs_read = runs(table, columns={name: name for name in given}, needed=(needed, "loss"))
    assert runs_read.frame[needed].to_list() == pytest.approx([value])
    assert runs_read.source["derived"] == {needed: rule}
    assert needed not in runs_read.columns


def test_rules_follow_each_other():
    table = pl.DataFrame({"params": 1e6, "steps": 1000.0, "bs": 100.0, "context": 2000.0, "loss": 3.0})
    runs_read = runs(table, columns={"batch_sequences": "bs"})
    assert runs_read.frame["tokens"].to_list() == [2e8]
    assert list(runs_read.source["derived"]) == ["batch_tokens", "tokens"]
    table = pl.DataFrame({"params": 1e6, "steps": 1000.0, "batch_tokens": 2e5, "loss": 3.0})
    runs_read = runs(table, needed=("params", "flops", "loss"))
    assert runs_read.frame["flops"].to_list() == pytest.approx([1.2e15])
    assert list(runs_read.source["derived"]) == ["tokens", "flops"]


def test_nothing_is_derived_that_is_there_or_not_needed():
    runs_read = runs(PLAIN.with_columns(C=pl.lit(1.0)), needed=("params", "tokens", "flops", "loss"))
    assert runs_read.source["derived"] == {}
    assert runs_read.frame["flops"].to_list() == [1.0] * 4
    assert "flops" not in runs(PLAIN).frame.columns


def test_total_parameters_need_the_head_to_be_told():
    table = PLAIN.with_columns(vocab=pl.lit(1000), d_model=pl.lit(64))
    needed = ("params_total", "tokens", "loss")
    with pytest.raises(InputError, match="no column for params_total"):
        runs(table, needed=needed)
    for tied, extra in ((True, 64_000), (False, 128_000)):
        runs_read = runs(table, needed=needed, tied_embeddings=tied)
        assert runs_read.frame["params_total"][0] == 1e6 + extra
        total = table.rename({"params": "params_total"})
        assert runs(total, tied_embeddings=tied).frame["params"][0] == 1e6 - extra


def test_bits_need_the_bytes_of_a_token():
    table = PLAIN.rename({"loss": "bpb"})
    with pytest.raises(InputError, match="no column for loss"):
        runs(table)
    runs_read = runs(table, bytes_per_token=4.0)
    assert runs_read.frame["loss"].to_list() == pytest.approx([4 * math.log(2) * bits for bits in LOSS])
    in_bits = runs(PLAIN, needed=("bits_per_byte",), bytes_per_token=4.0)
    assert in_bits.frame["bits_per_byte"].to_list() == pytest.approx(
        [nats / (4 * math.log(2)) for nats in LOSS]
    )
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="bytes_per_token"):
            runs(table, bytes_per_token=wrong)


def test_a_missing_column_says_what_would_do():
    with pytest.raises(InputError, match="no column for tokens") as caught:
        runs(PLAIN.drop("tokens"))
    assert "flops and params" in caught.value.mend
    with pytest.raises(InputError, match="no column 'size' for params"):
        runs(PLAIN, columns={"params": "size"})


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("3,9", "no commas"),
        ("4,000,000", "no commas"),
        ("4 000 000", "no separators"),
        ("4.000.000", "no separators"),
        ("4'000'000", "no separators"),
        ("4M apples", "correct the row"),
        ("1,5B", "correct the row"),
        ("about 4", "correct the row"),
    ],
)
def test_numbers_written_as_text_name_row_column_and_way_out(text, mend):
    table = PLAIN.with_columns(pl.Series("params", ["1000000", " 2e6 ", text, "3e6"]))
    with pytest.raises(InputError, match="not a number") as caught:
        runs(table)
    assert caught.value.where == "row 3, column 'params'"
    assert mend in caught.value.mend
    assert runs(table, where="params <> '3e6' AND tokens < 5e8").frame["params"].to_list() == [1e6, 2e6]


@pytest.mark.parametrize(
    ("name", "cells", "values", "note"),
    [
        (
            "params",
            ["70M", "1e9", " 7B ", "1.3 billion"],
            [7e7, 1e9, 7e9, 1.3e9],
            "params: 70M is read as 7e+07",
        ),
        (
            "tokens",
            ["1.4T", "300B tokens", "2e9", "20b"],
            [1.4e12, 3e11, 2e9, 2e10],
            "1.4T is read as 1.4e+12",
        ),
        (
            "flops",
            ["1e21", "300 PF-days", "2 EFLOP", None],
            [1e21, 2.592e22, 2e18, None],
            "300 PF-days is read",
        ),
    ],
)
def test_amounts_in_cells_are_read_and_said(name, cells, values, note):
    runs_read = runs(PLAIN.with_columns(pl.Series(name, cells)), needed=("params", "tokens", "loss"))
    assert runs_read.frame[name].to_list() == pytest.approx(values)
    assert any(note in line for line in runs_read.source["notes"])


def test_an_amount_is_read_where_it_can_mean_one_thing_only():
    for name, cells in (("loss", ["3.5", "3.4", "3k", "3.2"]), ("params_M", ["70", "100M", "200", "300"])):
        table = PLAIN.drop("params" if name != "loss" else "loss").with_columns(pl.Series(name, cells))
        with pytest.raises(InputError, match="not a number") as caught:
            runs(table)
        assert "write the number out" in caught.value.mend


@pytest.mark.parametrize("values", [[True] * 4, [[1.0]] * 4, [b"1"] * 4, [{"a": 1}] * 4])
def test_other_kinds_are_no_numbers(values):
    with pytest.raises(InputError, match=r"not numbers"):
        runs(PLAIN.with_columns(pl.Series("params", values)))


def test_labels_are_no_lists():
    with pytest.raises(InputError, match="not labels"):
        runs(PLAIN.with_columns(tags=pl.Series([["a"]] * 4)), columns={"cluster": "tags"})


@pytest.mark.parametrize(
    "where",
    [
        "loss IN (SELECT column_1 FROM read_csv('/etc/passwd'))",
        "loss < (SELECT 3)",
        "loss < read_csv('http://127.0.0.1:9/x.csv')",
        "\"read_parquet\"('/etc/hostname') = 1",
        "read_csv ('/etc/passwd') IS NULL",
        "loss < 3 -- a comment",
        "loss < 3 /* a comment */",
        "loss < 3; tokens > 1",
        "EXISTS (SELECT 1)",
        "loss IN (TABLE runs)",
    ],
)
def test_where_reads_nothing_but_its_table(where, monkeypatch):
    table = pl.DataFrame({"params": [1e6, 1e7], "tokens": [1e8, 1e9], "loss": [3.5, 3.0]})
    monkeypatch.setattr(pl, "sql_expr", lambda text: pytest.fail(f"polars was given {text}"))
    with pytest.raises(InputError) as caught:
        runs(table, where=where)
    assert "root" not in str(caught.value)
    assert caught.value.mend


@pytest.mark.parametrize(
    "where",
    [
        "loss < 3.2 AND params BETWEEN 1e6 AND 2e7",
        "NOT (loss > 3.2)",
        "loss < 2.2 - -1",
        "lower(family) IN ('lstm', 'select from')",
        "\"family\" LIKE 'l%' OR abs(loss - 3) < 0.1",
        "CASE WHEN loss < 3.2 THEN family = 'lstm' ELSE false END",
    ],
)
def test_where_takes_what_rows_need(where):
    table = pl.DataFrame(
        {"params": [1e6, 1e7], "tokens": [1e8, 1e9], "loss": [3.5, 3.0], "family": ["looped", "LSTM"]}
    ).with_columns(pl.col("family").str.to_lowercase())
    assert runs(table, where=where).frame["loss"].to_list() == [3.0] or "LIKE" in where


def test_a_column_is_mapped_once():
    table = pl.DataFrame({"a": [1e6, 1e7], "b": [3.5, 3.0]})
    with pytest.raises(InputError, match="mapped to params and to tokens"):
        runs(table, columns={"params": "a", "tokens": "a", "loss": "b"})
    assert (
        runs(
            table, columns={"params": "a", "cluster": "a", "loss": "b"}, needed=("params", "loss")
        ).frame.height
        == 2
    )


@pytest.mark.parametrize("where", ["6*N*D < 1e20", "N*N*120 < C", "POWER(N, 2) < 1e18"])
def test_whole_numbers_do_not_go_on_below_zero_in_a_where(where):
    N = [10**8, 10**9, 10**10]
    D = [10**10, 10**10, 10**11]
    table = pl.DataFrame({"N": N, "D": D, "C": [6e18, 6e19, 6e21], "loss": [3.0, 2.5, 2.0]})
    exact = table.with_columns(pl.col("N", "D").cast(pl.Float64))
    rows_kept = runs(table, where=where).frame["row"].to_list()
    assert rows_kept == runs(exact, where=where).frame["row"].to_list()
    assert len(rows_kept) < 3
    wrapped = table.filter(pl.sql_expr("6*N*D < 1e20"))
    assert wrapped.height == 3, "the control: polars alone keeps them all"


def test_digits_are_read_as_they_are_written():
    table = PLAIN.with_columns(seed=pl.Series([1, 2, 10, 11]))
    runs_read = runs(table, where="CAST(seed AS VARCHAR) LIKE '1%' AND loss * 1 > 0")
    assert runs_read.frame["row"].to_list() == [1, 3, 4]


def test_words_are_no_counts():
    table = PLAIN.rename({"params": "n"}).with_columns(param_count=pl.lit("attention"))
    with pytest.raises(InputError, match="no column for params"):
        runs(table)
    assert runs(table, columns={"params": "n"}).columns["params"] == "n"
    amounts = PLAIN.with_columns(params=pl.Series(["1M", "4M", "10M", "40M"]))
    assert runs(amounts).frame["params"].to_list() == PARAMS


@pytest.mark.parametrize("column", ["mixture", "data", "data_set", "train_data", "corpus_name", "Data Mix"])
def test_words_under_a_name_of_data_are_the_data_set(column):
    two = PLAIN.with_columns(pl.Series(column, ["web", "code", "web", "code"]))
    (finding,) = runs(two).findings
    assert finding.message == f"{column} has 2 values: one law over several data sets"
    one = PLAIN.with_columns(pl.lit("web").alias(column))
    assert runs(one).findings == ()
    assert runs(two.with_columns(dataset=pl.lit("all"))).findings[0].message == finding.message


def test_numbers_under_a_name_of_data_are_no_data_set():
    for column in ("data", "mixture", "train_data"):
        runs_read = runs(PLAIN.with_columns(pl.Series(column, [0.1, 0.2, 0.3, 0.4])))
        assert "dataset" not in runs_read.columns
    assert "dataset" in runs(PLAIN.with_columns(dataset=pl.Series([1, 2, 1, 2]))).columns


def test_a_perplexity_in_place_of_a_loss_says_what_to_do():
    table = PLAIN.rename({"loss": "eval_perplexity"})
    with pytest.raises(InputError, match=r"(?s)no column for loss.*the logarithm of 'eval_perplexity'"):
        runs(table)
