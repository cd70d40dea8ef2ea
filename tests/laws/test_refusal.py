"""L8: where the data cannot say, a refusal and never a number; hostile arrays never end in a traceback."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoloss.errors import InputError, Refusal
from isoloss.laws import FORMS, Fit, FitStatus, fit, form

SIZES = np.geomspace(1e6, 1e8, 7)
FLOOR = 1.8 + 400 * SIZES**-0.35
GRID = {
    name: column.ravel()
    for name, column in zip(
        ("params", "tokens"),
        np.meshgrid(np.geomspace(5e7, 2e9, 6), np.geomspace(1e9, 4e10, 6), indexing="ij"),
        strict=True,
    )
}


def _refused(law, losses, inputs, sims, seed, sigma=0.01, **options):
    """Share of noisy data sets that ``fit`` refuses."""
    rng = np.random.default_rng(seed)
    inputs = inputs if isinstance(inputs, dict) else {"params": inputs}
    count = 0
    for _ in range(sims):
        try:
            fit(law, inputs, losses + sigma * rng.standard_normal(len(losses)), **options)
        except Refusal:
            count += 1
    return count / sims


def test_a_floor_that_is_not_there_is_refused():
    N = np.geomspace(1e6, 1e8, 12)
    assert _refused("power-floor", (8.8e13 / N) ** 0.076, N, 200, seed=12) >= 0.99


@pytest.mark.parametrize("law", ["power", "power-floor"])
def test_noise_without_a_slope_is_refused(law):
    assert _refused(law, np.full(7, 3.0), SIZES, 100, seed=3) >= 0.99


def _additive(E=1.8, A=480.0, B=2000.0, **inputs):
    return E + A * inputs["params"] ** -0.35 + B * inputs["tokens"] ** -0.37


@pytest.mark.parametrize(
    ("inputs", "truth"),
    [
        ({**GRID, "params": np.full(36, 1e8)}, {}),
        ({**GRID, "tokens": np.full(36, 1e10)}, {}),
        ({**GRID, "params": (GRID["params"] / 1e9) ** 0.25 * 1e9}, {}),
        (GRID, {"E": 0.0, "A": 60.0}),
        (GRID, {"B": 0.0}),
    ],
    ids=["one size", "one number of tokens", "sizes over 0.4 decades", "no floor", "no tokens"],
)
def test_designs_that_determine_no_law_are_refused(inputs, truth):
    assert _refused("chinchilla", _additive(**truth, **inputs), inputs, 100, seed=8) >= 0.99


def test_a_narrow_range_is_enough_where_the_exponent_is_held():
    """Negative control of the narrow range: with alpha known, the same sizes give the law."""
    inputs = {**GRID, "params": (GRID["params"] / 1e9) ** 0.25 * 1e9}
    losses = _additive(**inputs)
    assert _refused("chinchilla", losses, inputs, 20, seed=8, sigma=1e-3, fixed={"alpha": 0.35}) == 0
    assert _refused("chinchilla", losses, inputs, 20, seed=8, sigma=1e-3) == 1


def test_good_designs_are_not_refused():
    """Grids of sizes and tokens and of loops as well: tests/laws/test_coverage.py counts their refusals."""
    assert _refused("power-floor", FLOOR, SIZES, 100, seed=4) <= 0.01
    assert _refused("power", (8.8e13 / SIZES) ** 0.076, SIZES, 100, seed=5) <= 0.01
    assert _refused("chinchilla", _additive(**GRID), GRID, 20, seed=6) == 0


def _xlstm(run_tables, part):
    table = pl.read_csv(run_tables / "xlstm" / "isoflop_runs.csv").filter(
        pl.col("data_set").str.contains(part, literal=True),
        pl.col("final_val_loss").is_not_null() & (pl.col("final_val_loss") < 10),
    )
    x = {"params": table["num_params"].to_numpy(), "tokens": table["tokens"].to_numpy()}
    return x, table["final_val_loss"].to_numpy()


@pytest.mark.parametrize("objective", ["squared", "squared-log", "huber-log"])
@pytest.mark.parametrize("law", ["chinchilla", "outer-exponent"])
@pytest.mark.parametrize(("part", "runs"), [("flops_chinchilla", 52), ("gbs256", 29)])
def test_runs_that_do_not_determine_five_parameters_give_no_confident_number(
    run_tables, part, runs, law, objective
):
    """Stored fits of these runs have E from 0 to 2.5: a refusal, or intervals that say as much."""
    x, y = _xlstm(run_tables, part)
    assert len(y) == runs
    try:
        fitted = fit(law, x, y, objective=objective)
    except Refusal:
        return
    widest = max(np.ptp(np.log(fitted.intervals[name])) for name in ("alpha", "beta"))
    assert widest > np.log(10), fitted.intervals


def test_a_set_that_does_determine_the_law_is_fitted(run_tables):
    """Negative control: 85 runs of the same study over wider ranges."""
    fitted = fit("chinchilla", *_xlstm(run_tables, "llama_ctx2048"))
    assert fitted.status is FitStatus.CONVERGED
    assert max(np.ptp(np.log(fitted.intervals[name])) for name in ("alpha", "beta")) < 0.3


@pytest.mark.parametrize("objective", ["squared", "squared-log", "huber-log"])
def test_the_best_of_17_cells_is_too_little(run_tables, objective):
    table = pl.read_csv(run_tables / "steplaw" / "dense_lr_bs_loss.csv")
    best = table.group_by("N", "D").agg(pl.col("loss").min())
    assert best.height == 17
    x = {"params": best["N"].to_numpy(), "tokens": best["D"].to_numpy()}
    with pytest.raises(Refusal):
        fit("chinchilla", x, best["loss"].to_numpy(), objective=objective)


def test_the_refusal_rate_can_fail():
    """Negative control: without noise to hide in, the weak floor of 0.3 nats is found and not refused."""
    assert _refused("power-floor", 0.3 + 12 * SIZES**-0.1, SIZES, 20, seed=6, sigma=1e-6) == 0


def test_a_missing_floor_points_to_the_law_without():
    with pytest.raises(Refusal, match="floor E") as caught:
        fit("power-floor", {"params": SIZES}, (8.8e13 / SIZES) ** 0.076)
    assert "'power'" in caught.value.mend
    assert "larger or smaller models" in caught.value.mend


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ([1e6] * 6, "different points, not 1"),
        ([1e6, 1e7, 1e8], "different points, not 3"),
        ([1e6, 1e6, 1e7, 1e7], "different points, not 2"),
        (np.geomspace(1e6, 3e6, 9), "too little for an exponent"),
        ([], "no runs"),
    ],
)
def test_thin_designs_are_refused(sizes, reason):
    losses = 1.8 + 400 * np.asarray(sizes) ** -0.35
    with pytest.raises(Refusal, match=reason):
        fit("power-floor", {"params": sizes}, losses)


def test_one_value_of_an_input_is_refused():
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e6, 1e8, 5), np.geomspace(1e8, 1e10, 5)))
    losses = 1.6 + 120 * N**-0.3 + 900 * D**-0.36
    with pytest.raises(Refusal, match="the number of loops takes 1 value"):
        fit("loop-total", {"params": N, "tokens": D, "recurrence": np.full(25, 4.0)}, losses)


def test_context_needs_five_positions():
    T = np.array([1.0, 4.0, 16.0, 64.0])
    with pytest.raises(Refusal, match="at least 5"):
        fit("context", {"position": T}, 3 + 4 * T**-0.5)


def test_a_rising_loss_is_refused():
    with pytest.raises(Refusal, match="hardly falls"):
        fit("power", {"params": SIZES}, 2 + 0.1 * np.log10(SIZES))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.parametrize("column", ["params", "loss"])
def test_a_bad_number_names_its_row(bad, column):
    columns = {"params": SIZES.copy(), "loss": FLOOR.copy()}
    columns[column][3] = bad
    with pytest.raises(InputError, match=f"row 4: {column} is"):
        fit("power-floor", {"params": columns["params"]}, columns["loss"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"inputs": {"tokens": SIZES}},
        {"inputs": {"params": SIZES, "tokens": SIZES}},
        {"inputs": {"params": SIZES[:-1]}},
        {"inputs": {"params": SIZES.reshape(1, 7)}},
        {"inputs": {"params": ["a"] * 7}},
        {"inputs": {"params": SIZES * 1j}},
        {"weights": -np.ones(7)},
        {"weights": np.ones(6)},
        {"weights": np.full(7, np.nan)},
        {"cluster": ["a"]},
        {"objective": "absolute"},
        {"delta": 0.0},
        {"level": 1.0},
        {"level": float("nan")},
        {"loss": np.geomspace(1e-9, 1, 7)},
    ],
)
def test_wrong_arguments_are_input_errors(arguments):
    with pytest.raises(InputError):
        fit("power-floor", **({"inputs": {"params": SIZES}, "loss": FLOOR} | arguments))


_numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(min_value=1e-3, max_value=1e12),
    st.floats(min_value=1.0, max_value=5.0),
    st.integers(min_value=-3, max_value=10**30),
    st.sampled_from([0.0, -0.0, 5e-324, 1.8e308, 1e6, 1e7, 1e8]),
)


_labels = st.one_of(st.none(), st.sampled_from(["a", "b"]), st.integers(0, 3), st.floats(allow_nan=True))
_names = st.sampled_from(sorted({name for law in FORMS.values() for name in law.parameters}))
_values = st.sampled_from([0.0, 0.3, 5.0, 1e300, -1.0, float("nan")])
_options = st.fixed_dictionaries(
    {},
    optional={
        "objective": st.sampled_from(["squared", "squared-log", "huber-log", "huber-likelihood", "median"]),
        "delta": st.sampled_from([1e-3, 1e-9, 1.0, 0.0, float("nan"), float("inf")]),
        "level": st.sampled_from([0.9, 1e-9, 1 - 1e-12, 0.0, 1.0, float("nan")]),
        "fixed": st.dictionaries(
            _names, st.sampled_from([0.0, 0.3, 5.0, 1e300, -1.0, float("nan")]), max_size=3
        ),
        "free": st.lists(_names, max_size=2),
        "tied": st.lists(st.lists(_names, max_size=3), max_size=1),
        "starts": st.lists(st.dictionaries(_names, st.sampled_from([0.3, 1e-9, 1e9, 0.0, -2.0])), max_size=2),
        "intervals": st.sampled_from(["t", "profile", "bootstrap", "percentile"]),
        "bootstrap": st.sampled_from([0, 100, 7, -1]),
        "allow_negative": st.booleans(),
        "curve_only": st.booleans(),
    },
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(law=st.sampled_from(sorted(FORMS)), options=_options, data=st.data())
def test_hostile_rows_and_options_never_end_in_a_traceback(law, options, data):
    inputs = form(law).inputs
    rows = data.draw(
        st.lists(st.tuples(*[_numbers] * (len(inputs) + 1), st.floats(0, 2), _labels), max_size=9)
    )
    columns = list(zip(*rows, strict=True)) or [()] * (len(inputs) + 3)
    more = {"weights": columns[-2]} if data.draw(st.booleans()) else {}
    more |= {"cluster": columns[-1]} if data.draw(st.booleans()) else {}
    _check_outcome(law, dict(zip(inputs, columns, strict=False)), columns[len(inputs)], **more, **options)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(law=st.sampled_from(sorted(FORMS)), options=_options, seed=st.integers(0, 9))
def test_any_option_on_good_rows_gives_a_status_or_a_reason(worlds, law, options, seed):
    world = worlds[law]
    keep = np.random.default_rng(seed).permutation(len(world.losses()))[:24]
    inputs = {name: column[keep] for name, column in world.inputs.items()}
    _check_outcome(law, inputs, world.noisy(seed)[keep], **options)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    spread=st.floats(0.1, 250),
    middle=st.floats(-20, 20),
    size=st.floats(-250, 250),
    losses=st.lists(st.floats(1e-3, 1e3), min_size=8, max_size=8),
    law=st.sampled_from(["power", "power-floor"]),
    objective=st.sampled_from(["squared", "squared-log", "huber-log"]),
)
def test_any_units_and_any_curve_give_a_status_or_a_refusal(spread, middle, size, losses, law, objective):
    sizes = 10 ** np.linspace(middle - spread / 2, middle + spread / 2, 8)
    losses = np.sort(losses)[::-1] * 10.0**size
    _check_outcome(law, {"params": sizes}, losses, objective=objective)


def _check_outcome(law, inputs, losses, **more):
    try:
        fitted = fit(law, inputs, losses, **more)
    except (InputError, Refusal):
        return
    assert isinstance(fitted.status, FitStatus)
    for name, value in fitted.params.items():
        assert np.isfinite(value)
        assert value >= 0 or name in fitted.form.signed
    if fitted.status is not FitStatus.CONVERGED:
        assert fitted.covariance is None
        assert set(fitted.intervals.values()) == {None}
    assert Fit.from_json(json.loads(json.dumps(fitted.to_json(), allow_nan=False))) == fitted


def test_curve_only_keeps_the_curve_and_nothing_else():
    """An unidentified law may still draw a curve through its data; it quotes no interval and says why."""
    rng = np.random.default_rng(3)
    params = np.tile(np.geomspace(1e4, 1e6, 7), 2)
    loss = 4.0 * params**-0.05 * np.exp(0.002 * rng.standard_normal(14))
    with pytest.raises(Refusal) as refused:
        fit("power-floor", {"params": params}, loss)
    curve = fit("power-floor", {"params": params}, loss, curve_only=True)
    assert curve.status is FitStatus.CURVE_ONLY
    assert curve.reason == refused.value.what
    assert set(curve.intervals.values()) == {None}
    prediction = curve.predict(params=params)
    assert prediction.interval is None
    assert np.max(np.abs(prediction.loss / loss - 1)) < 0.01
    assert curve.status.value in prediction.warnings
    supported = fit("power", {"params": params}, loss, curve_only=True)
    assert supported.status is FitStatus.CONVERGED, "a law that the data support is untouched"


def test_an_exponent_that_no_published_law_has_is_doubted():
    rng = np.random.default_rng(0)
    sizes = np.geomspace(1e6, 1e8, 12)
    steep = 2 + 1e9 * sizes**-1.5 + 1e-3 * rng.standard_normal(12)
    fitted = fit("power-floor", {"params": sizes}, steep)
    assert any("published exponents" in text for text in fitted.warnings)
    held = fit("power-floor", {"params": sizes}, steep, fixed={"a": 1.5})
    assert not any("published exponents" in text for text in held.warnings)
    usual = fit("power-floor", {"params": sizes}, 2 + 400 * sizes**-0.35 + 1e-3 * rng.standard_normal(12))
    assert not any("published exponents" in text for text in usual.warnings)
