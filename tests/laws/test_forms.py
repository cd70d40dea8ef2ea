"""Each form against its formula: gradients, units, published numbers."""

import numpy as np
import pytest

from isoloss.errors import InputError
from isoloss.laws import FORMS, Term, form, power_sum, register

LAWS = sorted(FORMS)
SHIPPED = ["context", "loop-total", "power", "power-floor"]


def _random(law, seed):
    rng = np.random.default_rng(seed)
    theta = rng.normal(-0.7, 0.6, len(law.parameters))
    return theta, rng.uniform(-3, 3, (len(law.inputs), 9)), rng


def test_shipped_names_are_the_contract():
    assert set(SHIPPED) <= set(FORMS)
    assert form("loop-total").parameters == ("E", "A", "alpha", "B", "beta", "C", "gamma")
    assert form("power").parameters == ("Nc", "a")


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("seed", range(5))
def test_gradient_equals_complex_step(name, seed):
    law = form(name)
    theta, z_In, _ = _random(law, seed)
    steps = theta + 1e-30j * np.eye(len(theta))
    numeric = np.imag(law.value(steps, z_In)).T / 1e-30
    np.testing.assert_allclose(law.gradient(theta, z_In), numeric, rtol=1e-13, atol=1e-15)
    # Negative control: a gradient that is 0.1% off in one column must not pass.
    wrong = law.gradient(theta, z_In) * (1 + 1e-3 * np.eye(len(theta))[0])
    assert not np.allclose(wrong, numeric, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", SHIPPED)
def test_plain_parameters_give_the_law_of_the_scaled_ones(name):
    law = form(name)
    theta, z_In, rng = _random(law, 3)
    scale, loss_scale = rng.uniform(1, 1e4, len(law.inputs)), 3.7
    plain = np.exp(law.log_params(theta, np.log(scale), np.log(loss_scale)))
    params = dict(zip(law.parameters, plain, strict=True))
    x = {key: s * np.exp(z) for key, s, z in zip(law.inputs, scale, z_In, strict=True)}
    np.testing.assert_allclose(law.loss(params, x), loss_scale * law.value(theta, z_In), rtol=1e-11)


def test_value_and_gradient_take_many_vectors_at_once():
    law = form("loop-total")
    thetas = np.random.default_rng(0).normal(size=(4, 7))
    z_In = np.random.default_rng(1).normal(size=(3, 5))
    for function in (law.value, law.gradient):
        one_by_one = [function(theta, z_In) for theta in thetas]
        np.testing.assert_allclose(function(thetas, z_In), one_by_one, rtol=1e-13)


def test_power_gives_the_losses_of_kaplan():
    """L(N) = (8.8e13 / N)^0.076, Kaplan et al. 2020, eq. 1.1."""
    x = {"params": np.array([768, 1e6, 1e8, 1.5e9])}
    losses = form("power").loss({"Nc": 8.8e13, "a": 0.076}, x)
    np.testing.assert_allclose(losses, [6.926, 4.016, 2.830, 2.304], atol=6e-4)


def test_unknown_law_lists_the_names():
    with pytest.raises(InputError, match="'chincilla'") as caught:
        form("chincilla")
    assert all(name in caught.value.mend for name in SHIPPED)


def test_a_name_is_registered_once():
    law = power_sum("power", (Term("A", (("params", "a"),)),), inputs=("params",))
    with pytest.raises(InputError, match="exists"):
        register(law)
