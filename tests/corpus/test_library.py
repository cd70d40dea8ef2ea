"""Corpora by name: added once, tokenized once, checked each time, nothing written on bad input."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isoloss import files
from isoloss.corpus import library
from isoloss.corpus.documents import read_documents
from isoloss.errors import InputError, RunError

V = 300


def files_under(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def books(book_folder, home):
    return library.add("books", [book_folder])


def test_added_documents_come_back_split_and_counted(book_folder, books, home):
    corpus = library.load("books")
    documents = read_documents([book_folder])
    assert {d.text for d in corpus.train + corpus.validation} == {d.text for d in documents}
    assert corpus.info == books == library.info("books")
    assert books.train_documents + books.validation_documents == 30
    assert books.train_bytes + books.validation_bytes == sum(len(d.text.encode()) for d in documents)
    assert books.sources == ("books",)
    assert library.names() == ["starter", "books"]


def test_nothing_stored_names_a_place_on_this_machine(book_folder, books, home, tmp_path):
    assert files_under(home / "corpora" / "books") == [
        "corpus.json",
        "train.jsonl.zst",
        "validation.jsonl.zst",
    ]
    assert str(tmp_path) not in (home / "corpora" / "books" / "corpus.json").read_text()
    corpus = library.load("books")
    assert all(d.source.startswith("books/book") for d in corpus.train + corpus.validation)


def test_the_form_and_order_of_the_input_do_not_matter(book_folder, books, tmp_path, monkeypatch):
    documents = read_documents([book_folder])[::-1]
    pl.DataFrame({"body": [d.text for d in documents]}).write_parquet(tmp_path / "all.parquet")
    one = library.tokenize("books", V)
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "elsewhere"))  # in one home they share their files
    other = library.add("other", [tmp_path / "all.parquet"], text_column="body")
    assert other.corpus_hash == books.corpus_hash
    two = library.tokenize("other", V)
    assert one.train.path != two.train.path
    assert one.train.sha256 == two.train.sha256
    assert one.validation.sha256 == two.validation.sha256


def test_adding_the_same_again_writes_nothing_and_other_content_is_refused(book_folder, books, home):
    before = {name: (home / name).stat().st_mtime_ns for name in files_under(home)}
    again = library.add("books", [book_folder])
    assert again.already_there
    assert not books.already_there
    (book_folder / "more.txt").write_text("something else", "utf-8")
    with pytest.raises(InputError, match="'books' with other content exists"):
        library.add("books", [book_folder])
    after = {name: (home / name).stat().st_mtime_ns for name in files_under(home) if ".lock" not in name}
    assert after == {name: time for name, time in before.items() if ".lock" not in name}


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "../a", ".a", "-a", "a.b", "a" * 65, "starter", "a\n"])
def test_bad_names_are_refused_and_nothing_is_written(book_folder, home, name):
    with pytest.raises(InputError):
        library.add(name, [book_folder])
    assert not home.exists()


@pytest.mark.parametrize(
    ("file", "data", "what"),
    [
        ("a.txt", b"\xff", "not UTF-8"),
        ("a.txt", b"", "empty"),
        ("a.jsonl", b"{", "line 1: is not JSON"),
        ("a.jsonl", b'{"body": "x"}', "no column 'text'"),
        ("a.parquet", b"x", "not readable Parquet"),
        ("a.txt", b"one document", "one distinct document"),
        (None, b"", "does not exist"),
    ],
)
def test_bad_text_is_exit_code_2_and_nothing_is_written(tmp_path, home, file, data, what):
    path = tmp_path / (file or "nowhere")
    if file:
        path.write_bytes(data)
    with pytest.raises(InputError, match=what) as caught:
        library.add("mine", [path])
    assert caught.value.exit_code == 2
    assert not home.exists()


def test_unknown_and_damaged_corpora_are_named(books, home):
    with pytest.raises(InputError, match=r"no corpus 'nope'; there are: starter, books"):
        library.load("nope")
    path = home / "corpora" / "books" / "train.jsonl.zst"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"train\.jsonl\.zst: is damaged"):
        library.load("books")
    facts = home / "corpora" / "books" / "corpus.json"
    facts.write_text(json.dumps({"info": {}}))
    with pytest.raises(InputError, match=r"corpus\.json: is damaged"):
        library.info("books")


def test_tokens_are_exact_and_documents_are_separated(books, home):
    tokenized = library.tokenize("books", V)
    corpus = library.load("books")
    for tokens, documents in ((tokenized.train, corpus.train), (tokenized.validation, corpus.validation)):
        size = sum(len(d.text.encode("utf-8")) for d in documents)
        assert tokenized.token_bytes[tokens.ids].sum() == tokens.text_bytes == size
        assert (tokens.ids == 0).sum() == tokens.documents == len(documents)
        assert tokens.ids[0] == 0
        assert (tokens.corpus_hash, tokens.tokenizer_hash) == (
            tokenized.corpus_hash,
            tokenized.tokenizer_hash,
        )
    assert tokenized.vocab == V == len(tokenized.token_bytes) == tokenized.train.vocabulary
    assert tokenized.train.dtype == "<u2"


def test_the_tokenizer_never_sees_validation(books, home, monkeypatch):
    seen = []
    train = library.train_tokenizer
    monkeypatch.setattr(library, "train_tokenizer", lambda texts, v: seen.extend(texts) or train(texts, v))
    library.tokenize("books", V)
    assert seen == [d.text for d in library.load("books").train]


def test_a_second_call_reuses_the_files_and_checks_them(books, home, monkeypatch):
    first = library.tokenize("books", V)

    def refuse(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(library, "train_tokenizer", refuse)
    second = library.tokenize("books", V)
    assert second.train.sha256 == first.train.sha256
    path = first.train.path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"train\.tokens: is damaged"):
        library.tokenize("books", V)


def test_files_of_another_corpus_are_refused(books, home, book_folder):
    (book_folder / "more.txt").write_text("something else", "utf-8")
    library.add("other", [book_folder])
    one, two = library.tokenize("books", V), library.tokenize("other", V)
    one.validation.path.write_bytes(two.validation.path.read_bytes())
    with pytest.raises(InputError, match="belongs to another corpus or tokenizer"):
        library.tokenize("books", V)


def test_an_existing_tokenizer_is_used_as_it_is(books, home):
    trained = library.tokenize("books", V)
    given = library.tokenize("books", tokenizer_file=trained.tokenizer_path)
    assert given.tokenizer_hash == trained.tokenizer_hash
    assert given.train.path != trained.train.path
    assert np.array_equal(given.train.ids, trained.train.ids)


@pytest.mark.parametrize(("vocabulary", "what"), [(100_000, "too large for the text"), (10, "no room")])
def test_impossible_vocabularies_leave_no_tokens(books, home, vocabulary, what):
    with pytest.raises(InputError, match=f"corpus 'books': .*{what}"):
        library.tokenize("books", vocabulary)
    assert [name for name in files_under(home / "tokens") if not name.endswith(".lock")] == []


def test_two_processes_at_once_make_the_files_once(books, home):
    code = (
        "from isoloss.corpus import library\n"
        "made = library._write_tokenized\n"
        "library._write_tokenized = lambda *a: (print('made'), made(*a))\n"
        f"print(library.tokenize('books', {V}).train.sha256)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120)[0].split() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert sum("made" in output for output in outputs) == 1
    assert len({output[-1] for output in outputs}) == 1


def test_home_is_the_variable_then_the_data_folder(tmp_path, book_folder, monkeypatch):
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    library.add("by-variable", [book_folder])
    monkeypatch.delenv("ISOLOSS_HOME")
    library.add("by-default", [book_folder])
    assert (tmp_path / "named/corpora/by-variable/corpus.json").is_file()
    assert (tmp_path / "data/isoloss/corpora/by-default/corpus.json").is_file()


def test_what_a_killed_writer_left_is_cleared_and_does_not_count(books, home):
    torn = home / "tokens" / f".{books.corpus_hash[:16]}-bpe-{V}.abc.part"
    torn.mkdir(parents=True)
    (torn / "train.tokens").write_bytes(b"half")
    assert library.tokenize("books", V).train.tokens > 0
    assert not torn.exists()
    (home / "corpora" / ".later.abc.part").mkdir()
    assert library.names() == ["starter", "books"]


def test_what_a_killed_writer_left_among_the_corpora_is_cleared(book_folder, home):
    left = home / "corpora" / ".books.killed.part"
    left.mkdir(parents=True)
    (left / "train.jsonl.zst").write_bytes(b"half")
    library.add("books", [book_folder])
    assert not left.exists()
    assert library.names() == ["starter", "books"]


def test_a_separator_of_nothing_is_refused(book_folder, home):
    with pytest.raises(InputError, match="the separator is empty"):
        library.add("books", [book_folder], separator="")
    assert not home.exists()


def test_a_writer_that_never_ends_is_waited_for_so_long_and_no_longer(book_folder, books, home, monkeypatch):
    monkeypatch.setattr(library, "_WAIT_SECONDS", 0.05)
    with (
        files.claim(home / "corpora" / ".lock"),
        pytest.raises(RunError, match="has been writing here for 15 minutes"),
    ):
        library.add("others", [book_folder])
    with (
        files.claim(home / "tokens" / ".lock"),
        pytest.raises(RunError, match="has been writing here for 15 minutes") as caught,
    ):
        library.tokenize("books", V)
    assert caught.value.exit_code == 1
    assert library.names() == ["starter", "books"]
    assert library.tokenize("books", V).vocab == V, "once it has ended, all goes on"
