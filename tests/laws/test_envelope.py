"""The envelope: a known law comes back, ends of curves and of the sizes do not bend it, intervals hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import EXPONENT, LAW, chinchilla, chinchilla_optimum

from isoloss.errors import InputError, IsolossError, Refusal
from isoloss.laws.envelope import Cut, envelope

SIZES = np.geomspace(1e7, 1e10, 13)
UNEVEN = 1e7 * np.cumprod([1, 1.2, 2.6, 1.3, 2.2, 1.25, 3.0, 1.4, 1.9, 1.3])


def curves(sizes=SIZES, *, sd=0.0, rng=None, steps=60, longest=300.0, shortest=0.6):
    """Columns of curves of a Chinchilla law at constant learning rate; each run is off by its own noise.

    Tokens run from ``shortest`` to ``longest`` per parameter.
    """
    rng = rng or np.random.default_rng(0)
    longest = np.broadcast_to(longest, len(sizes))
    N = np.repeat(sizes, steps)
    D = np.concatenate(
        [N0 * np.geomspace(shortest, end, steps) for N0, end in zip(sizes, longest, strict=True)]
    )
    off = np.repeat(sd * rng.standard_normal(len(sizes)), steps)
    loss = LAW["E"] + LAW["A"] * N ** -LAW["alpha"] + LAW["B"] * D ** -LAW["beta"] + off
    return {
        "flops": 6 * N * D,
        "params": N,
        "loss": loss,
        "tokens": D,
        "run": np.repeat(np.arange(len(sizes)), steps).tolist(),
    }


@pytest.mark.parametrize(("choice", "close"), [("running-minimum", 0.005), ("hull", 0.02)])
@pytest.mark.parametrize("sizes", [SIZES, UNEVEN])
def test_a_chinchilla_law_comes_back(choice, close, sizes):
    lower_envelope = envelope(**curves(sizes, steps=150), choice=choice, draws=0)
    assert lower_envelope.params.exponent == pytest.approx(EXPONENT, abs=0.004)
    assert lower_envelope.tokens.exponent == pytest.approx(1 - EXPONENT, abs=0.004)
    exact = chinchilla_optimum(LAW, [handover.flops for handover in lower_envelope.used])
    assert [handover.params for handover in lower_envelope.used] == pytest.approx(exact, rel=close)
    assert [third.exponent for third in lower_envelope.thirds] == pytest.approx([EXPONENT] * 3, abs=0.015)


def test_the_smallest_and_largest_size_would_bend_the_law():
    table = curves()
    lower_envelope = envelope(**table, draws=0)
    grid = np.linspace(np.log(table["flops"].min()), np.log(table["flops"].max()), 1500)
    y_Rx = [
        np.interp(grid, np.log(table["flops"][own]), np.log(table["loss"][own]), left=np.inf, right=np.inf)
        for own in np.split(np.arange(len(table["flops"])), len(SIZES))
    ]
    plain = np.polyfit(grid, np.log(SIZES[np.argmin(y_Rx, axis=0)]), 1)[0]
    assert abs(plain - EXPONENT) > 0.02
    assert lower_envelope.params.exponent == pytest.approx(EXPONENT, abs=0.002)


def test_a_curve_that_ends_gives_no_handover():
    at_optimum = chinchilla_optimum(LAW, 1.0) ** (-1 / EXPONENT) * SIZES ** (1 / EXPONENT - 2) / 6
    longest = np.where(np.arange(13) % 4 == 2, at_optimum, 300.0)  # too short for a larger size to overtake
    table = curves(longest=longest)
    lower_envelope = envelope(**table, draws=0)
    cut = [handover for handover in lower_envelope.handovers if handover.cut is not None]
    assert cut
    assert {handover.cut for handover in cut} == {Cut.ENDED}
    off = [math.log(handover.params / chinchilla_optimum(LAW, handover.flops)) for handover in cut]
    assert min(off) > 0.2  # the next size took over too soon: N* would be too large
    assert lower_envelope.params.exponent == pytest.approx(EXPONENT, abs=0.01)


def test_a_curve_that_begins_ahead_gives_no_handover():
    table = curves()
    late = (table["params"] == SIZES[6]) & (table["tokens"] < 60 * SIZES[6])
    kept = {name: np.asarray(column)[~late] for name, column in table.items()}
    lower_envelope = envelope(**(kept | {"run": kept["run"].tolist()}), draws=0)
    assert Cut.BEGAN in {handover.cut for handover in lower_envelope.handovers}
    assert lower_envelope.params.exponent == pytest.approx(EXPONENT, abs=0.01)


def test_the_bootstrap_over_runs_covers_and_counting_checkpoints_does_not():
    """60 simulations at nominal 90%: the bootstrap errs on the wide side; checkpoints as runs must fail."""
    rng = np.random.default_rng(1)
    held = np.zeros(2)
    for _ in range(60):
        table = curves(np.geomspace(1e7, 1e10, 10), sd=0.01, rng=rng, steps=40)
        lower_envelope = envelope(**table, draws=100)
        low, high = lower_envelope.params_interval
        held[0] += low <= EXPONENT <= high
        # As if each of the 40 checkpoints were a run: the t interval of the line, narrower by its root.
        off = abs(lower_envelope.params.exponent - EXPONENT)
        held[1] += off <= 1.645 * lower_envelope.params.standard_error / math.sqrt(40)
    covered, naive = held / 60
    assert covered >= 0.83
    assert naive < 0.6


def test_more_noise_widens_the_interval():
    def width(sd):
        low, high = envelope(**curves(sd=sd, rng=np.random.default_rng(2)), draws=200).params_interval
        return high - low

    assert width(0.02) > 2 * width(0.002)


def test_the_order_of_rows_and_names_of_runs_change_nothing():
    table = curves(sd=0.01)
    order = np.random.default_rng(3).permutation(len(table["flops"]))
    mixed = {name: [column[i] for i in order] for name, column in table.items()}
    mixed["run"] = [f"run {20 - name}" for name in mixed["run"]]
    for choice in ("running-minimum", "hull"):
        assert envelope(**mixed, choice=choice, draws=20) == envelope(**table, choice=choice, draws=20)


def test_units_change_no_exponent():
    table = curves(sd=0.01)
    scaled = table | {
        "flops": table["flops"] / 1e18,
        "params": table["params"] / 1e9,
        "loss": table["loss"] / math.log(2),
        "tokens": table["tokens"] / 1e9,
    }
    lower_envelope, rescaled = envelope(**table, draws=50), envelope(**scaled, draws=50)
    assert rescaled.params.exponent == pytest.approx(lower_envelope.params.exponent, rel=1e-6)
    assert rescaled.params_interval == pytest.approx(lower_envelope.params_interval, rel=1e-6)


def test_runs_without_curves_are_read_by_their_hull():
    C = np.repeat(np.geomspace(1e18, 1e22, 13), 15)
    N = np.tile(np.geomspace(1e7, 1e11, 15), 13)
    loss = chinchilla(C, N)
    lower_envelope = envelope(C, N, loss, choice="hull", draws=0)
    assert lower_envelope.params.exponent == pytest.approx(EXPONENT, abs=0.05)
    assert "D = C/(6 N) is assumed" in lower_envelope.warnings[0]
    few = N >= 1.5e8  # the optimum at small C lies below every size
    handovers = envelope(C[few], N[few], loss[few], choice="hull", draws=0).handovers
    assert handovers[0].cut is Cut.NO_SMALLER


def test_thin_data_are_refused():
    with pytest.raises(Refusal, match="2 usable handovers"):
        envelope(**curves(SIZES[:3]))
    with pytest.raises(Refusal, match="half a decade"):
        envelope(**curves(1e8 * np.array([1, 1.1, 1.21, 1.33])))
    with pytest.raises(Refusal, match="ends there instead of being overtaken"):
        envelope(**curves(longest=3.0, shortest=0.03))


def test_a_bootstrap_that_mostly_fails_gives_no_interval():
    lower_envelope = envelope(**curves(SIZES[::3], sd=0.005))
    assert lower_envelope.params_interval is None
    assert "no bootstrap interval" in lower_envelope.warnings[0]


def test_bad_tables_are_input_errors():
    table = curves()
    with pytest.raises(InputError, match="changes its params"):
        envelope(**(table | {"run": [0] * len(table["run"])}))
    with pytest.raises(InputError, match="two rows at one compute"):
        envelope(**{name: [*column, column[-1]] for name, column in table.items()})
    with pytest.raises(InputError, match="has 1 rows"):
        envelope(**(table | {"run": [0]}))
    for wrong in ({"choice": "best"}, {"draws": -1}, {"level": 0.0}):
        with pytest.raises(InputError):
            envelope(**table, **wrong)


number = st.one_of(st.floats(0.1, 10), st.sampled_from([1.0, 1e18, 1e300, 1e-300, 0.0, math.inf, math.nan]))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(number, st.sampled_from([1.0, 2.0, 4.0, 8.0]), number), max_size=20),
    st.sampled_from(["running-minimum", "hull"]),
    st.booleans(),
)
def test_hostile_tables_give_an_error_or_a_finite_law(rows, choice, by_size):
    C, N, loss = zip(*rows, strict=True) if rows else ((), (), ())
    try:
        lower_envelope = envelope(C, N, loss, choice=choice, run=list(N) if by_size else None, draws=5)
    except IsolossError:
        return
    assert np.isfinite(lower_envelope.params.exponent)
