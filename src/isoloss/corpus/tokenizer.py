"""Byte-level BPE: train one on the training text, or load one; and how many bytes each token stands for.

Every text is a sequence of bytes, and every token of a byte-level vocabulary stands for a fixed number of
them, so bits per byte = (sum of nats / ln 2) / (sum of token bytes) is exact. Tokenizers for which that does
not hold are refused. Source: Sennrich, Haddow and Birch 2016 (BPE); Radford et al. 2019 (byte-level).
"""

import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from isoloss import files
from isoloss.corpus import cuts
from isoloss.errors import InputError

END_OF_TEXT = "<|endoftext|>"
SMALLEST = 257  # 256 bytes and the end of text
_END_NAMES = (END_OF_TEXT, "<|end_of_text|>", "</s>")
_AROUND = 64  # characters that say whether a word ends between them


def train_tokenizer(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """A byte-level BPE of ``vocabulary`` entries: ``<|endoftext|>`` (id 0), 256 bytes, then merges.

    A merge must occur at least twice. Raises InputError if the text has too few repeats to fill the
    vocabulary, naming the size that can be reached.
    """
    if vocabulary < SMALLEST:
        raise InputError(
            f"a vocabulary of {vocabulary} has no room for the 256 bytes and the end of text",
            mend=f"use at least {SMALLEST}",
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    # No text yields more merges than it has characters; the bound keeps a huge request from filling memory.
    reachable = min(vocabulary, SMALLEST + sum(len(text.encode("utf-8")) for text in texts))
    trainer = trainers.BpeTrainer(
        vocab_size=reachable,
        min_frequency=2,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    with _one_thread():
        tokenizer.train_from_iterator((part for text in texts for part in cuts.parts_of(text)), trainer)
    reached = tokenizer.get_vocab_size()
    if reached < vocabulary:
        raise InputError(
            f"a vocabulary of {vocabulary:,} is too large for the text: its repeats fill {reached:,} entries",
            mend=f"use a vocabulary of at most {reached}, or more text",
        )
    return _plain(tokenizer)


def load_tokenizer(path: Path) -> Tokenizer:
    """The byte-level tokenizer of a ``tokenizer.json``. Raises InputError if it is not one."""
    data = files.read_bytes(path)
    try:
        tokenizer = Tokenizer.from_str(data.decode("utf-8"))
    except Exception as error:  # the library raises plain Exception
        raise InputError(
            f"is not a readable tokenizer.json ({error})",
            where=str(path),
            mend="name a Hugging Face tokenizer.json",
        ) from None
    if not _is_byte_level(json.loads(tokenizer.to_str())):
        raise InputError(
            "is not byte-level: its tokens stand for no fixed number of bytes to count",
            where=str(path),
            mend="use a byte-level tokenizer (GPT-2, Llama 3, Qwen, ...), or let isoloss train one",
        )
    return _plain(tokenizer)


def _plain(tokenizer: Tokenizer) -> Tokenizer:
    """Text in, ids out: nothing cut, padded or dropped, and markers inside the text are plain text."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    if getattr(tokenizer.model, "dropout", None):
        tokenizer.model.dropout = None
    return tokenizer


def _is_byte_level(settings: dict[str, Any]) -> bool:
    decoder = settings.get("decoder") or {}
    steps = decoder.get("decoders", [decoder])
    return [step.get("type") for step in steps] == ["ByteLevel"]


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """One more than the largest id: the rows that an embedding needs."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """sha256 of the tokenizer's canonical JSON."""
    return files.hash_of(json.loads(tokenizer.to_str()))


def end_of_text(tokenizer: Tokenizer) -> int:
    """The id that separates documents. Raises InputError if the vocabulary has none."""
    for name in _END_NAMES:
        if (token_id := tokenizer.token_to_id(name)) is not None:
            return token_id
    raise InputError(
        "the tokenizer has no token for the end of a text", mend=f"add one of {', '.join(_END_NAMES)} to it"
    )


def token_bytes(tokenizer: Tokenizer) -> np.ndarray:
    """bytes_V: how many bytes of text each id stands for; 0 for special tokens and unused ids (int64).

    In a byte-level vocabulary each character of a token spells one byte; an added token spells itself.
    Raises InputError for a token outside the byte alphabet.
    """
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    added = tokenizer.get_added_tokens_decoder()
    bytes_V = np.zeros(vocabulary_size(tokenizer), dtype=np.int64)
    for token, token_id in tokenizer.get_vocab(with_added_tokens=True).items():
        if token_id in added:
            bytes_V[token_id] = 0 if added[token_id].special else len(token.encode("utf-8"))
        elif set(token) <= alphabet:
            bytes_V[token_id] = len(token)
        else:
            raise InputError(
                f"token {token!r} (id {token_id}) is not spelt in bytes", mend="use a byte-level tokenizer"
            )
    bytes_V[end_of_text(tokenizer)] = 0
    return bytes_V


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray:
    """ids_N (uint32) of all texts, each preceded by the end-of-text id.

    Raises InputError if a text's tokens do not stand for exactly its UTF-8 bytes.
    """
    bytes_V, separator = token_bytes(tokenizer), np.array([end_of_text(tokenizer)], dtype=np.uint32)
    ids: list[np.ndarray] = []
    with _one_thread():
        for batch in _batches(tokenizer, texts):
            texts_only = [part for part, _ in batch]
            encodings = tokenizer.encode_batch_fast(texts_only, add_special_tokens=False)
            for (part, first), encoding in zip(batch, encodings, strict=True):
                part_ids = np.array(encoding.ids, dtype=np.uint32)
                _check_exact(part, int(bytes_V[part_ids].sum()))
                ids += [separator, part_ids] if first else [part_ids]
    return np.concatenate(ids) if ids else np.zeros(0, dtype=np.uint32)


def _check_exact(text: str, counted: int) -> None:
    size = len(text.encode("utf-8"))
    if counted != size:
        raise InputError(
            f"the tokenizer changes the text that begins {text[:40]!r}: {counted:,} bytes of {size:,}",
            mend="use a byte-level tokenizer without normalisation or a prefix space",
        )


def _ends_word(tokenizer: Tokenizer, text: str, at: int) -> bool:
    """Whether this tokenizer ends a word there, and gives both sides of the place the ids of the whole."""
    left, right = text[max(0, at - _AROUND) : at], text[at : at + _AROUND]
    whole, *sides = (tokenizer.encode(part, add_special_tokens=False) for part in (left + right, left, right))
    after = len(sides[0].ids)
    words = whole.word_ids[after - 1 : after + 1]
    return whole.ids == sides[0].ids + sides[1].ids and len(set(words)) == 2


def _batches(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[list[tuple[str, bool]]]:
    """Parts of texts, and whether each is a text's first, in batches of about PART_CHARACTERS."""
    batch, characters = list[tuple[str, bool]](), 0
    for text in texts:
        for number, part in enumerate(cuts.parts_of(text, partial(_ends_word, tokenizer))):
            batch.append((part, number == 0))
            characters += len(part)
            if characters >= cuts.PART_CHARACTERS:
                yield batch
                batch, characters = list[tuple[str, bool]](), 0
    if batch:
        yield batch


@contextmanager
def _one_thread() -> Generator[None, None, None]:
    """No threads inside the tokenizer: a later fork would copy their pool without them, and could hang.

    The result is the same with any number of threads; only the time changes.
    """
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
