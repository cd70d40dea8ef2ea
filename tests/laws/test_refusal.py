"""L8: where the data cannot say, a refusal and never a number; hostile arrays never end in a traceback."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit, FitStatus, fit

SIZES = np.geomspace(1e6, 1e8, 7)
FLOOR = 1.8 + 400 * SIZES**-0.35


def _refused(law, losses, sizes, sims, seed, sigma=0.01):
    """Share of noisy data sets that ``fit`` refuses."""
    rng = np.random.default_rng(seed)
    count = 0
    for _ in range(sims):
        try:
            fit(law, {"params": sizes}, losses + sigma * rng.standard_normal(len(sizes)))
        except Refusal:
            count += 1
    return count / sims


@pytest.mark.parametrize("sizes", [7, 12])
def test_a_floor_that_is_not_there_is_refused(sizes):
    N = np.geomspace(1e6, 1e8, sizes)
    assert _refused("power-floor", (8.8e13 / N) ** 0.076, N, 200, seed=sizes) >= 0.99


@pytest.mark.parametrize("law", ["power", "power-floor"])
def test_noise_without_a_slope_is_refused(law):
    assert _refused(law, np.full(7, 3.0), SIZES, 200, seed=3) >= 0.99


def test_good_designs_are_not_refused():
    assert _refused("power-floor", FLOOR, SIZES, 300, seed=4) <= 0.01
    assert _refused("power", (8.8e13 / SIZES) ** 0.076, SIZES, 300, seed=5) <= 0.01


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
    with pytest.raises(Refusal, match="recurrence takes only 1"):
        fit("loop-total", {"params": N, "tokens": D, "recurrence": np.full(25, 4.0)}, losses)


def test_context_needs_five_positions():
    T = np.array([1.0, 4.0, 16.0, 64.0])
    with pytest.raises(Refusal, match="at least 5"):
        fit("context", {"position": T}, 3 + 4 * T**-0.5)


def test_a_rising_loss_is_refused():
    with pytest.raises(Refusal, match="does not fall"):
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


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(_numbers, _numbers, st.floats(0, 2), st.integers(0, 3)), max_size=9),
    law=st.sampled_from(["power", "power-floor", "context"]),
    objective=st.sampled_from(["squared", "squared-log", "huber-log"]),
    clustered=st.booleans(),
)
def test_hostile_rows_never_end_in_a_traceback(rows, law, objective, clustered):
    name = "position" if law == "context" else "params"
    _check_outcome(
        law,
        {name: [row[0] for row in rows]},
        [row[1] for row in rows],
        objective,
        weights=[row[2] for row in rows],
        cluster=[row[3] for row in rows] if clustered else None,
    )


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
    _check_outcome(law, {"params": sizes}, np.sort(losses)[::-1] * 10.0**size, objective)


def _check_outcome(law, inputs, losses, objective, **more):
    try:
        found = fit(law, inputs, losses, objective=objective, **more)
    except (InputError, Refusal):
        return
    assert isinstance(found.status, FitStatus)
    assert all(np.isfinite(value) and value > 0 for value in found.params.values())
    if found.status is not FitStatus.CONVERGED:
        assert found.covariance is None
    assert Fit.from_json(found.to_json()) == found


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
