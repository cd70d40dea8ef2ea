"""Estimates need not be right, but they must be positive and grow with what they count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss.studies import estimate
from isoloss.studies.estimate import MachineRate

HERE = MachineRate(1e10, 100, "made up")


@given(st.floats(1, 1e24), st.integers(1, 20_000), st.floats(1.01, 100))
def test_time_grows_with_flops_and_falls_with_width_and_rate(flops, width, factor):
    seconds = estimate.seconds(flops, width, HERE)
    assert seconds > 0
    assert estimate.seconds(flops * factor, width, HERE) == pytest.approx(seconds * factor)
    assert estimate.seconds(flops, width + 1, HERE) < seconds
    assert estimate.seconds(flops, width, MachineRate(1e10 * factor, 100, "")) < seconds


def test_at_the_width_of_half_speed_it_takes_twice_as_long():
    assert estimate.seconds(1e10, 100, HERE) == pytest.approx(2.0)
    assert estimate.seconds(1e10, 10**9, HERE) == pytest.approx(1.0, rel=1e-6)


def test_memory_grows_with_everything_it_counts():
    base = {
        "params_total": 1000,
        "d_model": 64,
        "executed_layers": 2,
        "exits": 1,
        "tokens": 512,
        "vocab": 1024,
    }
    bytes_ = estimate.memory_bytes(**base)
    assert bytes_ > estimate.PROCESS_BYTES + 16 * 1000
    for key, value in base.items():
        assert estimate.memory_bytes(**base | {key: 2 * value}) > bytes_, key


def test_memory_worked_by_hand():
    """float32 weights, gradients and two moments; activations; logits, their gradient and their softmax."""
    bytes_ = estimate.memory_bytes(
        params_total=1000, d_model=10, executed_layers=3, exits=2, tokens=7, vocab=50
    )
    assert bytes_ == estimate.PROCESS_BYTES + 1000 * 16 + 4 * 7 * (3 * 20 * 10 + 2 * 3 * 50)


def test_the_rate_of_this_machine_is_measured():
    rate = estimate.matmul_rate(n=128, seconds=0.02)
    assert 1e7 < rate < 1e14
    here = estimate.machine_rate(gpu=False)
    assert here.rate > 0
    assert "measured now" in here.basis
    assert estimate.machine_rate(gpu=True).rate > here.rate
    assert "assumed" in estimate.machine_rate(gpu=True).basis
