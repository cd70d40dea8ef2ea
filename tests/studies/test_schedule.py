"""One trunk, a cooldown branch for each D point: lengths, order and learning rates."""

from itertools import pairwise
from math import log2, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_of_a_run import run_settings

from isoloss.training.schedule import Segment, rate, segments, trace_steps, updates
from isoloss.training.settings import Recipe


def settings(steps, *, warmup=0.1, cooldown=0.2, learning_rate=0.01):
    return run_settings(
        batch_size=3,
        tokens=tuple(6 * step for step in steps),
        learning_rate=learning_rate,
        recipe=Recipe(warmup=warmup, cooldown=cooldown),
    )


steps = st.lists(st.integers(10, 5000), min_size=1, max_size=5, unique=True).map(sorted)
runs = st.builds(settings, steps, warmup=st.floats(0, 0.1), cooldown=st.floats(0.001, 0.999))


def test_an_example_worked_by_hand():
    run = settings([100, 200])
    assert segments(run) == [
        Segment(0, 0, 80),
        Segment(1, 80, 100),
        Segment(0, 80, 160),
        Segment(2, 160, 200),
    ]
    assert updates(run) == 160 + 20 + 40
    trunk, first = Segment(0, 0, 80), Segment(1, 80, 100)
    assert [rate(run, trunk, step) for step in (0, 4, 9, 10, 79)] == pytest.approx(
        [0.001, 0.005, 0.01, 0.01, 0.01]
    )
    # Of the branch's 20 steps, none, a quarter, four fifths and all but one are done.
    done = [(80, 0.0), (85, 0.25), (96, 0.8), (99, 0.95)]
    for step, share in done:
        assert rate(run, first, step) == pytest.approx(0.01 * (1 - sqrt(share)))
    assert trace_steps(run) == {0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 160}


@given(runs)
def test_the_trunk_is_walked_once_and_every_branch_leaves_it_where_it_stands(run):
    stands = 0
    branches = []
    for segment in segments(run):
        assert len(segment) > 0
        assert segment.start == stands
        assert segment.cooled == (segment.branch > 0)
        if segment.cooled:
            branches.append(segment)
        else:
            stands = segment.stop
    assert [branch.branch for branch in branches] == list(range(1, len(run.tokens) + 1))
    assert [branch.stop for branch in branches] == run.point_steps
    assert updates(run) == stands + sum(len(branch) for branch in branches)


@given(runs)
def test_a_branch_is_as_long_as_the_cooldown_says(run):
    for branch in (segment for segment in segments(run) if segment.cooled):
        assert abs(len(branch) - run.recipe.cooldown * branch.stop) <= 1


@given(runs)
def test_warmup_is_over_after_a_tenth_of_every_d_point(run):
    trunk = Segment(0, 0, run.point_steps[-1])
    for end in run.point_steps:
        assert rate(run, trunk, end // 10) == run.learning_rate
    early = [rate(run, trunk, step) for step in range(end // 10 + 1)]
    assert early == sorted(early)
    assert early[0] > 0


@given(runs)
def test_a_cooldown_starts_at_the_trunks_rate_and_falls_to_nearly_nothing(run):
    for branch in (segment for segment in segments(run) if segment.cooled):
        rates = [rate(run, branch, step) for step in range(branch.start, branch.stop)]
        assert rates[0] == rate(run, Segment(0, 0, branch.stop), branch.start)
        assert all(0 < value <= run.learning_rate for value in rates)
        n = len(branch)
        assert rates[-1] <= run.learning_rate * (1 - sqrt((n - 1) / n)) * (1 + 1e-12)
        warm = max(0, int(run.recipe.warmup * run.point_steps[0]) - branch.start)
        falling = rates[warm:]
        assert all(a > b for a, b in pairwise(falling))


@given(runs)
def test_validation_is_traced_along_the_trunk_only(run):
    end = max((s.stop for s in segments(run) if not s.cooled), default=0)
    traced = trace_steps(run)
    assert {0, end} <= traced
    assert max(traced) == end
    # Rounded powers of the square root of 2: the square is a power of 2, but for the rounding.
    assert all(abs(2 * log2(step) - round(2 * log2(step))) < 2 / step for step in traced - {0, end})


def test_a_run_that_only_cools_down_has_no_trunk():
    run = settings([10], cooldown=0.99)
    assert segments(run) == [Segment(1, 0, 10)]
    assert trace_steps(run) == {0}
