"""The random-place panel as it measures: every cell, every distance, counted on strings of its own."""

import numpy as np
import pytest
from isoloss.teach.amnesia.random_place import STRINGS_A_DISTANCE, asked_distances, cell, measure

from isoloss.stats import share
from isoloss.teach.amnesia import random_place
from isoloss.teach.amnesia.settings import RandomPlaceSettings
from isoloss.teach.learner import Replica, build, params
from isoloss.teach.tasks import MarkedLetter

TINY = RandomPlaceSettings(lengths=(6, 11), widths=(8,), rates=(0.003, 0.01), cap=10, every=5, seeds=2)


@pytest.mark.parametrize(
    ("length", "distances"),
    [
        (3, [1]),
        (4, [1, 2]),
        (5, [1, 2, 3]),
        (6, [1, 2, 4]),
        (16, [1, 2, 4, 8, 14]),
        (34, [1, 2, 4, 8, 16, 32]),
    ],
)
def test_distances_double_and_end_at_the_farthest(length, distances):
    assert asked_distances(length) == distances
    for distance in distances:
        x_BT, y_BT = MarkedLetter(length, distance=distance).batch(np.random.default_rng(0), 20)
        assert (x_BT[:, length - 1 - distance] == y_BT[:, -1]).all()


def test_both_sides_of_a_cell_have_parameters_within_a_tenth():
    for length, width in ((16, 28), (64, 48)):
        made = cell(length, width)
        sizes = [params(build(side, made.task, [Replica(0, 0.01)]), 1) for side in made.sides]
        assert max(sizes) / min(sizes) < 1.1
        assert made.labels == {"length": length, "width": width, "chance": 1 / 26}


def test_a_run_has_a_row_a_look_and_a_row_a_distance():
    heard = []
    tables = measure(TINY, lambda done, text, tables=None: heard.append(done))
    sides, rates, seeds = 2, 2, 2
    assert len(tables["curves"]) == 2 * sides * rates * seeds * 3  # looks at 0, 5 and 10 updates
    assert len(tables["distances"]) == sides * rates * seeds * (len([1, 2, 4]) + len([1, 2, 4, 8, 9]))
    assert heard == sorted(heard)
    assert 0 <= heard[0] <= heard[-1] <= 1
    for row in tables["distances"]:
        assert (row["n"], row["update"]) == (STRINGS_A_DISTANCE, 10)
        counted = share(round(row["value"] * row["n"]), row["n"])
        assert (row["low"], row["high"]) == pytest.approx((counted.low, counted.high))
    assert {(row["length"], row["side"]) for row in tables["distances"]} == {
        (row["length"], row["side"]) for row in tables["curves"]
    }


def test_distances_are_scored_on_the_trained_member_itself(monkeypatch):
    """A member that always finds the letter two steps back is right at that distance, elsewhere by chance."""

    class TwoBack:
        def __init__(self, genuine):
            self.members, self.done = genuine.members, genuine.done

        def right(self, task, *, strings):
            x_BT, y_BT = task.batch(np.random.default_rng(3), strings)
            return np.stack([x_BT[:, -3] == y_BT[:, -1]] * len(self.members))

    genuine = random_place.distances
    monkeypatch.setattr(random_place, "distances", lambda run, cohort: genuine(run, TwoBack(cohort)))
    rows = measure(TINY, lambda *_: None)["distances"]
    assert all((row["value"] == 1.0) == (row["distance"] == 2) for row in rows)
    assert all(row["value"] < 0.15 for row in rows if row["distance"] != 2), "26 letters: about 0.04"
