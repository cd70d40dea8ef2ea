"""NIST StRD nonlinear regression: two certified power laws to eight digits, from both certified starts."""

import csv
from pathlib import Path

import numpy as np
import pytest

from isoloss.laws import FORMS, FitStatus, fit, from_function, register

# DanWood, https://www.itl.nist.gov/div898/strd/nls/data/daniel_wood.shtml (US government work):
# energy radiated from a carbon filament lamp against its temperature in 1,000 K.
DANWOOD_Y = np.array([2.138, 3.421, 3.597, 4.340, 4.882, 5.660])
DANWOOD_X = np.array([1.309, 1.471, 1.490, 1.565, 1.611, 1.680])
DANWOOD = {"b1": (7.6886226176e-01, 1.8281973860e-02), "b2": (3.8604055871e00, 5.1726610913e-02)}
BENNETT5 = {
    "b1": (-2.5235058043e03, 2.9715175411e02),
    "b2": (4.6736564644e01, 1.2448871856e00),
    "b3": (9.3218483193e-01, 2.0272299378e-02),
}


@pytest.fixture
def forms_restored():
    before = dict(FORMS)
    yield
    FORMS.clear()
    FORMS.update(before)


def _bennett5():
    with (Path(__file__).parent / "nist" / "bennett5.csv").open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return np.array([(float(row["x"]), float(row["y"])) for row in rows]).T


@pytest.fixture
def danwood(forms_restored):
    return register(
        from_function(
            "danwood",
            lambda p, x: p["b1"] * x["x"] ** p["b2"],
            formula="y = b1 x^b2",
            inputs=("x",),
            starts={"b1": [1.0], "b2": [5.0]},
        )
    )


@pytest.fixture
def bennett5(forms_restored):
    return register(
        from_function(
            "bennett5",
            lambda p, x: p["b1"] * (p["b2"] + x["x"]) ** (-1 / p["b3"]),
            formula="y = b1 (b2 + x)^(-1/b3)",
            inputs=("x",),
            starts={"b1": [-2000.0], "b2": [50.0], "b3": [0.8]},
            signed=("b1",),
        )
    )


def _compare(law, x, y, certified, starts, squares, **more):
    """Values from each start alone; standard errors once both agree, since a lone start is not trusted."""
    starts = [dict(zip(certified, start, strict=True)) for start in starts]
    values = {name: value for name, (value, _) in certified.items()}
    alone = [fit(law, {"x": x}, y, starts=[start], **more) for start in starts]
    both = fit(law, {"x": x}, y, starts=starts, **more)
    for fitted in (*alone, both):
        assert fitted.params == pytest.approx(values, rel=1e-8)
        assert fitted.objective.value == pytest.approx(squares, rel=1e-8)
        assert fitted.df == len(x) - len(certified)
        assert fitted.gradient < 1e-9
    assert [fitted.status for fitted in alone] == [FitStatus.STARTS_DISAGREE] * 2
    assert both.status is FitStatus.CONVERGED
    assert (both.starts.tried, both.starts.agreeing) == (2, 2)
    assert both.standard_errors == pytest.approx(
        {name: error for name, (_, error) in certified.items()}, rel=1e-8
    )


def test_danwood(danwood):
    _compare(danwood, DANWOOD_X, DANWOOD_Y, DANWOOD, [(1.0, 5.0), (0.7, 4.0)], 4.3173084083e-03)


def test_bennett5(bennett5):
    x, y = _bennett5()
    assert len(x) == 154
    starts = [(-2000.0, 50.0, 0.8), (-1500.0, 45.0, 0.85)]
    _compare(bennett5, x, y, BENNETT5, starts, 5.2404744073e-04, allow_negative=True)


def test_the_comparison_can_fail(danwood):
    """Negative control: one datum off in its seventh digit."""
    wrong = DANWOOD_Y * np.where(np.arange(6) == 2, 1 + 1e-6, 1.0)
    with pytest.raises(AssertionError):
        _compare(danwood, DANWOOD_X, wrong, DANWOOD, [(1.0, 5.0), (0.7, 4.0)], 4.3173084083e-03)
