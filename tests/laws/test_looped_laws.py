"""Laws over loops: the published design, phi, and what an entropy bonus could explain."""

import math

import numpy as np
import pytest
from sweeps import known

from isoloss.errors import InputError, Refusal
from isoloss.laws import entropy_share, fit, problem_of, profile

# arXiv 2604.21106, table 6: tokens in billions at r = 1 and unique parameters in millions, by width / 64.
PRINTED_TOKENS = {
    4.64e17: {6: 0.98, 8: 0.64, 10: 0.45, 12: 0.34},
    1e18: {6: 2.10, 8: 1.36, 10: 0.97, 12: 0.72, 14: 0.56},
    2.15e18: {8: 2.95, 10: 2.08, 12: 1.55, 14: 1.20, 16: 0.96},
    4.64e18: {10: 4.49, 12: 3.34, 14: 2.59, 16: 2.07, 18: 1.70, 20: 1.42},
    1e19: {12: 7.13, 16: 4.43, 18: 3.62, 20: 3.05, 24: 2.20},
    2.15e19: {18: 7.78, 24: 4.71, 28: 3.58, 34: 2.52},
}
PRINTED_PARAMS = {
    6: (35.4, 21.5, 14.5, 10.9),
    16: (251.7, 153.1, 102.8, 77.6),
    34: (1136.5, 691.4, 464.1, 350.4),
}


def test_the_grid_is_the_published_one(worlds):
    x = worlds["loop-equivalence"].inputs
    unique = x["params_once"] + x["params_recurrent"]
    width = np.sqrt(x["params_once"] / 48) / 64
    tokens = [x["tokens"][(x["recurrence"] == 1) & np.isclose(width, w)] for w in range(40)]
    printed = {w: [row[w] for row in PRINTED_TOKENS.values() if w in row] for w in range(40)}
    assert sum(len(column) for column in printed.values()) == 29
    for w, column in printed.items():
        np.testing.assert_allclose(tokens[w] / 1e9, column, rtol=0.03)
    for w, row in PRINTED_PARAMS.items():
        np.testing.assert_allclose(unique[np.isclose(width, w)][:4] / 1e6, row, rtol=2e-4, atol=0.051)
    # Negative control: without the logits, tokens are off by more than that.
    bare = 6 * (x["params_once"] + x["recurrence"] * x["params_recurrent"]) + 240 * 2048 * width * 64
    whole = bare + 6 * width * 64 * 32_064
    first = (x["recurrence"] == 1) & np.isclose(width, 6)
    assert np.all(whole[first] / bare[first] > 1.1)


def test_phi_is_found_between_nothing_and_a_block_a_loop(worlds):
    world = worlds["loop-equivalence"]
    y = world.losses() + 0.01 * np.random.default_rng(1).standard_normal(116)
    fitted = fit("loop-equivalence", world.inputs, y, level=0.99)
    low, high = profile(fitted, problem_of(fitted)[0], "phi").interval
    assert 0 < low < 0.459 < high < 1
    for wrong in (0.0, 1.0):
        refit = fit("loop-equivalence", world.inputs, y, fixed={"phi": wrong}, curve_only=True)
        assert refit.objective.value > 3 * fitted.objective.value
        assert refit.params["phi"] == wrong


def test_one_number_of_loops_does_not_give_phi(worlds):
    world = worlds["loop-equivalence"]
    once = world.inputs["recurrence"] == 4
    with pytest.raises(Refusal, match="the number of loops takes 1 value"):
        fit("loop-equivalence", {k: x[once] for k, x in world.inputs.items()}, world.noisy(0)[once])


def test_free_shifts_are_found_where_the_data_show_them(worlds):
    """Loops shifted by one, as if T_m counted from 0: t3 is freed, found, and not taken for 0."""
    world = worlds["loop-total"]
    x = {**world.inputs, "recurrence": world.inputs["recurrence"] * 1.0}
    law = {**world.params, "C": 1.2, "gamma": 1.5}
    mean = (
        1.6 + 120 * x["params"] ** -0.3 + 900 * x["tokens"] ** -0.36 + 1.2 * (x["recurrence"] + 1.0) ** -1.5
    )
    y = mean * (1 + 2e-5 * np.random.default_rng(0).standard_normal(len(mean)))
    fitted = fit("loop-total", x, y, free=["t3"], fixed={"t1": 0.0, "t2": 0.0})
    assert fitted.fixed == {"t1": 0.0, "t2": 0.0}
    low, high = fitted.intervals["t3"]
    assert low < 1.0 < high
    assert high / low < 1.5
    assert fitted.params["gamma"] == pytest.approx(law["gamma"], rel=0.05)
    held = fit("loop-total", x, y)
    assert held.params["t3"] == 0
    assert held.objective.value > 10 * fitted.objective.value


def test_the_share_that_an_entropy_bonus_could_explain(worlds):
    world = worlds["loop-total"]
    fitted = fit("loop-total", world.inputs, world.noisy(0))
    share = entropy_share(fitted, 0.1)
    assert (share.least, share.recurrence) == (1, 8)
    C, gamma = fitted.params["C"], fitted.params["gamma"]
    assert share.fall == pytest.approx(C * (1 - 8**-gamma))
    assert share.bonus == pytest.approx(0.1 * math.log(8)) == pytest.approx(0.2079, abs=1e-4)
    assert share.share == pytest.approx(share.bonus / share.fall)
    assert f"{share.share:.0%}" in share.sentence
    assert "without better predictions" in share.sentence
    # The bounds at beta 0.1 with 2 and 4 loops; half of them at 0.05; none without a bonus.
    assert entropy_share(fitted, 0.1, 2).bonus == pytest.approx(0.069, abs=5e-4)
    assert entropy_share(fitted, 0.1, 4).bonus == pytest.approx(0.139, abs=5e-4)
    assert entropy_share(fitted, 0.05, 4).share == pytest.approx(entropy_share(fitted, 0.1, 4).share / 2)
    assert entropy_share(fitted, 0.0).share == 0
    assert entropy_share(fitted, 9.0).share == 1
    assert entropy_share(fitted, share.enough).bonus == pytest.approx(share.fall)


def test_a_bonus_alone_is_explained_as_a_whole(worlds):
    """Losses that do not depend on loops, minus beta ln T_m: the fitted term is the bonus."""
    world = worlds["loop-total"]
    x = world.inputs
    mean = 2.2 + 120 * x["params"] ** -0.3 + 900 * x["tokens"] ** -0.36 - 0.1 * np.log(x["recurrence"])
    y = mean + 0.002 * np.random.default_rng(1).standard_normal(len(mean))
    fitted = fit("loop-total", x, y, fixed={"gamma": 0.2})
    share = entropy_share(fitted, 0.1)
    assert share.share > 0.9
    # Negative control: the same question of the same fit at half the weight.
    assert entropy_share(fitted, 0.05).share < 0.6


def test_shares_that_cannot_be_asked_for(worlds):
    world = worlds["chinchilla"]
    with pytest.raises(InputError, match="no term"):
        entropy_share(fit("chinchilla", world.inputs, world.noisy(0)), 0.1)
    loop = known("loop-total", worlds["loop-total"].params)
    for arguments in [(0.1,), (-0.1, 4), (0.1, 1), (float("nan"), 4), (0.1, float("inf"))]:
        with pytest.raises(InputError):
            entropy_share(loop, *arguments)
