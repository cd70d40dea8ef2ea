"""No sentence of the forbidden kind, no percentage without n."""

import pytest
from pydantic import ValidationError

from isoloss.errors import RunError
from isoloss.teach import words
from isoloss.teach.result import Sentence

FORBIDDEN = [
    "This is mathematical proof.",
    "The first word is forgotten entirely.",
    "The vanishing gradient destroyed memory.",
    "The LSTM cannot bind.",
    "An O(1) Transformer.",
    "Hardware is used infinitely better.",
    "Training brings the loss to zero.",
    "It retrieves the letter perfectly.",
    "A perfectly balanced focus.",
    "It gives exactly 14 % of its attention (n = 3 seeds).",
    "It absorbs 99 % of the meaning (n = 1 strings).",
    "The Transformer destroys it.",
    "An untrained model hallucinates.",
    "It is 1.8x faster at training time.",
    "This is how ChatGPT works!",
]


@pytest.mark.parametrize("sentence", FORBIDDEN)
def test_forbidden_sentences_are_refused(sentence):
    assert words.faults(sentence)
    with pytest.raises(RunError, match="must not be shown"):
        words.check(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Within 600 updates the LSTM did not reach 99 % in any of 3 seeds (n = 2,000 strings).",
        "98.2 % of 2,000 unseen strings.",
        "The loss falls to 0.45 nats; the floor is 0.4545 nats.",
        "Self-attention does O(n^2 d) work in a constant number of sequential steps.",
        "No clear difference: the 95 % interval holds 0.",
    ],
)
def test_honest_sentences_pass(sentence):
    assert words.faults(sentence) == []
    assert words.check(sentence) == sentence


@pytest.mark.parametrize("sentence", ["The Transformer gets 99.8 %.", "Accuracy: 4%", "42 % against 21 %."])
def test_a_percentage_needs_n(sentence):
    assert words.faults(sentence) == ["has a percentage without n"]


def test_a_result_cannot_hold_such_a_sentence():
    with pytest.raises((RunError, ValidationError)):
        Sentence(key="x", text="It is perfect.")
    assert Sentence(key="x", text="It scored 1,998 of 2,000 strings.").text


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("No clear difference " + "at all " * 6, "14 words"),
        ("From 3.5 to 7 it rose.", "more than one number"),
        ("An LSTM cannot do it.", "cannot"),
    ],
)
def test_a_sentence_for_the_room_is_short(sentence, fault):
    assert any(fault in short_fault for short_fault in words.short_faults(sentence))
    with pytest.raises(RunError, match=fault):
        words.check_short(sentence)


def test_a_sentence_for_the_room_may_leave_its_n_behind():
    assert words.check_short("Trained, 98% of its gaze is on the right card.")
    assert words.check_short("One changed number lets 5,000 times more through.")
