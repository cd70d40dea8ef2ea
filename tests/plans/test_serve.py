"""Plans that also pay for the finished model's use."""

import numpy as np
import pytest

from isoloss.errors import Refusal
from isoloss.plans import plan


def test_serving_wants_a_smaller_model_on_more_tokens(known):
    law = known("besiroglu")
    plain = plan(law, loss=2.1)
    used = [plan(law, loss=2.1, serve_tokens=s) for s in (1e11, 1e13, 1e15)]
    sizes = [plain.params, *(one.params for one in used)]
    tokens = [plain.tokens, *(one.tokens for one in used)]
    assert np.all(np.diff(sizes) < 0)
    assert np.all(np.diff(tokens) > 0)
    for one in used:
        assert one.loss == pytest.approx(2.1, rel=1e-9)
        assert one.flops > plain.flops
        at_plain = plain.flops + 2 * plain.params * one.given["serve_tokens"]
        assert one.total_flops < at_plain
        assert one.total_flops == pytest.approx(
            6 * one.params * one.tokens + 2 * one.params * one.given["serve_tokens"]
        )


def test_the_optimum_under_serving_meets_its_own_condition(known):
    # Along L = const: dlog cost / dlog N = 0, i.e. D / (D + S/3) = (beta B D^-beta) / (alpha A N^-alpha).
    law, serve = known("hoffmann"), 5e12
    planned, p = plan(law, loss=2.0, serve_tokens=serve), law.params
    left = p["beta"] * p["B"] * planned.tokens ** -p["beta"]
    right = p["alpha"] * p["A"] * planned.params ** -p["alpha"]
    assert planned.tokens / (planned.tokens + serve / 3) == pytest.approx(left / right, rel=1e-3)


def test_budget_and_target_meet(known):
    law = known("besiroglu")
    by_loss = plan(law, loss=2.1, serve_tokens=1e13)
    by_budget = plan(law, flops=by_loss.total_flops, serve_tokens=1e13)
    assert by_budget.loss == pytest.approx(2.1, abs=1e-8)
    assert by_budget.params == pytest.approx(by_loss.params, rel=1e-3)
    assert by_budget.total_flops == pytest.approx(by_loss.total_flops, rel=1e-9)


def test_little_serving_changes_nothing(known):
    law = known("besiroglu")
    assert plan(law, flops=1e22, serve_tokens=1.0).params == pytest.approx(
        plan(law, flops=1e22).params, rel=1e-6
    )


def test_a_budget_too_small_to_serve(known):
    with pytest.raises(Refusal, match="does not pay"):
        plan(known("besiroglu"), flops=1e20, params=1e10, serve_tokens=1e12)


def test_intervals_of_what_is_not_given(fitted):
    planned = plan(fitted, loss=2.3, serve_tokens=1e12)
    for name in ("params", "tokens", "flops"):
        low, high = planned.intervals[name]
        assert low < getattr(planned, name) < high
