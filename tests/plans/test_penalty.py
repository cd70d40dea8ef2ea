"""What another size costs: against the loss itself, at the same compute and at the same loss."""

import numpy as np
import pytest

from isoloss.plans import plan
from isoloss.plans.penalty import MOST_EXTRA, SPAN


def loss(fit, N, D):
    return fit.predict(params=N, tokens=D).loss


def test_the_same_compute_on_another_size_gives_the_extra_loss(fitted):
    best = plan(fitted, flops=1e21)
    factor, extra = np.array(best.penalty.factor), np.array(best.penalty.extra_loss)
    N = best.params * factor
    np.testing.assert_allclose(extra, loss(fitted, N, 1e21 / (6 * N)) - best.loss, atol=1e-12)
    assert extra.min() == extra[len(extra) // 2] == 0
    assert (factor[0], factor[-1]) == (pytest.approx(1 / SPAN), pytest.approx(SPAN))


def test_the_extra_compute_buys_the_loss_back(fitted):
    best = plan(fitted, flops=1e21)
    for factor, extra in zip(best.penalty.factor, best.penalty.extra_compute, strict=True):
        if extra is not None:
            N = best.params * factor
            assert loss(fitted, N, 1e21 * (1 + extra) / (6 * N)) == pytest.approx(best.loss, abs=1e-9)


def test_the_band_of_ten_percent_ends_where_the_curve_says(fitted):
    best = plan(fitted, flops=1e21)
    low, high = best.penalty.within_10_percent
    assert low < 1 < high
    for end in (low, high):
        N = best.params * end
        assert loss(fitted, N, 1e21 * (1 + MOST_EXTRA) / (6 * N)) == pytest.approx(best.loss, abs=1e-9)


def test_a_size_that_the_loss_cannot_be_reached_with_has_no_price(known):
    """A law whose parameters count for much: an eighth of them never reaches the loss."""
    steep = known({"E": 1.8, "A": 5e8, "alpha": 1.0, "B": 2000.0, "beta": 0.3})
    extra = plan(steep, flops=1e21).penalty.extra_compute
    assert extra[0] is None
    assert extra[-1] is not None


def test_a_fixed_size_has_no_penalty(fitted):
    assert plan(fitted, flops=1e21, params=1e9).penalty is None
