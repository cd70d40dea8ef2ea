"""Numbers as people write them, and those that no model has."""

import pytest

from isoloss.amounts import number, plausible
from isoloss.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("70B", 7e10),
        ("1.4T", 1.4e12),
        ("3e21", 3e21),
        (".5k", 500.0),
        ("1,000,000", 1e6),
        ("1_000", 1e3),
        ("7 billion", 7e9),
        ("70b params", 7e10),
        ("20 tokens", 20.0),
        ("-2", -2.0),
        ("300 PF-days", 300 * 8.64e19),
        ("1 petaflop/s-day", 8.64e19),
        ("5ZFLOP", 5e21),
        ("2 exaFLOPs", 2e18),
        ("1e21 FLOPs", 1e21),
    ],
)
def test_numbers_are_read(text, value):
    assert number(text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,5",
        "1.000.000",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "70X",
        "B",
        "0x10",
        "1 2",
        "7 GPU-hours",
        "1e21 parsecs",
    ],
)
def test_what_is_no_number_is_refused(text):
    with pytest.raises(InputError) as caught:
        number(text)
    assert caught.value.mend


@pytest.mark.parametrize(
    ("name", "value"), [("params", 70), ("tokens", 1.4), ("params", 1e20), ("flops", 3640), ("tokens", 0)]
)
def test_what_no_model_has_is_refused_and_what_one_has_is_not(name, value):
    with pytest.raises(InputError, match="no model has so"):
        plausible(name, value, f"--{name}")
    assert plausible(name, 1e12, "") == 1e12
    assert plausible("level", value, "") == value
