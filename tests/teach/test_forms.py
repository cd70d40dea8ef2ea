"""Form fields from the schema that checks what comes back from them."""

from typing import Annotated

import pytest
from pydantic import Field as Bound

from isoloss.teach.deck.forms import fields
from isoloss.teach.panels import PANELS, panel
from isoloss.teach.settings import Settings


class Everything(Settings):
    count: int = Bound(default=3, ge=1, le=20, description="How many")
    rate: float = Bound(default=0.5, ge=0.0, le=1.0, description="The rate")
    watched: bool = Bound(default=True, description="Watched")
    silent: bool = Bound(default=False, description="Silent")
    prompt: str = Bound(default="Once", max_length=40, description="Prompt")
    sizes: tuple[Annotated[int, Bound(ge=2, le=9)], ...] = Bound(default=(4, 8), description="Sizes")


@pytest.fixture
def form():
    made_up = panel("reach").model_copy(update={"settings": Everything})
    return {field.name: field for field in fields(made_up)}


def test_each_setting_is_a_field_in_its_order(form):
    assert list(form) == list(Everything.model_fields)
    assert {name: field.kind for name, field in form.items()} == {
        "count": "integer",
        "rate": "number",
        "watched": "boolean",
        "silent": "boolean",
        "prompt": "string",
        "sizes": "integers",
    }


def test_bounds_are_those_that_the_answer_is_checked_by(form):
    bounds = {name: (field.low, field.high, field.longest) for name, field in form.items()}
    assert bounds["count"] == (1, 20, None)
    assert bounds["rate"] == (0.0, 1.0, None)
    assert bounds["sizes"] == (2, 9, None), "of one number of the list"
    assert bounds["prompt"] == (None, None, 40)


def test_defaults_stand_as_people_would_write_them(form):
    texts = {name: field.value for name, field in form.items()}
    assert texts["count"] == "3"
    assert texts["sizes"] == "4, 8"
    assert texts["watched"] == ""
    assert (form["watched"].checked, form["silent"].checked) == (True, False)


def test_a_field_is_labelled_by_its_description(form):
    assert form["count"].label == "How many"


def test_a_setting_that_no_form_can_show_is_an_error_and_not_a_text_field():
    class Nested(Settings):
        inner: dict[str, int] = Bound(default={}, description="Inner")

    with pytest.raises(TypeError, match="type object has no form field"):
        fields(panel("reach").model_copy(update={"settings": Nested}))


@pytest.mark.parametrize("shown", PANELS, ids=lambda shown: shown.name)
def test_what_a_form_shows_first_is_what_the_panel_takes(shown):
    """The text of each field, read as the page reads it, gives the default settings back."""
    read = {}
    for field in fields(shown):
        number = {"integer": int, "number": float}.get(field.kind.removesuffix("s"), str)
        if field.kind == "boolean":
            read[field.name] = field.checked
        elif field.kind.endswith("s"):
            read[field.name] = [number(part) for part in field.value.split(", ")]
        elif field.value:
            read[field.name] = number(field.value)
    assert shown.settings_from(read) == shown.settings()


def test_the_highest_that_a_form_offers_is_taken():
    showdown = {field.name: field for field in fields(panel("showdown"))}
    panel("showdown").settings_from({"model_seed": int(showdown["model_seed"].high)})
