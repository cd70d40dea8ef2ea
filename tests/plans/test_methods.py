"""The exponent of N*(C) by several methods: they agree where they should, and each says what it cannot."""

import numpy as np
import pytest

from isoloss.errors import Refusal
from isoloss.plans.methods import exponents_by_method

LAW = {"E": 1.8, "A": 480.0, "alpha": 0.35, "B": 2100.0, "beta": 0.37}
TRUTH = LAW["beta"] / (LAW["alpha"] + LAW["beta"])


def _runs(decades=0.6, sigma=0.001, budgets=7, centre=1.0):
    C = np.repeat(np.geomspace(1e18, 1e21, budgets), 9)
    G = (LAW["alpha"] * LAW["A"] / (LAW["beta"] * LAW["B"])) ** (1 / (LAW["alpha"] + LAW["beta"]))
    best = G * (C / 6) ** TRUTH
    N = best * centre * np.tile(10.0 ** np.linspace(-decades, decades, 9), budgets)
    loss = LAW["E"] + LAW["A"] * N ** -LAW["alpha"] + LAW["B"] * (C / (6 * N)) ** -LAW["beta"]
    return C, N, loss + sigma * np.random.default_rng(0).standard_normal(len(C))


def test_all_three_find_the_exponent():
    exponents = exponents_by_method(*_runs(), noise=0.001)
    assert [one.method for one in exponents.each] == [
        "IsoFLOP, akima",
        "IsoFLOP, parabola",
        "envelope, hull",
        "law, chinchilla",
    ]
    for one in (exponents.each[0], exponents.each[1], exponents.each[3]):
        low, high = one.interval
        assert low - 0.02 < TRUTH < high + 0.02
        assert one.exponent == pytest.approx(TRUTH, abs=0.02)
    assert len(exponents.to_json()["opinions"]) == 4


def test_the_parabolas_bias_is_told_on_a_drifting_grid():
    """With unlike exponents, grids whose centres drift with the budget bend the parabola's exponent."""
    A, alpha, B, beta = 4000.0, 0.465, 40.0, 0.155
    truth = beta / (alpha + beta)
    C = np.repeat(np.geomspace(1e18, 1e21, 7), 11)
    best = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (C / 6) ** truth
    spread = np.tile(10.0 ** np.linspace(-0.9, 0.9, 11), 7)
    N = best * spread * np.repeat(np.geomspace(0.35, 2.8, 7), 11)
    loss = 1.5 + A * N**-alpha + B * (C / (6 * N)) ** -beta
    noise = 1e-4 * np.random.default_rng(1).standard_normal(len(C))
    akima, parabola, _, law = exponents_by_method(C, N, loss + noise, noise=1e-4).each
    assert abs(parabola.bias) > 0.003
    assert abs(akima.bias) < abs(parabola.bias) / 5
    assert parabola.exponent - parabola.bias == pytest.approx(truth, abs=0.001)
    # Negative control: uncorrected it is off by more.
    assert abs(parabola.exponent - truth) > 2 * abs(parabola.exponent - parabola.bias - truth)
    assert law.exponent == pytest.approx(truth, abs=0.01)


def test_what_one_cannot_say_the_others_still_do():
    C, N, loss = _runs()
    flat = 2.0 + 3e4 * C**-0.25 * (
        1 + 0.05 * np.log(N / (0.1 * C**0.5)) ** 2
    )  # rises again: no Chinchilla law
    exponents = exponents_by_method(C, N, flat, noise=1e-4)
    assert exponents.each[0].exponent is not None
    with pytest.raises(Refusal):
        exponents_by_method(C[:18], N[:18], loss[:18])


def test_curves_have_an_envelope_and_no_budgets():
    N = np.repeat(np.geomspace(2e7, 2e9, 9), 60)
    D = N * np.tile(np.geomspace(2, 300, 60), 9)
    loss = LAW["E"] + LAW["A"] * N ** -LAW["alpha"] + LAW["B"] * D ** -LAW["beta"]
    exponents = exponents_by_method(6 * N * D, N, loss, tokens=D, run=[f"{n:.0f}" for n in N])
    assert exponents.isoflop is None
    assert "budget" in exponents.each[0].refused
    outer = exponents.each[2]
    assert outer.exponent == pytest.approx(TRUTH, abs=0.01)
    with pytest.raises(Refusal):
        exponents_by_method(6 * N * D, N, loss, tokens=D)
