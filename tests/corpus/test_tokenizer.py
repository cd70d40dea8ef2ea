"""Byte-level BPE: exact bytes, any unicode, the same result every time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from isoloss.corpus import cuts, tokenizer
from isoloss.corpus.tokenizer import (
    encode,
    end_of_text,
    load_tokenizer,
    token_bytes,
    tokenizer_hash,
    train_tokenizer,
    vocabulary_size,
)
from isoloss.errors import InputError

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def small(prose):
    return train_tokenizer([prose(i, 400) for i in range(10)], 400)


def test_ids_are_the_end_of_text_then_bytes_then_merges(small):
    assert vocabulary_size(small) == 400
    assert end_of_text(small) == small.token_to_id("<|endoftext|>") == 0
    bytes_V = token_bytes(small)
    assert bytes_V[0] == 0
    assert (bytes_V[1:257] == 1).all()
    assert (bytes_V[257:] >= 2).all()


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_any_unicode_comes_back_and_its_bytes_are_counted_exactly(small, texts):
    ids = encode(small, texts)
    assert token_bytes(small)[ids].sum() == sum(len(text.encode("utf-8")) for text in texts)
    starts = np.flatnonzero(ids == 0)
    pieces = np.split(ids, starts)[1:]
    assert [small.decode(piece[1:].tolist(), skip_special_tokens=False) for piece in pieces] == texts


def test_a_marker_inside_the_text_is_text(small):
    ids = encode(small, ["before <|endoftext|> after"])
    assert (ids == 0).sum() == 1
    assert token_bytes(small)[ids].sum() == 26
    # The control: by itself the library would read the marker as the special token.
    plain = Tokenizer.from_str(small.to_str())
    assert 0 in plain.encode("before <|endoftext|> after").ids


def test_training_is_the_same_for_any_threads_setting(prose, small, monkeypatch):
    texts = [prose(i, 400) for i in range(10)]
    for setting in ("true", "false"):
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", setting)
        assert tokenizer_hash(train_tokenizer(texts, 400)) == tokenizer_hash(small)
    assert tokenizer_hash(train_tokenizer(texts, 401)) != tokenizer_hash(small)
    assert tokenizer_hash(train_tokenizer(texts[:5], 400)) != tokenizer_hash(small)


def test_a_vocabulary_too_large_names_one_that_works(prose):
    texts = [prose(1, 60)]
    with pytest.raises(InputError, match="too large for the text") as caught:
        train_tokenizer(texts, 10**12)
    reachable = int(caught.value.mend.split("at most ")[1].split(",")[0])
    assert vocabulary_size(train_tokenizer(texts, reachable)) == reachable
    with pytest.raises(InputError, match="too large"):
        train_tokenizer(texts, reachable + 1)
    with pytest.raises(InputError, match="no room"):
        train_tokenizer(texts, 256)


def test_a_saved_tokenizer_is_the_same_one(small, tmp_path):
    path = tmp_path / "tokenizer.json"
    small.save(str(path))
    loaded = load_tokenizer(path)
    assert tokenizer_hash(loaded) == tokenizer_hash(small)
    assert (encode(loaded, ["the same"]) == encode(small, ["the same"])).all()


def test_a_loaded_tokenizer_cuts_and_pads_nothing(small, tmp_path):
    other = Tokenizer.from_str(small.to_str())
    other.enable_truncation(4)
    other.enable_padding(length=64)
    other.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    text = "a text of more than four tokens, and fewer than sixty-four"
    assert token_bytes(loaded)[encode(loaded, [text])].sum() == len(text)


def test_added_tokens_count_their_own_bytes_and_special_ones_none(small, tmp_path):
    other = Tokenizer.from_str(small.to_str())
    other.add_tokens(["naïve café"])
    other.add_special_tokens(["<|pad|>"])
    other.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    text = "a naïve café <|pad|>"
    ids = encode(loaded, [text])
    assert loaded.token_to_id("naïve café") in ids
    assert token_bytes(loaded)[loaded.token_to_id("naïve café")] == 12
    assert token_bytes(loaded)[loaded.token_to_id("<|pad|>")] == 0
    assert token_bytes(loaded)[ids].sum() == len(text.encode("utf-8"))


@pytest.mark.parametrize("spoil", ["prefix space", "lower case"])
def test_a_tokenizer_that_changes_the_text_is_refused(small, tmp_path, spoil):
    other = Tokenizer.from_str(small.to_str())
    if spoil == "prefix space":
        other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    else:
        other.normalizer = normalizers.StripAccents()
    other.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="changes the text that begins 'cafe"):
        encode(load_tokenizer(tmp_path / "tokenizer.json"), ["cafe\u0301"])


def test_files_that_are_no_byte_level_tokenizer_are_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(InputError, match=r"tokenizer\.json: (is not a readable|there is no such file)"):
        load_tokenizer(path)
    path.write_bytes(b"\xff{}")
    with pytest.raises(InputError, match="is not a readable"):
        load_tokenizer(path)
    Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")).save(str(path))  # noqa: S106
    with pytest.raises(InputError, match="is not byte-level"):
        load_tokenizer(path)


def test_no_end_of_text_is_an_input_error(tmp_path):
    bare = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    with pytest.raises(InputError, match="no token for the end of a text"):
        end_of_text(bare)


THREADS = """
import os, sys
from isoloss.corpus.tokenizer import encode, train_tokenizer
texts = ["some words, some more words, and some words again"] * 50
before = len(os.listdir("/proc/self/task"))
tokenizer = train_tokenizer(texts, 260)
encode(tokenizer, texts) if sys.argv[1] == "guarded" else tokenizer.encode_batch(texts)
print(len(os.listdir("/proc/self/task")) - before)
if os.fork() == 0:
    tokenizer.encode_batch_fast(texts[:2])
    os._exit(0)
assert os.wait()[1] == 0
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc, which is not here")
@pytest.mark.parametrize(("mode", "leaves_threads"), [("guarded", False), ("plain", True)])
def test_no_threads_are_left_for_a_later_fork(mode, leaves_threads):
    """The plain mode is the control: the library by itself leaves a pool that a fork would cut off."""
    environment = {"PYTHONPATH": ":".join(sys.path), "RAYON_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS, mode],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (int(done.stdout) > 0) == leaves_threads
    assert done.stderr == ""


def test_a_tokenizer_that_drops_merges_at_random_drops_none_here(small, tmp_path):
    """BPE dropout is for training a tokenizer's user; token files must be the same every time."""
    settings = json.loads(small.to_str())
    settings["model"]["dropout"] = 0.5
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(settings))
    text = " ".join(["the same words again and again"] * 20)
    assert encode(load_tokenizer(path), [text]).tolist() == encode(small, [text]).tolist()
    plain = Tokenizer.from_str(path.read_text())
    assert len({tuple(plain.encode(text).ids) for _ in range(20)}) > 1, "control: the library does drop them"


def test_a_token_that_no_bytes_spell_is_named(small):
    settings = json.loads(small.to_str())
    settings["model"]["vocab"]["\u65e5"] = 400  # as it is, not as the bytes that spell it
    with pytest.raises(InputError, match="token '\u65e5' \\(id 400\\) is not spelt in bytes"):
        token_bytes(Tokenizer.from_str(json.dumps(settings)))


def test_texts_are_encoded_alike_however_they_are_grouped(small, prose, monkeypatch):
    texts = [prose(seed, 60) for seed in range(7)]
    whole = encode(small, texts)
    sizes = []
    genuine = tokenizer._batches

    def counted(*arguments):
        for batch in genuine(*arguments):
            sizes.append(len(batch))
            yield batch

    monkeypatch.setattr(tokenizer, "_batches", counted)
    monkeypatch.setattr(cuts, "PART_CHARACTERS", 2 * len(texts[0]))
    assert encode(small, texts).tolist() == whole.tolist()
    assert sum(sizes) == len(texts)
    assert len(sizes) > 1


def test_what_never_ends_is_no_tokenizer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="is not a file"):
            load_tokenizer(path)
