"""The optimum and what is said about it: certified data, equivariance, nesting, round trips."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from nested_intervals import nested

from isoloss.errors import InputError, Refusal
from isoloss.laws import FORMS, Fit, FitStatus, Term, fit, form, power_sum

SIZES = np.geomspace(1e6, 1e8, 9)
OBJECTIVES = ["squared", "squared-log", "huber-log"]


def _floor_data(seed=0, sigma=0.01, sizes=SIZES):
    law = 1.8 + 400 * sizes**-0.35
    return law + sigma * np.random.default_rng(seed).standard_normal(len(sizes))


def _loop_data(seed=0, sigma=0.005):
    axes = np.geomspace(5e7, 1.4e9, 4), np.geomspace(2e8, 2e10, 5), [1, 2, 4, 8]
    N, D, T = (axis.ravel() for axis in np.meshgrid(*axes))
    law = 1.6 + 120 * N**-0.3 + 900 * D**-0.36 + 0.3 * T**-0.9
    noise = sigma * np.random.default_rng(seed).standard_normal(len(N))
    return {"params": N, "tokens": D, "recurrence": T}, law + noise


@pytest.fixture
def own_form(monkeypatch):
    """Registers a form for one test."""

    def add(law):
        monkeypatch.setitem(FORMS, law.name, law)
        return law

    return add


# NIST StRD, DanWood (US government work): y = b1 x^b2, energy radiated from a carbon filament lamp.
DANWOOD_Y = np.array([2.138, 3.421, 3.597, 4.340, 4.882, 5.660])
DANWOOD_X = np.array([1.309, 1.471, 1.490, 1.565, 1.611, 1.680])


def test_danwood_to_eight_digits(own_form):
    law = own_form(power_sum("danwood", (Term("b1", (("x", "b2"),)),), inputs=("x",)))
    # Our exponents are those of falling laws, and the range is under half a decade: x becomes x^-8.
    fitted = fit(law, {"x": DANWOOD_X**-8.0}, DANWOOD_Y)
    assert fitted.status is FitStatus.CONVERGED
    certified = {"b1": (0.76886226176, 0.018281973860), "b2": (3.8604055871 / 8, 0.051726610913 / 8)}
    for name, (value, error) in certified.items():
        assert fitted.params[name] == pytest.approx(value, rel=1e-8)
        assert fitted.standard_errors[name] == pytest.approx(error, rel=1e-8)
    assert fitted.objective.value == pytest.approx(4.3173084083e-03, rel=1e-8)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_l1_units_do_not_change_the_law(objective):
    y = _floor_data()
    plain = fit("power-floor", {"params": SIZES}, y, objective=objective)
    other = fit(
        "power-floor", {"params": SIZES / 1e6}, y / np.log(2), objective=objective, weights=np.full(9, 1e3)
    )
    assert other.params["a"] == pytest.approx(plain.params["a"], rel=1e-6)
    assert other.params["E"] * np.log(2) == pytest.approx(plain.params["E"], rel=1e-6)
    before, after = plain.predict(params=1e9), other.predict(params=1e3)
    assert after.loss * np.log(2) == pytest.approx(before.loss, rel=1e-6)
    np.testing.assert_allclose(np.array(after.interval) * np.log(2), before.interval, rtol=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_l2_the_fit_beats_the_truth(objective):
    for seed in range(20):
        y = _floor_data(seed)
        fitted = fit("power-floor", {"params": SIZES}, y, objective=objective)
        truth = 1.8 + 400 * SIZES**-0.35
        r = y - truth if objective == "squared" else np.log(y / truth)
        huber = np.where(np.abs(r) <= 1e-3, r**2 / 2, 1e-3 * (np.abs(r) - 5e-4))
        assert fitted.objective.value <= (huber if objective == "huber-log" else r**2).sum()


def test_l3_starts_agree_and_a_lone_best_start_is_not_trusted(monkeypatch):
    fitted = fit("power-floor", {"params": SIZES}, _floor_data())
    assert (fitted.starts.tried, fitted.starts.agreeing) == (4, 4)
    # Negative control: solvers that stop where they began must not be called converged.
    monkeypatch.setattr("isoloss.laws._solve.descend", lambda problem, phi_SF, **_: phi_SF)
    monkeypatch.setattr("isoloss.laws._solve.sharpen", lambda problem, phi: phi)
    stuck = fit("power-floor", {"params": SIZES}, _floor_data(sigma=0.001))
    assert stuck.status is not FitStatus.CONVERGED
    assert stuck.covariance is None
    assert stuck.intervals == {"E": None, "A": None, "a": None}
    assert stuck.predict(params=1e7).interval is None
    assert stuck.status.value in stuck.predict(params=1e7).warnings


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_l5_printed_parameters_predict_within_a_thousandth(objective):
    for seed in range(5):
        fitted = fit("power-floor", {"params": SIZES}, _floor_data(seed), objective=objective)
        E, A, a = map(float, re.fullmatch(r"L = (\S+) \+ (\S+) N\^-(\S+)", fitted.formula()).groups())
        np.testing.assert_allclose(E + A * SIZES**-a, fitted.predict(params=SIZES).loss, rtol=1e-3)


def test_formula_reads_like_the_paper():
    law = fit("power", {"params": SIZES}, (8.8e13 / SIZES) ** 0.076)
    assert re.fullmatch(r"L = \(8\.80*e13/N\)\^0\.0760*", law.formula())
    loop = fit("loop-total", *_loop_data()).formula()
    assert re.fullmatch(r"L = \S+ \+ \S+ N\^-\S+ \+ \S+ D\^-\S+ \+ \S+ T_m\^-\S+", loop)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_l6_order_and_zero_weights_change_nothing(objective):
    y = _floor_data()
    plain = fit("power-floor", {"params": SIZES}, y, objective=objective)
    order = np.random.default_rng(1).permutation(9)
    shuffled = fit("power-floor", {"params": SIZES[order]}, y[order], objective=objective)
    padded = fit(
        "power-floor",
        {"params": np.append(SIZES, 5e5)},
        np.append(y, np.nan),
        weights=np.append(np.ones(9), 0),
        objective=objective,
    )
    for other in (shuffled, padded):
        assert other.params == pytest.approx(plain.params, rel=1e-6)
        assert other.intervals["a"] == pytest.approx(plain.intervals["a"], rel=1e-5)


def test_l6_a_row_twice_weighs_two():
    y = _floor_data()
    twice = fit("power-floor", {"params": np.append(SIZES, SIZES[2])}, np.append(y, y[2]))
    weighted = fit("power-floor", {"params": SIZES}, y, weights=np.where(np.arange(9) == 2, 2.0, 1.0))
    assert weighted.params == pytest.approx(twice.params, rel=1e-7)
    # As clusters, duplicates add no certainty either: the intervals are the same too.
    clustered = fit(
        "power-floor",
        {"params": np.append(SIZES, SIZES[2])},
        np.append(y, y[2]),
        cluster=np.append(np.arange(9), 2),
    )
    assert clustered.intervals["a"] == pytest.approx(weighted.intervals["a"], rel=1e-6)
    assert (clustered.n, clustered.clusters, clustered.df) == (10, 9, 6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_l7_a_larger_law_never_fits_worse(objective):
    for seed in range(10):
        y = _floor_data(seed)
        small = fit("power", {"params": SIZES}, y, objective=objective)
        large = fit("power-floor", {"params": SIZES}, y, objective=objective)
        assert large.objective.value <= small.objective.value


def test_clusters_are_seeds_of_one_size():
    seeds = np.tile(SIZES, 3)
    y = np.concatenate([_floor_data(seed) for seed in range(3)])
    labels = [f"{size:.0f}" for size in seeds]
    fitted = fit("power-floor", {"params": seeds}, y, cluster=labels)
    assert (fitted.n, fitted.clusters, fitted.df) == (27, 9, 6)
    means = fit("power-floor", {"params": SIZES}, y.reshape(3, 9).mean(axis=0))
    assert fitted.params == pytest.approx(means.params, rel=1e-7)
    assert fitted.standard_errors == pytest.approx(means.standard_errors, rel=1e-6)
    within = [y[seeds == size].std(ddof=1) for size in SIZES]
    assert fitted.seeds.sd == pytest.approx(np.sqrt(np.mean(np.square(within))), rel=1e-6)
    assert fitted.sigma == pytest.approx(np.hypot(fitted.seeds.sd, fitted.seeds.form_sd))


def test_the_laws_own_error_is_seen_between_seeds_and_counts_designs():
    rng = np.random.default_rng(5)
    truth, seeds = 1.8 + 400 * np.tile(SIZES, 3) ** -0.35, 0.001 * rng.standard_normal(27)
    y = truth + np.tile(0.01 * rng.standard_normal(9), 3) + seeds
    fitted = fit("power-floor", {"params": np.tile(SIZES, 3)}, y)
    assert fitted.seeds.p < 1e-6
    assert (fitted.clusters, fitted.df) == (9, 6)
    assert any("the law's own error" in text for text in fitted.warnings)
    assert fitted.sigma == pytest.approx(np.hypot(fitted.seeds.sd, fitted.seeds.form_sd))
    assert fitted.seeds.form_sd > 5 * fitted.seeds.sd
    # Negative control: without that error every row counts, and nothing is said.
    honest = fit("power-floor", {"params": np.tile(SIZES, 3)}, truth + seeds)
    assert honest.seeds.p > 0.05
    assert (honest.clusters, honest.df) == (None, 24)
    assert fitted.standard_errors["a"] > 3 * honest.standard_errors["a"]


def test_loop_total_recovers_its_truth():
    inputs, y = _loop_data()
    fitted = fit("loop-total", inputs, y)
    assert fitted.status is FitStatus.CONVERGED
    for name, truth in {"E": 1.6, "alpha": 0.3, "beta": 0.36, "C": 0.3, "gamma": 0.9}.items():
        low, high = fit("loop-total", inputs, y, level=0.999).intervals[name]
        assert low < truth < high
    prediction = fitted.predict(params=[1e9, 1e9], tokens=1e11, recurrence=[4, 16])
    assert prediction.loss.shape == (2,)
    np.testing.assert_allclose(prediction.extrapolation["tokens"], 5.0)
    np.testing.assert_allclose(prediction.extrapolation["recurrence"], [1.0, 2.0])


def test_the_robust_objective_shrugs_off_one_bad_run():
    y = _floor_data(sigma=0.002)
    bad = y + np.where(np.arange(9) == 4, 0.05, 0.0)
    moved = [
        abs(fit("power-floor", {"params": SIZES}, bad, objective=o).params["a"] - 0.35)
        for o in ("huber-log", "squared-log")
    ]
    assert moved[0] < moved[1] / 5


def test_prediction_holds_its_parts():
    fitted = fit("power-floor", {"params": SIZES}, _floor_data())
    prediction = fitted.predict(params=1e9)
    assert isinstance(prediction.loss, float)
    assert nested(prediction)
    assert not nested(replace(prediction, band=prediction.interval)), "control"
    assert prediction.extrapolation == {"params": pytest.approx(10.0)}
    assert fitted.predict(params=1e7).extrapolation == {"params": 1.0}
    assert any("factor 50" in text for text in fitted.predict(params=5e9).warnings)
    assert fitted.predict(params=1e9, level=0.5).band[1] < prediction.band[1]
    assert fitted.predict(params=np.full((2, 3), 1e7)).loss.shape == (2, 3)
    for wrong in ({}, {"tokens": 1e9}, {"params": -1.0}, {"params": np.nan}, {"params": "many"}):
        with pytest.raises(InputError):
            fitted.predict(**wrong)


def test_residuals_are_observed_minus_fitted():
    y = _floor_data()
    fitted = fit("power-floor", {"params": SIZES}, y)
    np.testing.assert_allclose(fitted.residuals, y - fitted.predict(params=SIZES).loss, atol=1e-12)
    assert fitted.sigma == pytest.approx(np.sqrt(np.sum(np.square(fitted.residuals)) / 6))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_json_gives_the_same_fit_back(objective):
    source = {"table": "runs.csv"}
    fitted = fit("power-floor", {"params": SIZES}, _floor_data(), objective=objective, source=source)
    data = json.loads(json.dumps(fitted.to_json(), allow_nan=False))
    assert Fit.from_json(data) == fitted
    contract = (
        "law status reason params intervals level objective n starts condition warnings allocation source"
    )
    assert set(contract.split()) <= set(data)


def test_damaged_json_is_an_input_error():
    good = fit("power-floor", {"params": SIZES}, _floor_data()).to_json()
    for key in set(good) - {"allocation"}:
        with pytest.raises(InputError):
            Fit.from_json({name: value for name, value in good.items() if name != key})
    for change in ({"theta": [1.0]}, {"law": "nothing"}, {"status": "fine"}, {"covariance": [[1.0]]}):
        with pytest.raises(InputError):
            Fit.from_json(good | change)


def test_a_form_of_ones_own_must_be_registered(own_form):
    law = power_sum("mine", (Term("E"), Term("A", (("params", "a"),))), inputs=("params",))
    with pytest.raises(InputError, match="not registered"):
        fit(law, {"params": SIZES}, _floor_data())
    own_form(law)
    assert fit(law, {"params": SIZES}, _floor_data()).predict(params=1e7).loss > 0
    with pytest.raises(InputError, match="not registered"):
        fit(replace(law, formula="another"), {"params": SIZES}, _floor_data())


def test_rows_along_a_context_give_no_interval():
    T = np.arange(1.0, 65.0)
    noise = 0.01 * np.random.default_rng(0).standard_normal(64)
    fitted = fit("context", {"position": T}, 3 + 4 * T**-0.5 + noise)
    assert fitted.covariance is None
    assert any("several seeds" in text for text in fitted.warnings)
    assert form("context").correlated == "position"


@pytest.mark.parametrize(
    "change",
    [
        {"df": "x"},
        {"df": None},
        {"sigma": "x"},
        {"sigma": {}},
        {"fixed": None},
        {"level": "high"},
        {"n": 1.5},
        {"condition": [1]},
        {"standard_errors": {"E": "much"}},
        {"warnings": "one"},
        {"residuals": {"0": 1}},
        {"tied": "alpha"},
        {"clusters": "ten"},
        {"intervals": {"E": [1]}},
        {"data": {"inputs": {"params": [1.0]}, "loss": [1.0, 2.0], "weights": [1.0], "cluster": None}},
        {"ranges": {"moons": [1, 2]}},
        {"extra": 1},
        {"theta": [float("nan")] * 3},
        {"units": {"inputs": {"params": 0.0}, "loss": 1.0}},
        {"df": 0},
        {"df": -3},
        {"sigma": -0.1},
        {"level": 1.0},
        {"covariance": [[1.0, 0.0, 9.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]},
        {"covariance": [[1.0, 9.0, 0.0], [9.0, 1.0, 0.0], [0.0, 0.0, 1.0]]},
        {"covariance": [[1.0, 0.0, 1e18], [0.0, 1.0, 0.0], [1e18, 0.0, 1.0]]},
        {"covariance": [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]},
        {"source": {"columns": {"params": 1}}},
        {"source": {"columns": ["params"]}},
        {"source": {"loss_unit": 3}},
        {"ranges": {"params": [7.0, 1.0]}},
    ],
    ids=str,
)
def test_json_of_another_type_is_an_input_error(change):
    good = fit("power-floor", {"params": SIZES}, _floor_data()).to_json()
    assert Fit.from_json(good)
    with pytest.raises(InputError, match="not a fit"):
        Fit.from_json(good | change)


@pytest.mark.parametrize("held", [{"beta": 300.0}, {"alpha": 400.0, "beta": 300.0}, {"beta": 250.0}])
def test_held_parameters_at_which_no_slope_is_finite_are_refused(held):
    rng = np.random.default_rng(0)
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 1e11, 6)))
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.003 * rng.standard_normal(36))
    data = {"params": N, "tokens": D}
    with pytest.raises((Refusal, InputError)):
        fit("outer-exponent", data, loss, objective="huber-log", fixed=held)
    assert fit("outer-exponent", data, loss, objective="huber-log", fixed={"gamma": 1.0}).params["alpha"] > 0


def test_very_many_rows_give_the_optimum_of_all_of_them():
    """Starts go down on a sample, and many runs are left out by blocks: neither moves optimum or interval."""
    rng = np.random.default_rng(0)
    runs, each = 300, 80
    N, D = np.repeat(10 ** rng.uniform(6, 10, runs), each), np.tile(np.geomspace(1e8, 1e11, each), runs)
    off = np.repeat(rng.normal(0, 0.01, runs), each)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(off + rng.normal(0, 1e-3, runs * each))
    data, cluster = {"params": N, "tokens": D}, np.repeat(np.arange(runs), each)
    many = fit("chinchilla", data, loss, objective="squared-log", cluster=cluster)
    start = [many.params]
    near = fit("chinchilla", data, loss, objective="squared-log", cluster=cluster, starts=start * 2)
    assert many.params == pytest.approx(near.params, rel=1e-6)
    low, high = many.intervals["alpha"]
    assert low < 0.35 < high
    some = slice(None, 100 * each)  # few enough to leave out each run by itself
    few = fit("chinchilla", {name: x[some] for name, x in data.items()}, loss[some], objective="squared-log",
              cluster=cluster[some])  # fmt: skip
    ratio = few.standard_errors["alpha"] / many.standard_errors["alpha"]
    assert 0.8 * np.sqrt(3) < ratio < 1.6 * np.sqrt(3)


def test_a_fit_prints_as_its_law():
    fitted = fit("power-floor", {"params": SIZES}, _floor_data())
    assert str(fitted) == f"power-floor: {fitted.formula()} ({fitted.status.value})"
