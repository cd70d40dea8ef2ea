"""Held, tied and freed parameters against plain SciPy fits; profiles against refits."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import t as student

from isoloss.errors import InputError, Refusal
from isoloss.laws import fit, problem_of, profile

SIZES = np.geomspace(1e6, 1e8, 9)


def _direct(world, y, law, start):
    """Least squares by SciPy over free logs; ``law`` maps them to (E, A, alpha, B, beta)."""
    N, D = world.inputs["params"], world.inputs["tokens"]

    def residuals(free):
        E, A, alpha, B, beta = law(free)
        return E + A * (N / 1e9) ** -alpha + B * (D / 1e10) ** -beta - y

    solution = least_squares(residuals, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac")
    E, A, alpha, B, beta = law(solution.x)
    params = {"E": E, "A": A * 1e9**alpha, "alpha": alpha, "B": B * 1e10**beta, "beta": beta}
    return params, 2 * solution.cost


@pytest.mark.parametrize(
    ("options", "law", "start"),
    [
        ({"fixed": {"alpha": 0.3}}, lambda v: (v[0], v[1], 0.3, v[2], v[3]), [1.5, 0.4, 0.4, 0.4]),
        ({"fixed": {"E": 0.0}}, lambda v: (0.0, v[0], v[1], v[2], v[3]), [2.0, 0.1, 0.4, 0.4]),
        ({"tied": [("alpha", "beta")]}, lambda v: (v[0], v[1], v[3], v[2], v[3]), [1.5, 0.4, 0.4, 0.4]),
        (
            {"tied": [("alpha", "beta")], "fixed": {"beta": 0.36}},
            lambda v: (v[0], v[1], 0.36, v[2], 0.36),
            [1.5, 0.4, 0.4],
        ),
        (
            {"fixed": {"A": 300.0}},
            lambda v: (v[0], 300.0 * 1e9 ** -v[1], v[1], v[2], v[3]),
            [1.5, 0.3, 0.4, 0.4],
        ),
    ],
    ids=["alpha held", "no floor", "tied", "tied and held", "a coefficient held"],
)
def test_held_and_tied_are_a_smaller_problem(worlds, options, law, start):
    world = worlds["chinchilla"]
    y = world.noisy(3)
    params, squares = _direct(world, y, law, start)
    fitted = fit("chinchilla", world.inputs, y, **options)
    assert fitted.params == pytest.approx(params, rel=1e-5)
    assert fitted.objective.value == pytest.approx(squares, rel=1e-9)
    assert fitted.df == 36 - len(start)
    # What is tied to a held parameter is held with it.
    fixed = set(options.get("fixed", {}))
    partners = {name for group in options.get("tied", ()) if set(group) & fixed for name in group}
    assert set(fitted.fixed) == fixed | partners
    for name in fitted.fixed:
        assert fitted.params[name] == fitted.fixed[name]
        assert fitted.intervals[name] is None
    if "tied" in options:
        assert fitted.params["alpha"] == fitted.params["beta"]
        assert fitted.intervals["alpha"] == fitted.intervals["beta"]
    # Negative control: the free law is another one.
    assert fit("chinchilla", world.inputs, y).params != pytest.approx(params, rel=1e-3)


def test_what_cannot_be_held_tied_or_freed(worlds):
    world = worlds["chinchilla"]
    for options in (
        {"fixed": {"gamma": 1.0}},
        {"fixed": {"alpha": -1.0}},
        {"fixed": {"alpha": np.nan}},
        {"tied": [("A", "B")]},
        {"tied": [("alpha", "delta")]},
        {"free": ["gamma"]},
        {"starts": [{"E": 1.0}]},
    ):
        with pytest.raises(InputError):
            fit("chinchilla", world.inputs, world.noisy(0), **options)
    with pytest.raises(InputError, match="cannot be tied"):
        fit("loop-equivalence", worlds["loop-equivalence"].inputs, np.ones(116), tied=[("phi", "alpha")])


@pytest.mark.parametrize("law", ["power-floor", "chinchilla", "loop-equivalence"])
def test_a_profile_is_the_rise_of_direct_refits(worlds, law):
    """At each value: refit with the parameter held, F = (rise of the squares) / (squares / df)."""
    world = worlds[law]
    y = world.noisy(1)
    fitted = fit(law, world.inputs, y)
    name = {"power-floor": "E", "chinchilla": "B", "loop-equivalence": "phi"}[law]
    shape = profile(fitted, problem_of(fitted)[0], name)
    assert list(shape.values) == sorted(shape.values)
    variance = fitted.objective.value / fitted.df
    for i in range(0, len(shape.values), 4):
        refit = fit(law, world.inputs, y, fixed={name: shape.values[i]}, curve_only=True)
        distance = np.sqrt(max(refit.objective.value - fitted.objective.value, 0) / variance)
        assert abs(shape.distance[i]) == pytest.approx(distance, rel=1e-3, abs=1e-3)
        assert np.sign(shape.distance[i]) == np.sign(shape.values[i] - fitted.params[name])
    # Its ends are where that F is the square of the t quantile.
    assert shape.threshold == pytest.approx(student.ppf(0.95, fitted.df))
    for end in shape.interval:
        refit = fit(law, world.inputs, y, fixed={name: end}, curve_only=True)
        statistic = (refit.objective.value - fitted.objective.value) / variance
        assert statistic == pytest.approx(shape.threshold**2, rel=0.02)


def test_where_the_law_is_nearly_linear_profile_and_t_agree():
    y = (8.8e13 / SIZES) ** 0.076 * (1 + 1e-4 * np.random.default_rng(0).standard_normal(9))
    fitted = fit("power", {"params": SIZES}, y, intervals="profile")
    assert fitted.intervals_by == "profile"
    plain = fit("power", {"params": SIZES}, y)
    assert fitted.intervals["a"] == pytest.approx(plain.intervals["a"], rel=1e-5)
    # Negative control: with a floor and noise they differ by far more than that.
    curved = 1.8 + 400 * SIZES**-0.35 + 0.02 * np.random.default_rng(0).standard_normal(9)
    t, by_profile = (fit("power-floor", {"params": SIZES}, curved, intervals=i) for i in ("t", "profile"))
    assert abs(by_profile.intervals["a"][0] / t.intervals["a"][0] - 1) > 1e-3


def test_a_floor_that_may_be_nothing_has_an_open_end():
    """With E barely told from 0 the profile of E does not close below: its lower end is none."""
    open_ends = []
    for seed in range(6):
        y = 0.9 + 20 * SIZES**-0.16 + 0.01 * np.random.default_rng(seed).standard_normal(9)
        try:
            fitted = fit("power-floor", {"params": SIZES}, y, level=0.99)
        except Refusal:
            continue
        wide = profile(fitted, problem_of(fitted)[0], "E", level=0.9999)
        assert wide.interval[1] is not None
        open_ends.append(wide.interval[0] is None)
        # At a level that the data do reach both ends are there.
        assert None not in profile(fitted, problem_of(fitted)[0], "E", level=0.5).interval
        if open_ends[-1]:
            kept = fit("power-floor", {"params": SIZES}, y, level=0.9999, intervals="profile")
            assert kept.intervals["E"] == (None, pytest.approx(wide.interval[1], rel=1e-6))
            assert type(kept).from_json(kept.to_json()) == kept
    assert any(open_ends)


def test_what_has_no_profile(worlds):
    world = worlds["chinchilla"]
    y = world.noisy(0)
    fitted = fit("chinchilla", world.inputs, y, fixed={"alpha": 0.35})
    for name in ("alpha", "gamma", "params"):
        with pytest.raises(InputError, match="has no profile"):
            profile(fitted, problem_of(fitted)[0], name)
    lone = fit("chinchilla", world.inputs, y, starts=[world.params])
    with pytest.raises(InputError, match="has no profile"):
        profile(lone, problem_of(lone)[0], "beta")


def test_tied_exponents_share_a_profile(worlds):
    world = worlds["chinchilla"]
    fitted = fit("chinchilla", world.inputs, world.noisy(0), tied=[("alpha", "beta")], intervals="profile")
    assert fitted.intervals["alpha"] == pytest.approx(fitted.intervals["beta"], rel=1e-9)
    low, high = fitted.intervals["alpha"]
    assert low < fitted.params["alpha"] < high
