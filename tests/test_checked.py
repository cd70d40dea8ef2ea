"""The words for what was checked of a family."""

from isoloss import checked


def test_a_check_says_what_has_passed():
    facts = {"file": "glr.py", "causal": "checked", "loss": "3.7 at first", "shapes": "2 of 2 checked"}
    expected = "file: glr.py; later tokens do not leak: passed; loss: 3.7 at first; shapes: 2 of 2 checked"
    assert checked.words(facts) == expected


def test_control_what_has_not_been_checked_is_not_said_to_have_passed():
    assert checked.words({"causal": "left out"}) == "causal: left out"
    assert checked.words({}) == ""
