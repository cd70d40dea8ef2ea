"""Who is ahead: whoever the numbers say, and nobody where they do not."""

import pytest

from isoloss.stats import difference
from isoloss.teach.versus import Versus, family_of

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
    one = versus((1.0, 3.0, 1.0, 3.0, 2.0), (1.5, 3.0, 1.5, 3.0, 2.5), scale=100)
    assert (one.sign, one.winner, one.loser) == (0, None, None)
    assert one.clause("points", "n = 3").startswith("-30.0 points (95% t interval -")
    assert one.sentence("no", " here") == "No clear difference between a and b here."
    # Control: without the spread the same means are told apart.
    assert versus((2.0, 2.0, 2.0), (2.3, 2.3, 2.3)).winner == "b"


@pytest.mark.parametrize("gap", [None, difference((1.0,), (3.0, 4.0))])
def test_one_seed_gives_no_verdict(gap):
    one = Versus("a", "b", gap)
    assert (one.sign, one.winner) == (None, None)
    assert one.sentence("x", "y") == "a against b: one seed a side gives no interval and no verdict."


def test_what_is_said_in_the_room_follows_the_same_verdict():
    won = "The {winner} is ahead of the {loser}."
    assert versus(HIGH, LOW).short(won) == "The a is ahead of the b."
    assert versus(LOW, HIGH).short(won) == "The b is ahead of the a."
    open_with_three = versus((1.0, 3.0, 2.0), (1.5, 3.0, 2.5))
    assert open_with_three.short(won) == "Three seeds are too few to tell."
    open_with_five = versus((1.0, 3.0, 2.0, 2.1, 1.9), (1.5, 3.0, 2.5, 2.0, 2.2))
    assert open_with_five.short(won) == "No clear difference."
    assert open_with_five.short(won, "Alike.") == "Alike."
    assert Versus("a", "b", None).short(won) == "One seed is too few to tell."


def test_three_seeds_that_leave_it_open_give_no_interval():
    spread = (1.0, 3.0, 2.0), (1.5, 3.0, 2.5)
    assert versus(*spread).sentence("no", " at +3 (-9 to 15)", few=": a 1 to 3, b 1.5 to 3") == (
        "Three seeds are too few to tell a from b: a 1 to 3, b 1.5 to 3."
    )
    assert versus(*spread, of="texts").short("") == "Three texts are too few to tell."
    # Controls: five seeds have their interval, and three that tell are believed.
    five = versus((1.0, 3.0, 2.0, 2.1, 1.9), (1.5, 3.0, 2.5, 2.0, 2.2))
    assert five.sentence("no", " at all", few=": few") == "No clear difference between a and b at all."
    assert versus(HIGH, LOW).sentence("clear", "", few=": few") == "a is ahead of b: clear."


def test_an_lstm_by_any_start_is_an_lstm():
    sides = ("LSTM (forget bias 3)", "Transformer", None)
    assert [family_of(side) for side in sides] == ["LSTM", "Transformer", ""]
