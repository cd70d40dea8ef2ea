"""One string and what is answered to it while it is learned: the models' own answers."""

import re

import pytest

from isoloss.teach.panels import panel

QUICK = {
    "first-letter": {
        "lengths": [4],
        "widths": [8],
        "seeds": 2,
        "cap": 30,
        "every": 10,
        "rates": [1e-3, 3e-2],
    },
    "random-place": {"lengths": [6], "widths": [8], "seeds": 1, "cap": 20, "every": 10},
    "binding": {"pairs": [2], "keys": [4], "widths": [8], "seeds": 1, "cap": 20, "every": 10},
}


@pytest.fixture(scope="module", params=QUICK)
def made(request):
    one = panel(request.param)
    settings = one.settings_from(QUICK[request.param])
    return one, settings, one.measure(settings, lambda *_: None)


def test_the_answers_are_to_one_string_by_the_first_seed_at_every_look(made):
    _, settings, tables = made
    asked = {row["place"]: row["right"] for row in tables["example"] if row["right"] is not None}
    for row in tables["answers"]:
        assert row["seed"] == settings.first_seed
        assert row["right"] == (row["answer"] == asked[row["place"]])
    looks = {
        (r["side"], r["rate"], r["update"]) for r in tables["curves"] if r["seed"] == settings.first_seed
    }
    assert {(r["side"], r["rate"], r["update"]) for r in tables["answers"]} == looks
    assert len(tables["answers"]) == len(looks) * len(asked)
    # The string is unseen, yet a string of the task: what it asks for stands in it.
    assert set(asked.values()) <= {row["token"] for row in tables["example"]}


def test_the_slide_shows_the_string_and_one_row_a_side(made):
    one, settings, tables = made
    html = str(one.tell.example(settings, tables))
    sides = dict.fromkeys(row["side"] for row in tables["answers"])
    assert html.count('<th scope="row"') == len(sides)
    assert one.tell.asks in html
    assert one.tell.example(settings, {"curves": tables["curves"]}) == ""


def test_what_is_ringed_or_ticked_is_what_is_right(made):
    one, settings, tables = made
    asked = sum(row["right"] is not None for row in tables["example"])
    wrong = [row | {"right": False} for row in tables["answers"]]
    right = [
        row
        | {
            "right": True,
            "answer": next(
                example["right"] for example in tables["example"] if example["place"] == row["place"]
            ),
        }
        for row in tables["answers"]
    ]
    for answers, share in ((wrong, 0), (right, asked)):
        html = str(one.tell.example(settings, tables | {"answers": answers}))
        assert set(re.findall(r'aria-label="(\d+) of (\d+) right"', html)) == {(str(share), str(asked))}
        assert ('letter right"' in html or 'dot right"' in html) == bool(share)


def test_learning_a_task_shows_in_its_example():
    """Three letters are learned in a few updates: at the end the answer is right."""
    one = panel("first-letter")
    settings = one.settings_from(
        {"lengths": [3], "widths": [16], "seeds": 1, "cap": 200, "every": 40, "rates": [1e-2]}
    )
    answers = one.measure(settings, lambda *_: None)["answers"]
    last = [row for row in answers if row["side"] == "Transformer"][-1]
    assert last["right"]
