"""The split: by content, by bytes, without leaks. Each leak test shows the leak without its step."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss.corpus.documents import Document
from isoloss.corpus.split import (
    GAP_CHARACTERS,
    LONG_CHARACTERS,
    PART_CHARACTERS,
    hold_out,
    hold_out_parts,
    split,
    text_bytes,
    unique,
    without_shared_paragraphs,
)
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


def novel(words, characters):
    """Numbered paragraphs, so that every place of the text is known."""
    number, parts, size = 0, [], 0
    while size < characters:
        parts.append(f"Paragraph {number}. {words(number, 60)}".replace("\n", " "))
        size, number = size + len(parts[-1]) + 2, number + 1
    return Document("\n\n".join(parts), "novel")


def places(pieces, whole):
    """Start and end of every piece in the whole text; each stands in it word for word."""
    return sorted((start := whole.text.index(piece.text), start + len(piece.text)) for piece in pieces)


@pytest.mark.parametrize("characters", [LONG_CHARACTERS, 300_000, 1_000_000])
def test_a_long_document_gives_contiguous_parts_with_a_gap_around_them(prose, characters):
    whole = novel(prose, characters)
    train, held = hold_out_parts(whole, 0.08)
    assert len(held) == max(1, round(0.08 * len(whole.text) / PART_CHARACTERS))
    assert sum(len(piece.text) for piece in held) == pytest.approx(0.08 * len(whole.text), rel=0.15)
    assert all(piece.text.startswith("Paragraph") for piece in held)
    for start, end in places(held, whole):
        for first, last in places(train, whole):
            assert last <= start - GAP_CHARACTERS or first >= end + GAP_CHARACTERS


def test_control_without_the_gap_train_touches_what_is_held_out(prose, monkeypatch):
    monkeypatch.setattr("isoloss.corpus.split.GAP_CHARACTERS", 0)
    whole = novel(prose, 300_000)
    train, held = hold_out_parts(whole, 0.08)
    ends = [place for piece in places(train, whole) for place in piece]
    assert any(abs(place - end) <= 2 for part in places(held, whole) for place in part for end in ends)


def test_one_long_document_can_be_split_and_every_long_one_is_in_both_sides(prose):
    alone = split([novel(prose, 200_000)])
    assert (len(alone.validation), len(alone.train)) == (1, 2)
    assert alone.gap_bytes >= 2 * GAP_CHARACTERS
    mixed = split([novel(prose, 200_000), *documents_of(prose, [400] * 30)])
    assert {"novel"} < {d.source for d in mixed.validation}
    assert {"novel"} < {d.source for d in mixed.train}


def test_text_without_paragraphs_is_cut_where_the_draw_falls():
    train, held = hold_out_parts(Document("a word " * 20_000, "line"), 0.08)
    assert sum(len(piece.text) for piece in held) == pytest.approx(0.08 * 140_000, rel=0.01)
    assert len(train) == 2


def test_what_cannot_be_split_is_refused():
    one = Document("only", "a.txt")
    with pytest.raises(InputError, match=r"a\.txt: one distinct document"):
        split([one, one])
    with pytest.raises(InputError, match="nothing is left to train on"):
        split([Document(LONG, "a"), Document(f"{LONG}\n\n{LONG}", "b")])
    for share in (0.0, -0.1, 0.6, float("nan")):
        with pytest.raises(InputError, match="not in"):
            split([one, Document("other", "b")], share)
