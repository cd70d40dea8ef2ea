"""The split: by content, by bytes, without leaks. Each leak test shows the leak without its step."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss.corpus.documents import Document
from isoloss.corpus.split import hold_out, split, text_bytes, unique, without_shared_paragraphs
from isoloss.errors import InputError

LONG = "This paragraph is long enough to be counted as a repeat, with more than sixty characters."


def documents_of(prose, sizes):
    return [Document(prose(i, size), f"doc{i}") for i, size in enumerate(sizes)]


def fraction(parts):
    held, rest = (sum(map(text_bytes, side)) for side in (parts.validation, parts.train))
    return held / (held + rest)


def texts(documents):
    return {document.text for document in documents}


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80).filter(str.strip)


@given(st.lists(ANY_TEXT, min_size=2, max_size=20, unique=True), st.randoms(use_true_random=False))
def test_order_never_matters_and_nothing_is_lost(some_texts, order):
    documents = [Document(text, f"d{i}") for i, text in enumerate(some_texts)]
    parts = split(documents, 0.3)
    assert parts == split(order.sample(documents, len(documents)), 0.3)
    assert not texts(parts.train) & texts(parts.validation)
    if not parts.paragraphs_removed:
        assert texts(parts.train) | texts(parts.validation) == set(some_texts)


def test_the_identity_follows_the_content(prose):
    documents = documents_of(prose, [200] * 20)
    base = split(documents).corpus_hash
    renamed = [Document(document.text, "elsewhere") for document in documents]
    changed = [Document(documents[0].text + "!", "doc0"), *documents[1:]]
    assert split(renamed).corpus_hash == base
    assert split(changed).corpus_hash != base
    assert split(documents, 0.3).corpus_hash != base


@pytest.mark.parametrize("held", [0.05, 0.08, 0.2])
def test_bytes_are_held_out_although_documents_are_uneven(prose, held):
    sizes = [10, 15, 20, 40, 80, 160, 320, 640] * 8 + [8000]
    parts = split(documents_of(prose, sizes), held)
    assert 0.8 * held <= fraction(parts) <= held
    assert len(parts.validation) >= 4
    largest = max(map(text_bytes, parts.validation))
    assert largest <= 0.26 * held * sum(map(text_bytes, parts.train + parts.validation))


@pytest.mark.parametrize(
    ("sizes", "held"), [([400] * 10, 1), ([400] * 30, 2), ([100, 400], 1), ([500, 500, 900], 1)]
)
def test_few_documents_still_give_a_validation_set(prose, sizes, held):
    parts = split(documents_of(prose, sizes))
    assert len(parts.validation) == held
    assert fraction(parts) <= 0.5


def test_the_smallest_is_held_out_where_none_fits(prose):
    documents = documents_of(prose, [900, 300, 800])
    assert split(documents).validation == (documents[1],)


def test_exact_duplicates_are_kept_once_and_counted(prose):
    originals = documents_of(prose, [100] * 30)
    copies = [Document(d.text, f"copy of {d.source}") for d in originals[:25]]
    parts = split([*copies, *originals], 0.3)
    assert parts.duplicates_removed == 25
    assert len(parts.train) + len(parts.validation) == 30
    assert not texts(parts.train) & texts(parts.validation)
    assert split(originals, 0.3).corpus_hash == parts.corpus_hash


def test_control_duplicates_leak_if_they_are_not_removed(prose):
    documents = documents_of(prose, [100] * 30) * 2
    random.Random(1).shuffle(documents)
    train, validation = hold_out(documents, 0.3)
    assert texts(train) & texts(validation)
    train, validation = hold_out(unique(documents), 0.3)
    assert not texts(train) & texts(validation)


def shared_paragraphs(train, validation):
    held = {part for document in validation for part in document.text.split("\n\n") if len(part) >= 60}
    return [part for document in train for part in document.text.split("\n\n") if part in held]


def test_long_paragraphs_of_validation_leave_train_and_are_counted(prose):
    documents = [
        Document(f"{prose(i, 80)}\n\n{LONG}\n\nShort.\n\n{prose(100 + i, 40)}", f"d{i}") for i in range(20)
    ]
    without_step = hold_out(unique(documents), 0.2)
    assert len(shared_paragraphs(*without_step)) == len(without_step[0])  # the control: they do leak
    parts = split(documents, 0.2)
    assert shared_paragraphs(parts.train, parts.validation) == []
    assert parts.paragraphs_removed == len(parts.train)
    assert all(LONG not in d.text and "Short." in d.text for d in parts.train)
    assert texts(parts.validation) <= texts(documents)


def test_paragraphs_are_compared_whole_and_above_sixty_characters():
    validation = [Document(f"{'v' * 59}\n\n{'w' * 60}", "v")]
    train = [Document(f"{'v' * 59}\n\n{'w' * 60}\n\n{'w' * 61}", "t"), Document("w" * 60, "gone")]
    kept, removed = without_shared_paragraphs(train, validation)
    assert kept == [Document(f"{'v' * 59}\n\n{'w' * 61}", "t")]
    assert removed == 2


def test_what_cannot_be_split_is_refused():
    one = Document("only", "a.txt")
    with pytest.raises(InputError, match=r"a\.txt: one distinct document"):
        split([one, one])
    with pytest.raises(InputError, match="nothing is left to train on"):
        split([Document(LONG, "a"), Document(f"{LONG}\n\n{LONG}", "b")])
    for share in (0.0, -0.1, 0.6, float("nan")):
        with pytest.raises(InputError, match="not in"):
            split([one, Document("other", "b")], share)
