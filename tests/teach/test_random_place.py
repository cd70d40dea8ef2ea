"""The random-place panel as it measures: every cell, every distance, counted on strings of its own."""

import numpy as np
import pytest

from isoloss.stats import share
from isoloss.teach.amnesia.contest import measure as contest
from isoloss.teach.amnesia.contest.measure import STRINGS_A_DISTANCE
from isoloss.teach.learner import Cohort
from isoloss.teach.panels import panel

PANEL = panel("random-place")
TINY = PANEL.settings_from(
    {"lengths": [4, 6, 11], "widths": [8], "rates": [0.003, 0.01], "cap": 10, "every": 5, "seeds": 2}
)
DISTANCES = {4: [1, 2], 6: [1, 2, 4], 11: [1, 2, 4, 8, 9]}
"""By length: doubling, and the farthest of all, two less than the length."""


def quiet(done, text, tables=None):
    pass


def distances(rows, length):
    return sorted({row["distance"] for row in rows if row["length"] == length})


def test_a_run_has_a_row_a_look_and_a_row_a_distance():
    heard = []
    tables = PANEL.measure(TINY, lambda done, text, tables=None: heard.append(done))
    members = 2 * 2 * 2  # sides, rates, seeds
    assert len(tables["curves"]) == 3 * members * 3  # lengths; looks at 0, 5 and 10 updates
    assert len(tables["distances"]) == members * sum(map(len, DISTANCES.values()))
    assert {length: distances(tables["distances"], length) for length in DISTANCES} == DISTANCES
    assert heard == sorted(heard)
    assert 0 <= heard[0] <= heard[-1] <= 1
    for row in tables["distances"]:
        assert (row["n"], row["update"], row["chance"]) == (STRINGS_A_DISTANCE, 10, 1 / 26)
        counted = share(round(row["value"] * row["n"]), row["n"])
        assert (row["low"], row["high"]) == pytest.approx((counted.low, counted.high))
    sizes = {(row["side"], row["params"]) for row in tables["curves"]}
    assert max(size for _, size in sizes) / min(size for _, size in sizes) < 1.1


def test_distances_are_scored_on_the_trained_member_itself(monkeypatch):
    """A member that always finds the letter two steps back is right at that distance, elsewhere by chance."""

    class TwoBack(Cohort):
        def __init__(self, genuine):
            vars(self).update(vars(genuine))

        def shares(self, task, *, strings):
            x_BT, y_BT = task.batch(np.random.default_rng(3), strings)
            return [share(int((x_BT[:, -3] == y_BT[:, -1]).sum()), strings)] * len(self.members)

    genuine = contest.distances
    monkeypatch.setattr(contest, "distances", lambda labels, cohort: genuine(labels, TwoBack(cohort)))
    rows = PANEL.measure(TINY, quiet)["distances"]
    assert all((row["value"] == 1.0) == (row["distance"] == 2) for row in rows)
    assert all(row["value"] < 0.15 for row in rows if row["distance"] != 2), "26 letters: about 0.04"
