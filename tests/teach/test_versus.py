"""Who is ahead: whoever the numbers say, and nobody where they do not."""

import pytest

from isoloss.stats import difference
from isoloss.teach.versus import Versus

HIGH, LOW = (3.0, 3.1, 2.9), (1.0, 1.1, 0.9)


def versus(a, b, **named):
    return Versus("a", "b", difference(a, b), number=".1f", **named)


@pytest.mark.parametrize(("better", "ahead"), [("more", "a"), ("less", "b")])
def test_the_winner_is_whoever_is_better_and_turns_round(better, ahead):
    other = {"a": "b", "b": "a"}[ahead]
    for one, name in ((versus(HIGH, LOW, better=better), ahead), (versus(LOW, HIGH, better=better), other)):
        assert one.winner == name
        assert one.loser == {"a": "b", "b": "a"}[name]
        text = one.sentence(one.clause("points more", "n = 3"), "")
        assert text == f"{name} is ahead of {one.loser}: 2.0 points more (95% t interval 1.6 to 2.4, n = 3)."


def test_what_overlaps_has_no_winner_and_keeps_its_sign():
    one = versus((1.0, 3.0, 2.0), (1.5, 3.0, 2.5), scale=100)
    assert (one.sign, one.winner, one.loser) == (0, None, None)
    assert one.clause("points", "n = 3").startswith("-33.3 points (95% t interval -")
    assert one.sentence("no", " here") == "No clear difference between a and b here."
    # Control: without the spread the same means are told apart.
    assert versus((2.0, 2.0, 2.0), (2.3, 2.3, 2.3)).winner == "b"


@pytest.mark.parametrize("found", [None, difference((1.0,), (3.0, 4.0))])
def test_one_seed_gives_no_verdict(found):
    one = Versus("a", "b", found)
    assert (one.sign, one.winner) == (None, None)
    assert one.sentence("x", "y") == "a against b: one seed a side gives no interval and no verdict."
