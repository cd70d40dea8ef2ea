"""Settings refuse what does not fit, and the first complaint names the key."""

from enum import Enum

import pytest
from pydantic import Field, ValidationError, field_validator

from isoloss.errors import InputError
from isoloss.plain import json_values
from isoloss.strict import Strict, first_complaint, key_and_value, validate


class Inner(Strict):
    width: int


class Outer(Strict):
    inner: Inner
    rate: float = 1.0

    @field_validator("rate")
    @classmethod
    def _above_0(cls, rate: float) -> float:
        if rate < 0:
            raise ValueError("a rate is above 0")
        return rate


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"inner": {"width": "3"}}, "inner.width: Input should be a valid integer"),
        ({"inner": {"width": 3}, "extra": 1}, "unknown key 'extra'"),
        ({"inner": {"width": 3}, "rate": float("nan")}, "rate: Input should be a finite number"),
        ({"inner": {"width": 3}, "rate": -1.0}, "rate: a rate is above 0"),
        ({}, "the key 'inner' is missing"),
        (7, "settings: Input should be a valid dictionary or instance of Outer"),
    ],
)
def test_the_first_complaint_names_the_key(values, complaint):
    with pytest.raises(ValidationError) as raised:
        Outer.model_validate(values)
    assert first_complaint(raised.value, "settings") == complaint


class Shelf(Strict):
    boxes: list[Outer] = Field(default_factory=list)
    named: dict[str, Outer] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("values", "what", "keys"),
    [
        (
            {"bokses": []},
            "unknown key 'bokses'; did you mean 'boxes'?",
            "the keys are boxes, named; see the page",
        ),
        (
            {"boxes": [{"inner": {"width": 1, "depth": 2}}]},
            "unknown key 'boxes.0.inner.depth'",
            "the keys of inner are width; see the page",
        ),
        (
            {"named": {"a": {"inner": {"width": 1}, "rte": 2.0}}},
            "unknown key 'named.a.rte'; did you mean 'rate'?",
            "the keys of named are inner, rate; see the page",
        ),
        ({"boxes": 3}, "boxes: Input should be a valid list (got 3)", "see the page"),
    ],
)
def test_to_mend_an_unknown_key_those_of_its_table_are_said(values, what, keys):
    with pytest.raises(InputError) as caught:
        validate(Shelf, values, where="my.toml", mend="see the page", by_hand=True)
    assert (caught.value.what, caught.value.mend) == (what, keys)


def test_what_fits_is_taken_and_cannot_be_changed():
    settings = Outer.model_validate({"inner": {"width": 3}})
    with pytest.raises(ValidationError, match="frozen"):
        settings.rate = 2.0


def test_json_values_are_what_json_gives_back():
    class Colour(Enum):
        RED = "red"

    assert json_values({"a": (1, (2.5, None)), "b": [Colour.RED]}) == {"a": [1, [2.5, None]], "b": ["red"]}


@pytest.mark.parametrize(
    ("change", "pair"),
    [
        ("seeds=[0,1]", ("seeds", [0, 1])),
        (" rate = 1e-3", ("rate", 1e-3)),
        ("corpus=mine", ("corpus", "mine")),
        ("text=a = b", ("text", "a = b")),
        ("n=" + "9" * 5000, ("n", "9" * 5000)),
    ],
)
def test_a_change_is_toml_or_a_bare_word(change, pair):
    assert key_and_value(change, example="") == pair


@pytest.mark.parametrize("change", ["seeds", "=3", " = 3"])
def test_a_change_without_key_or_value_is_refused_with_an_example(change):
    with pytest.raises(InputError, match=r"KEY=VALUE(.|\n)*--set width=32"):
        key_and_value(change, example="--set width=32")
