"""Plans on data that run out."""

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.plans import effective_tokens, epoch_value, plan


def test_the_worth_of_epochs_as_published():
    epochs = np.array([1.0, 2, 4, 8, 16, 32, 64])
    worth = [1.000, 0.984, 0.931, 0.828, 0.661, 0.448, 0.252]
    np.testing.assert_allclose(epoch_value(epochs), worth, atol=6e-4)
    assert effective_tokens(1e30, 1e9) == pytest.approx(16.4e9, rel=1e-3)
    assert effective_tokens(3e8, 1e9) == 3e8


def test_worth_grows_with_tokens_and_never_beyond_them():
    tokens = np.geomspace(1e6, 1e15, 200)
    worth = effective_tokens(tokens, 1e9)
    assert np.all(np.diff(worth) >= 0)
    assert np.all(worth <= tokens)
    with pytest.raises(InputError):
        effective_tokens(-1.0, 1e9)


def test_enough_data_changes_nothing(known):
    law = known("besiroglu")
    free, ample = plan(law, flops=1e22), plan(law, flops=1e22, unique_tokens=1e15)
    assert ample.params == pytest.approx(free.params, rel=1e-5)
    assert ample.epochs < 1
    assert not any("epochs" in warning or "R*_D" in warning for warning in ample.warnings)


def test_scarce_data_buys_a_larger_model_and_a_higher_loss(known):
    law = known("besiroglu")
    free, scarce = plan(law, flops=1e22), plan(law, flops=1e22, unique_tokens=5e9)
    assert scarce.params > free.params
    assert scarce.loss > free.loss
    assert scarce.epochs == pytest.approx(scarce.tokens / 5e9)
    assert scarce.effective_tokens < scarce.tokens
    p = law.params
    by_hand = p["E"] + p["A"] * scarce.params ** -p["alpha"] + p["B"] * scarce.effective_tokens ** -p["beta"]
    assert scarce.loss == pytest.approx(by_hand, rel=1e-12)
    assert any("R*_D = 15.39" in warning for warning in scarce.warnings)
    assert any("beyond 4 repeated" in warning for warning in scarce.warnings)


def test_max_epochs_holds(known):
    law = known("besiroglu")
    bound = plan(law, flops=1e22, unique_tokens=5e9, max_epochs=4)
    assert bound.epochs == pytest.approx(4, rel=1e-9)
    assert bound.flops == pytest.approx(1e22, rel=1e-9)
    assert any("max_epochs binds" in warning for warning in bound.warnings)
    assert bound.penalty.within_10_percent[0] == 1.0
    loose = plan(law, flops=1e22, unique_tokens=5e9, max_epochs=1000)
    assert loose.loss < bound.loss
    assert loose.params == pytest.approx(plan(law, flops=1e22, unique_tokens=5e9).params, rel=1e-5)


@pytest.mark.parametrize("most", [None, 3.0, 20.0])
def test_target_and_budget_are_inverse(known, most):
    law = known("besiroglu")
    by_budget = plan(law, flops=1e22, unique_tokens=1e10, max_epochs=most)
    by_loss = plan(law, loss=by_budget.loss, unique_tokens=1e10, max_epochs=most)
    assert by_loss.flops == pytest.approx(1e22, rel=1e-6)
    assert by_loss.params == pytest.approx(by_budget.params, rel=1e-3)


def test_a_target_beyond_the_data_is_refused(known):
    law = known("besiroglu")
    p = law.params
    floor = p["E"] + p["B"] * effective_tokens(1e30, 1e8) ** -p["beta"]
    with pytest.raises(Refusal, match="so few unique tokens"):
        plan(law, loss=floor - 1e-3, unique_tokens=1e8)
    assert plan(law, loss=floor + 0.02, unique_tokens=1e8).epochs > 10
    with pytest.raises(Refusal, match="so few unique tokens"):
        plan(law, loss=floor + 0.02, unique_tokens=1e8, max_epochs=2)


def test_repeats_and_serving_together(known):
    law = known("besiroglu")
    most = {"unique_tokens": 1e10, "serve_tokens": 1e12}
    by_budget = plan(law, flops=1e23, **most)
    assert by_budget.penalty.extra_loss[-1] is None or by_budget.penalty.extra_loss[-1] > 0
    by_loss = plan(law, loss=by_budget.loss, **most)
    assert by_loss.total_flops == pytest.approx(1e23, rel=1e-6)
    assert by_loss.params < plan(law, loss=by_budget.loss, unique_tokens=1e10).params
