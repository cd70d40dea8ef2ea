"""What no optimum may violate, for every form: larger laws, truth, order, weights, units, printed digits."""

import json
import re
from functools import cache

import numpy as np
import pytest

from isoloss.laws import FORMS, Fit, FitStatus, fit, form

OBJECTIVES = ["squared", "squared-log", "huber-log"]
LAWS = sorted(FORMS)
LAST_DIGITS = 1 + 1e-8  # of an objective: by what two ways to the same optimum differ

# A form, a larger one, the inputs that the larger one has beside, and what makes the two equal.
NESTED = [
    ("power", "power-floor", {}, {}),
    ("chinchilla", "outer-exponent", {}, {}),
    ("kaplan-nd", "outer-exponent", {}, {}),
    ("chinchilla", "pearce-song", {}, {"g": 0.0}),
    ("chinchilla", "data-constrained", {"unique_tokens": "tokens"}, {"R_N": 1e12, "R_D": 15.0}),
    (
        "chinchilla",
        "loop-equivalence",
        {"params_once": 0.0, "params_recurrent": "params", "recurrence": 1.0},
        {"phi": 0.5},
    ),
    ("chinchilla", "loop-total", {"recurrence": 1.0}, {"C": 0.0, "gamma": 1.0}),
    ("chinchilla", "width-depth", {"d_model": "params", "n_layer": 1.0}, {"B": 0.0, "b": 1.0}),
    ("context", "context-params", {"params": 1e6}, {"E": 0.0, "alpha": 1.0, "eta": 0.0}),
]


@pytest.fixture(scope="module")
def fits(worlds):
    """The fit of a law's own world: losses of one seed, and the fit itself."""

    @cache
    def one(law, objective="squared"):
        y = worlds[law].noisy(5)
        return y, fit(law, worlds[law].inputs, y, objective=objective)

    return one


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("small", "large", "more", "fixed"), NESTED, ids=[f"{n[0]}-{n[1]}" for n in NESTED])
def test_a_larger_law_never_fits_worse(worlds, small, large, more, fixed, objective):
    """On data of the smaller law and, where its design is the same, of the larger."""
    world, shape = worlds[small], form(large)
    size = len(world.losses())
    inputs = dict(world.inputs)
    for name, column in more.items():
        inputs[name] = world.inputs[column] if isinstance(column, str) else np.full(size, column)
    inputs = {name: inputs[name] for name in shape.inputs}
    curves = [world.noisy(1), world.noisy(2)]
    if not more:
        curves.append(shape.loss({**shape.fixed, **worlds[large].params}, inputs))
        curves[-1] = curves[-1] * (1 + 0.001 * np.random.default_rng(3).standard_normal(size))
    for y in curves:
        least = fit(small, world.inputs, y, objective=objective, curve_only=True)
        larger = fit(large, inputs, y, objective=objective, curve_only=True, fixed=fixed)
        assert larger.objective.value <= least.objective.value * LAST_DIGITS


def test_a_larger_law_that_stops_early_is_caught(worlds, monkeypatch):
    """Negative control: a solver that stays where it starts."""
    world = worlds["chinchilla"]
    y = world.noisy(1)
    least = fit("chinchilla", world.inputs, y).objective.value
    monkeypatch.setattr("isoloss.laws._solve.descend", lambda problem, phi_SF, **_: phi_SF)
    monkeypatch.setattr("isoloss.laws._solve.sharpen", lambda problem, phi: phi)
    stuck = fit("outer-exponent", world.inputs, y, curve_only=True)
    assert stuck.objective.value > least * LAST_DIGITS


@pytest.mark.parametrize("law", LAWS)
def test_the_fit_beats_the_truth(worlds, fits, law):
    world = worlds[law]
    for objective in OBJECTIVES:
        y, fitted = fits(law, objective)
        value = fitted.objective.value
        assert value <= _objective(y, world.losses(), objective)
        assert value == pytest.approx(_objective(y, fitted.predict(**world.inputs).loss, objective), rel=1e-9)
    for seed in range(3):
        y = world.noisy(seed)
        assert fit(law, world.inputs, y).objective.value <= _objective(y, world.losses(), "squared")


def _objective(y, predicted, objective):
    r = np.abs(y - predicted) if objective == "squared" else np.abs(np.log(y / predicted))
    return np.sum(np.where(r <= 1e-3, r**2 / 2, 1e-3 * (r - 5e-4)) if objective == "huber-log" else r**2)


def _same(fitted, other, factor=1.0, rel=1e-5, **inputs):
    """The same law: losses, intervals of exponents, predictions and what is said about them."""
    assert (other.status, other.df, other.n) == (fitted.status, fitted.df, fitted.n)
    exponents = [name for name in fitted.form.limits if name not in fitted.fixed and name != "best"]
    for name in exponents:
        assert other.params[name] == pytest.approx(fitted.params[name], rel=rel, abs=1e-6)
        if fitted.intervals[name]:
            assert other.intervals[name] == pytest.approx(fitted.intervals[name], rel=10 * rel, abs=1e-5)
    before, after = fitted.predict(**inputs.get("before")), other.predict(**inputs.get("after"))
    np.testing.assert_allclose(after.loss, factor * np.array(before.loss), rtol=rel)
    if before.interval:
        np.testing.assert_allclose(after.interval, factor * np.array(before.interval), rtol=10 * rel)


@pytest.mark.parametrize("law", LAWS)
def test_units_of_inputs_and_losses_change_nothing(worlds, fits, law):
    world, shape = worlds[law], form(law)
    factor = {unit: 10.0 ** (3 - 4 * i) for i, unit in enumerate(dict.fromkeys(shape.units))}
    factor |= {"1": 1.0, "position": 1.0}
    by = dict(zip(shape.inputs, (factor[unit] for unit in shape.units), strict=True))
    held = {"g": shape.fixed["g"] * by["params"] ** (2 / 3)} if law == "pearce-song" else {}
    scaled = {name: column * by[name] for name, column in world.inputs.items()}
    ends = {"before": world.far, "after": {name: value * by[name] for name, value in world.far.items()}}
    for objective in ("squared",) if shape.rugged else ("squared", "huber-log"):
        y, fitted = fits(law, objective)
        other = fit(law, scaled, y / np.log(2), objective=objective, weights=np.full(len(y), 1e3), fixed=held)
        _same(fitted, other, 1 / np.log(2), **ends)
        # Negative control: its parameters do change, as their units did.
        assert other.params != pytest.approx(fitted.params, rel=1e-3)


@pytest.mark.parametrize("law", LAWS)
def test_order_and_zero_weights_change_nothing(worlds, fits, law):
    world = worlds[law]
    for objective in ("squared",) if form(law).rugged else ("squared", "huber-log"):
        y, fitted = fits(law, objective)
        order = np.random.default_rng(1).permutation(len(y) + 3)
        padded = {name: np.append(column, column[:3] * 1.1)[order] for name, column in world.inputs.items()}
        weights, losses = np.append(np.ones(len(y)), np.zeros(3)), np.append(y, [np.nan, -1.0, 99.0])
        other = fit(law, padded, losses[order], weights=weights[order], objective=objective)
        _same(fitted, other, before=world.far, after=world.far)


def test_a_row_twice_weighs_two_in_a_grid_and_in_clusters(worlds):
    world = worlds["chinchilla"]
    y, extra = world.noisy(7), [3, 3, 8]
    ends = {"before": world.far, "after": world.far}
    weights = np.ones(36)
    np.add.at(weights, extra, 1.0)
    twice = {name: np.append(column, column[extra]) for name, column in world.inputs.items()}
    weighted = fit("chinchilla", world.inputs, y, weights=weights)
    doubled = fit("chinchilla", twice, np.append(y, y[extra]))
    assert doubled.params == pytest.approx(weighted.params, rel=1e-6)
    assert (doubled.n, doubled.df, weighted.df) == (39, 31, 31)
    # Checkpoints of six runs, one size each: rows in another order, another label, a weightless row.
    run = np.repeat(np.arange(6), 6)
    by_run = fit("chinchilla", world.inputs, y, cluster=run)
    order = np.random.default_rng(2).permutation(36)
    shuffled = {name: column[order] for name, column in world.inputs.items()}
    _same(by_run, fit("chinchilla", shuffled, y[order], cluster=(10 - run)[order]), **ends)
    assert (by_run.clusters, by_run.df) == (6, 1)
    # Negative control: another row twice is another law.
    other = fit("chinchilla", {n: np.append(x, x[[0]]) for n, x in world.inputs.items()}, np.append(y, y[0]))
    assert other.params != pytest.approx(weighted.params, rel=1e-6)


_NUMBER = r"[-+0-9.e]+"


@pytest.mark.parametrize("law", LAWS)
def test_printed_parameters_predict_within_a_thousandth(worlds, fits, law):
    world, shape = worlds[law], form(law)
    for objective in OBJECTIVES:
        fitted = fits(law, objective)[1]
        assert fitted.status is FitStatus.CONVERGED
        pattern = re.sub(r"\\\{(\w+)\\\}", "{}", re.escape(shape.text))
        names = re.findall(r"\{(\w+)\}", shape.text)
        printed = re.fullmatch(pattern.replace("{}", f"({_NUMBER})"), fitted.formula())
        assert printed, fitted.formula()
        params = {**shape.fixed, **dict(zip(names, map(float, printed.groups()), strict=True))}
        assert set(params) == set(shape.parameters)
        printed_losses, fitted_losses = shape.loss(params, world.inputs), fitted.predict(**world.inputs).loss
        np.testing.assert_allclose(printed_losses, fitted_losses, rtol=1e-3)
    # Negative control: every number with its second digit cut off is worse than that.
    rough = {**shape.fixed, **{name: float(f"{params[name] * 1.03:.1g}") for name in names}}
    assert np.max(np.abs(shape.loss(rough, world.inputs) / fitted_losses - 1)) > 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_json_gives_the_same_fit_back(worlds, fits, law):
    far = worlds[law].far
    for objective in OBJECTIVES:
        fitted = fits(law, objective)[1]
        reloaded = Fit.from_json(json.loads(json.dumps(fitted.to_json(), allow_nan=False)))
        assert reloaded == fitted
        assert reloaded.predict(**far) == fitted.predict(**far)
