"""Each form against its formula: gradients, units, published numbers."""

import numpy as np
import pytest

from isoloss.errors import InputError
from isoloss.laws import FORMS, Term, form, power_sum, register

SHIPPED = [
    "chinchilla", "context", "context-params", "data-constrained", "kaplan-nd", "kaplan-ns",
    "loop-equivalence", "loop-step", "loop-total", "optimal-params", "outer-exponent", "pearce-song",
    "power", "power-floor", "shape", "width-depth",
]  # fmt: skip


def _random(law, seed):
    """Coordinates and scaled inputs: counts of loops and positions are at least 1, data at least unique."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(-0.7, 0.6, len(law.parameters))
    z_In = rng.uniform(-2, 2, (len(law.inputs), 9))
    for i, (name, unit) in enumerate(zip(law.inputs, law.units, strict=True)):
        if unit == "1":
            z_In[i] = np.abs(z_In[i])
        if name == "unique_tokens":
            z_In[law.inputs.index("tokens")] = z_In[i] + np.abs(rng.normal(size=9))
    return theta, z_In, rng


def _scales(law, rng):
    by_unit = {unit: 1.0 if unit == "1" else rng.uniform(1, 1e4) for unit in sorted(set(law.units))}
    return np.array([by_unit[unit] for unit in law.units])


def test_shipped_names_are_the_contract():
    assert sorted(FORMS) == SHIPPED
    assert form("chinchilla").parameters == ("E", "A", "alpha", "B", "beta")
    assert form("loop-total").parameters == ("E", "A", "alpha", "B", "beta", "C", "gamma", "t1", "t2", "t3")
    assert form("power").parameters == ("Nc", "a")
    for law in FORMS.values():
        assert law.formula
        assert law.source
        assert set(law.limits) | set(law.fixed) | set(law.signed) <= set(law.parameters)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("seed", range(5))
def test_gradient_equals_complex_step(name, seed):
    law = form(name)
    theta, z_In, _ = _random(law, seed)
    steps = theta + 1e-30j * np.eye(len(theta))
    numeric = np.imag(law.value(steps, z_In)).T / 1e-30
    close = {"rtol": 1e-12, "atol": 1e-15 * np.abs(numeric).max()}
    np.testing.assert_allclose(law.gradient(theta, z_In), numeric, **close)
    # Negative control: a gradient that is 0.1% off in one column must not pass.
    for column in np.flatnonzero(np.abs(numeric).max(axis=0) > 1e-3):
        wrong = law.gradient(theta, z_In) * (1 + 1e-3 * np.eye(len(theta))[column])
        assert not np.allclose(wrong, numeric, **close)


@pytest.mark.parametrize("name", SHIPPED)
def test_plain_parameters_give_the_law_of_the_scaled_ones(name):
    law = form(name)
    theta, z_In, rng = _random(law, 3)
    scale, loss_scale = _scales(law, rng), 3.7
    params = law.plain(law.unscale(theta, np.log(scale), np.log(loss_scale)))
    x = {key: s * np.exp(z) for key, s, z in zip(law.inputs, scale, z_In, strict=True)}
    np.testing.assert_allclose(law.loss(params, x), loss_scale * law.value(theta, z_In), rtol=1e-8)
    # Negative control: the coordinates themselves, taken for plain parameters, give another loss.
    assert not np.allclose(law.loss(law.plain(theta), x), loss_scale * law.value(theta, z_In), rtol=1e-3)


WITH_FLOOR = sorted(name for name, law in FORMS.items() if law.with_signed_floor() is not law)


@pytest.mark.parametrize("name", WITH_FLOOR)
def test_a_floor_that_may_be_negative_has_the_same_gradient_and_units(name):
    law = form(name).with_signed_floor()
    assert set(law.limits) == set(form(name).limits)
    theta, z_In, rng = _random(law, 1)
    steps = theta + 1e-30j * np.eye(len(theta))
    numeric = np.imag(law.value(steps, z_In)).T / 1e-30
    np.testing.assert_allclose(law.gradient(theta, z_In), numeric, rtol=1e-12, atol=1e-14)
    scale = _scales(law, rng)
    params = law.plain(law.unscale(theta, np.log(scale), np.log(3.7)))
    floor = law.parameters[0]
    assert params[floor] == pytest.approx(3.7 * theta[0])
    x = {key: s * np.exp(z) for key, s, z in zip(law.inputs, scale, z_In, strict=True)}
    np.testing.assert_allclose(law.loss(params, x), 3.7 * law.value(theta, z_In), rtol=1e-8)


@pytest.mark.parametrize("name", SHIPPED)
def test_value_and_gradient_take_many_vectors_at_once(name):
    law = form(name)
    theta, z_In, rng = _random(law, 0)
    thetas = theta + 0.1 * rng.normal(size=(4, len(theta)))
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
