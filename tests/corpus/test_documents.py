"""Reading text: every accepted form gives the same documents, every bad input names its place."""

import gzip
import json
import lzma
import os
import sys
import types
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from isoloss import files
from isoloss.corpus.documents import Document, read_documents
from isoloss.errors import InputError

TEXTS = [
    "First text.\n\nIts second paragraph, naïve café 東京.",
    "Second text.",
    "Line\u2028separator inside.",
]


def texts_of(*paths, **options):
    return [document.text for document in read_documents(paths, **options)]


def json_lines(texts, column="text"):
    return "".join(json.dumps({column: text, "other": 1}, ensure_ascii=False) + "\n" for text in texts)


@pytest.mark.parametrize("suffix", [".txt", ".md", ".rst", ""])
def test_a_text_file_is_one_document(tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_text(TEXTS[0] + "\n", "utf-8")
    assert read_documents([tmp_path / f"a{suffix}"]) == [Document(TEXTS[0], f"a{suffix}")]


@pytest.mark.parametrize("pack", [None, ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".txt"])
def test_compressed_forms_read_as_the_plain_one(tmp_path, suffix, pack):
    body = TEXTS[0] if suffix == ".txt" else json_lines(TEXTS)
    squeeze = {
        None: bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        # Two frames in one file, as parallel compressors write them.
        ".zst": lambda data: b"".join(zstandard.compress(part) for part in (data[:20], data[20:])),
    }[pack]
    path = tmp_path / f"a{suffix}{pack or ''}"
    path.write_bytes(squeeze(body.encode("utf-8")))
    assert texts_of(path) == (TEXTS[:1] if suffix == ".txt" else TEXTS)


@pytest.mark.parametrize("write", ["polars", "pyarrow"])
def test_parquet(tmp_path, write):
    path = tmp_path / "a.parquet"
    if write == "polars":
        pl.DataFrame({"id": [1, 2, 3], "body": TEXTS}).write_parquet(path)
    else:
        pa.parquet.write_table(pa.table({"body": TEXTS, "id": [1, 2, 3]}), path, compression="gzip")
    documents = read_documents([path], text_column="body")
    assert [document.text for document in documents] == TEXTS
    assert documents[1].source == "a.parquet row 2"


def test_a_folder_is_walked_in_order_without_hidden_files_or_links(tmp_path):
    root = tmp_path / "books"
    for name in ("b.txt", "a.txt", "deep/c.md", ".hidden.txt", ".git/config", "deep/.d/e.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name, "utf-8")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret", "utf-8")
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "linked").symlink_to(outside)
    documents = read_documents([root])
    assert [(d.text, d.source) for d in documents] == [
        ("a.txt", "books/a.txt"),
        ("b.txt", "books/b.txt"),
        ("deep/c.md", "books/deep/c.md"),
    ]


def test_line_ends_byte_order_marks_and_outer_blank_lines_do_not_make_another_text(tmp_path):
    (tmp_path / "unix.txt").write_bytes(b"one\n\ntwo\n")
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbf\r\none\r\n\r\ntwo\r\n\r\n")
    (tmp_path / "rows.jsonl").write_text(json_lines(["one\r\n\r\ntwo\n"]), "utf-8")
    assert set(texts_of(*(tmp_path / name for name in ("unix.txt", "windows.txt", "rows.jsonl")))) == {
        "one\n\ntwo"
    }


def test_a_separator_divides_a_file_into_documents(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n\ntwo\n\npara\n\n\n\nthree\n", "utf-8")
    assert texts_of(tmp_path / "a.txt", separator="\n\n\n") == ["one", "two\n\npara", "three"]
    assert len(texts_of(tmp_path / "a.txt")) == 1


def bad(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


@pytest.mark.parametrize(
    ("name", "data", "place", "what"),
    [
        ("a.txt", b"ok\nna\xefve", "a.txt, line 2", "not UTF-8: byte 0xef at offset 5"),
        ("a.jsonl", b'{"text": "ok"}\n{"text": "\xff"}\n', "a.jsonl, line 2", "offset 25"),
        ("a.txt", b"", "a.txt", "empty"),
        ("a.txt", b" \n\t\n", "a.txt", "empty"),
        ("a.jsonl", b"\n\n", "a.jsonl", "empty"),
        ("a.jsonl", b'{"text": ""}\n', "a.jsonl", "empty"),
        ("a.txt", b"PK\x03\x04\x00\x00", "a.txt", "zero byte at offset 4"),
        ("a.jsonl", b'{"text": "ok"}\n\n{"text": \n', "a.jsonl, line 3", "is not JSON"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl, line 1", "is not JSON"),
        ("a.jsonl", b'["text"]', "a.jsonl, line 1", "not a JSON object"),
        ("a.jsonl", b'{"body": "x", "id": 1}', "a.jsonl, line 1", "no column 'text'; there are: body, id"),
        ("a.jsonl", b'{"text": "ok"}\n{"text": 3}', "a.jsonl, line 2", "int, not a string"),
        ("a.jsonl", b'{"text": null}', "a.jsonl, line 1", "NoneType, not a string"),
        ("a.jsonl", b'{"text": "\\ud800 half"}', "a.jsonl, line 1", "surrogate"),
        ("a.parquet", b"PAR1 not parquet PAR1", "a.parquet", "not readable Parquet"),
        ("a.parquet", b"", "a.parquet", "not readable Parquet"),
        ("a.parquet.gz", b"", "a.parquet.gz", "unpack it"),
        ("a.txt.gz", b"not gzip", "a.txt.gz", "cannot be read"),
        ("a.txt.gz", gzip.compress(b"x" * 999, mtime=0)[:-9], "a.txt.gz", "cannot be read"),
        ("a.txt.xz", b"not xz", "a.txt.xz", "cannot be read"),
        ("a.txt.xz", lzma.compress(b"x" * 999)[:-9], "a.txt.xz", "cannot be read"),
        ("a.txt.zst", b"not zstandard", "a.txt.zst", "cannot be read"),
        ("a.txt.zst", zstandard.compress(os.urandom(999))[:-9], "a.txt.zst", "cannot be read"),
        ("a.txt.zst", b"", "a.txt.zst", "cannot be read"),
    ],
)
def test_bad_files_are_named(tmp_path, name, data, place, what):
    path = bad(tmp_path, name, data)
    with pytest.raises(InputError) as caught:
        read_documents([path])
    assert caught.value.where == str(tmp_path / place)
    assert what in str(caught.value)
    assert caught.value.mend
    assert caught.value.exit_code == 2


def test_bad_parquet_rows_and_columns_are_named(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["x", None], "n": [1, 2]}).write_parquet(path)
    with pytest.raises(InputError, match=r"row 2: its text is NoneType"):
        read_documents([path])
    with pytest.raises(InputError, match=r"no column 'body'; there are: text, n"):
        read_documents([path], text_column="body")
    with pytest.raises(InputError, match=r"column 'n' holds Int64, not strings"):
        read_documents([path], text_column="n")


def test_a_damaged_parquet_file_is_an_input_error_wherever_the_damage_is(tmp_path):
    whole = tmp_path / "whole.parquet"
    pl.DataFrame({"text": ["some text " * 20] * 50}).write_parquet(whole)
    data = whole.read_bytes()
    for cut in range(4, len(data), max(1, len(data) // 12)):
        with pytest.raises(InputError, match="not readable Parquet"):
            read_documents([bad(tmp_path, "cut.parquet", data[:cut])])


def test_missing_paths_empty_folders_and_no_paths_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.txt: does not exist"):
        read_documents([tmp_path / "nowhere.txt"])
    (tmp_path / "void").mkdir()
    with pytest.raises(InputError, match=r"void: holds no files"):
        read_documents([tmp_path / "void"])
    with pytest.raises(InputError, match="no text was given"):
        read_documents([])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_documents([tmp_path / "pipe"])


@pytest.mark.parametrize(
    ("suffix", "squeeze"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress), ("", bytes)],
)
def test_a_bomb_stops_at_the_limit(tmp_path, suffix, squeeze):
    path = bad(tmp_path, f"bomb.txt{suffix}", squeeze(b"a" * 3_000_000))
    with pytest.raises(InputError, match="holds more than 1,000,000 bytes"):
        read_documents([path], max_bytes=1_000_000)
    assert len(files.unpack(path, 3_000_000, mend="")) == 3_000_000


def test_parquet_text_over_the_limit_is_refused(tmp_path):
    pl.DataFrame({"text": ["a" * 1000] * 1000}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="holds more than 999,999 bytes"):
        read_documents([tmp_path / "a.parquet"], max_bytes=999_999)
    assert len(read_documents([tmp_path / "a.parquet"], max_bytes=1_000_000)) == 1000


def fake_hub(monkeypatch, rows):
    calls = []

    def load_dataset(*args, **options):
        calls.append((args, options))
        if isinstance(rows, Exception):
            raise rows
        return iter(rows)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return calls


def test_a_hub_data_set_is_streamed_and_never_runs_its_code(monkeypatch):
    calls = fake_hub(monkeypatch, [{"text": "one"}, {"text": " "}, {"text": "two"}])
    documents = read_documents(["hf:owner/name:config", Path("hf:owner/name")])
    assert documents[1] == Document("two", "hf:owner/name:config row 3")
    assert [args for args, _ in calls] == [("owner/name", "config"), ("owner/name", None)]
    assert all(options["trust_remote_code"] is False and options["streaming"] for _, options in calls)


@pytest.mark.parametrize(
    ("address", "rows", "what"),
    [
        ("hf:owner/name", [{"body": "x"}], "no column 'text'; there are: body"),
        ("hf:owner/name", [{"text": "x"}, {"text": 7}], "row 2: its text is int"),
        ("hf:owner/name", [], "is empty"),
        ("hf:owner/name", ConnectionError("no network"), "could not be loaded \\(no network\\)"),
        ("hf:pandas", [{"text": "x"}], "has no owner"),
        ("hf:../../etc", [], "is not the name of a data set"),
        ("hf:a/b:c:d", [], "is not the name of a data set"),
    ],
)
def test_bad_hub_data_sets_are_named(monkeypatch, address, rows, what):
    fake_hub(monkeypatch, rows)
    with pytest.raises(InputError, match=what):
        read_documents([address])


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'isoloss\[datasets\]'"):
        read_documents(["hf:owner/name"])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=1))
def test_json_lines_return_any_unicode(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    path.write_text(json_lines(texts), "utf-8", newline="\n")
    assert texts_of(path) == [text.replace("\r\n", "\n").strip("\n") for text in texts]


def test_a_hub_data_set_stops_at_the_limit(monkeypatch):
    read = []

    def rows():
        for number in range(1000):
            read.append(number)
            yield {"text": "x" * 100}

    fake_hub(monkeypatch, rows())
    with pytest.raises(InputError, match="holds more than 250 bytes of text"):
        read_documents(["hf:owner/name"], max_bytes=250)
    assert len(read) == 3, "it is a stream: what is not needed is not fetched"


def test_a_folder_that_cannot_be_read_is_named_and_not_skipped(tmp_path, monkeypatch):
    (tmp_path / "shut").mkdir()
    (tmp_path / "a.txt").write_text("text")
    genuine = os.scandir

    def guarded(path):
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return genuine(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(InputError, match="cannot be read \\(Permission denied\\)") as caught:
        read_documents([tmp_path])
    assert caught.value.where == str(tmp_path / "shut")


def test_a_file_name_that_is_no_text_is_spelt(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/bad\xff.txt", "wb") as file:
        file.write(b"some text")
    (document,) = read_documents([folder])
    assert document.source == "in/bad\\udcff.txt"


def test_the_limit_is_of_all_files_together(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name * 400)
    assert len(read_documents([tmp_path], max_bytes=1200)) == 3
    with pytest.raises(InputError, match="holds more than 399 bytes"):
        read_documents([tmp_path], max_bytes=1199)
