"""Token files: what is written comes back, and no changed byte goes unseen."""

import hashlib
import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss.corpus import tokenfile
from isoloss.corpus.tokenfile import open_tokens, write_tokens
from isoloss.errors import InputError

FACTS = {"split": "train", "documents": 1, "tokenizer_hash": "t" * 64, "corpus_hash": "c" * 64}


def write(path, ids, vocabulary=300, text_bytes=100):
    write_tokens(path, np.asarray(ids), vocabulary=vocabulary, text_bytes=text_bytes, **FACTS)
    return path


@given(
    ids=st.lists(st.integers(0, 2**16 - 1), min_size=1),
    vocabulary=st.sampled_from([2**16, 2**16 + 1, 2**31]),
)
def test_ids_and_facts_come_back(tmp_path_factory, ids, vocabulary):
    path = write(tmp_path_factory.mktemp("t") / "a.tokens", ids, vocabulary, text_bytes=7)
    tokens = open_tokens(path)
    assert tokens.ids.tolist() == ids
    assert tokens.ids.dtype == (np.uint16 if vocabulary <= 2**16 else np.uint32)
    assert (tokens.tokens, tokens.vocabulary, tokens.text_bytes) == (len(ids), vocabulary, 7)
    assert tokens.bytes_per_token == 7 / len(ids)
    assert {name: getattr(tokens, name) for name in FACTS} == FACTS


def test_open_files_cannot_be_changed(tmp_path):
    tokens = open_tokens(write(tmp_path / "a.tokens", range(10)))
    with pytest.raises(ValueError, match="read-only"):
        tokens.ids[0] = 1
    with pytest.raises(FrozenInstanceError):
        tokens.tokens = 1


def test_every_flipped_byte_is_noticed(tmp_path):
    path = write(tmp_path / "a.tokens", range(100))
    whole = path.read_bytes()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(InputError, match=r"a\.tokens: is "):
            open_tokens(path)
    path.write_bytes(whole)
    assert open_tokens(path).tokens == 100


def test_cut_or_grown_files_are_noticed(tmp_path):
    path = write(tmp_path / "a.tokens", range(100))
    whole = path.read_bytes()
    for data in [whole + b"\0", *(whole[:cut] for cut in range(len(whole)))]:
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"a\.tokens: is "):
            open_tokens(path)


def test_other_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.tokens: cannot be read"):
        open_tokens(tmp_path / "none.tokens")
    (tmp_path / "a.tokens").write_text("just text")
    with pytest.raises(InputError, match="is not a token file"):
        open_tokens(tmp_path / "a.tokens")
    (tmp_path / "a.tokens").write_bytes(b"ISOTOK\x00\x09" + bytes(100))
    with pytest.raises(InputError, match="another version"):
        open_tokens(tmp_path / "a.tokens")


@pytest.mark.parametrize(
    ("ids", "what"), [([], "no tokens"), ([0, 300], "do not fit"), ([-1, 5], "do not fit")]
)
def test_impossible_ids_write_nothing(tmp_path, ids, what):
    with pytest.raises(InputError, match=what):
        write(tmp_path / "a.tokens", np.array(ids, dtype=np.int64))
    assert list(tmp_path.iterdir()) == []


def resealed(path, **changes):
    """The file with another header, whose own hash is right: only what it says can give it away."""
    whole = path.read_bytes()
    fixed = len(tokenfile.MAGIC) + 4
    size = int.from_bytes(whole[fixed - 4 : fixed], "little")
    header = json.dumps(json.loads(whole[fixed + 32 : fixed + 32 + size]) | changes).encode()
    header = header.ljust(size)
    assert len(header) == size, "the made-up header must not be longer than the genuine one"
    path.write_bytes(whole[:fixed] + hashlib.sha256(header).digest() + header + whole[fixed + 32 + size :])


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"dtype": "<f8"}, "names 100 ids of type '<f8'"),
        ({"dtype": "O"}, "names 100 ids of type 'O'"),
        ({"tokens": 0}, "names 0 ids of type '<u2'"),
        ({"tokens": -1}, "names -1 ids of type '<u2'"),
        ({"tokens": "100"}, "its header does not fit"),
        ({"split": None}, "its header does not fit"),
    ],
)
def test_a_header_that_asks_for_what_cannot_be_is_refused(tmp_path, changes, what):
    path = write(tmp_path / "a.tokens", range(100), text_bytes=10**9)
    resealed(path, text_bytes=7)
    assert open_tokens(path).text_bytes == 7, "control: a header that makes sense is believed"
    resealed(path, **changes)
    with pytest.raises(InputError, match=what) as caught:
        open_tokens(path)
    assert caught.value.mend == "delete its folder and tokenize again"
