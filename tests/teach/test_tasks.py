"""Tasks have one right answer each, and a batch is a pure function of its generator."""

import numpy as np
import pytest

from isoloss.teach.tasks import NOT_ASKED, Binding, FirstLetter, MarkedLetter

TASKS = [
    FirstLetter(20),
    MarkedLetter(32),
    MarkedLetter(32, distance=7),
    Binding(4, 8, 8),
    Binding(8, 64, 32),
]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_shapes_ranges_and_repeatability(task):
    x_BT, y_BT = task.batch(np.random.default_rng([0, 1]), 50)
    second = task.batch(np.random.default_rng([0, 1]), 50)
    other = task.batch(np.random.default_rng([0, 2]), 50)
    assert x_BT.shape == y_BT.shape == (50, task.context)
    assert x_BT.min() >= 0
    assert x_BT.max() < task.vocab
    assert ((y_BT == NOT_ASKED) | ((y_BT >= 0) & (y_BT < task.vocab))).all()
    assert np.array_equal(x_BT, second[0])
    assert np.array_equal(y_BT, second[1])
    assert not np.array_equal(x_BT, other[0])


def test_first_letter_is_the_first():
    x_BT, y_BT = FirstLetter(20).batch(np.random.default_rng(0), 100)
    assert np.array_equal(y_BT[:, -1], x_BT[:, 0])
    assert (y_BT[:, :-1] == NOT_ASKED).all()
    assert (x_BT[:, -1] == 26).all()


def test_the_marked_letter_follows_its_mark_at_every_distance():
    task = MarkedLetter(32)
    x_BT, y_BT = task.batch(np.random.default_rng(0), 3000)
    rows, marks = np.nonzero(x_BT == 27)
    assert np.array_equal(rows, np.arange(3000))
    assert np.array_equal(x_BT[rows, marks + 1], y_BT[:, -1])
    assert set(31 - (marks + 1)) == set(range(1, 31))
    fixed, _ = MarkedLetter(32, distance=7).batch(np.random.default_rng(0), 50)
    assert (np.nonzero(fixed == 27)[1] == 31 - 7 - 1).all()


def answers(x_T, pairs):
    """By reading the pairs: what a memory with binding says."""
    bound = {x_T[2 * i]: x_T[2 * i + 1] for i in range(pairs)}
    return [bound[key] for key in x_T[2 * pairs :]]


def test_binding_asks_each_key_for_its_own_value():
    task = Binding(4, 8, 8)
    x_BT, y_BT = task.batch(np.random.default_rng(0), 200)
    for x_T, y_T in zip(x_BT, y_BT, strict=True):
        assert len(set(x_T[0:8:2])) == 4
        assert answers(x_T, 4) == list(y_T[8:])
    # Control: pairing keys with the next pair's value would not pass.
    shifted = [list(np.roll(y_T[8:], 1)) == answers(x_T, 4) for x_T, y_T in zip(x_BT, y_BT, strict=True)]
    assert np.mean(shifted) < 0.2


def test_one_query_scores_one_answer_a_string():
    _, y_BT = Binding(4, 8, 8, one_query=True).batch(np.random.default_rng(0), 400)
    assert ((y_BT != NOT_ASKED).sum(axis=1) == 1).all()
    places = np.nonzero(y_BT != NOT_ASKED)[1]
    assert set(places) == {8, 9, 10, 11}
