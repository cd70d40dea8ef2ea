"""Any question gets a plan of finite numbers or a sentence why not: never a traceback, never a warning."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isoloss.errors import InputError, Refusal
from isoloss.plans import plan

NUMBERS = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(1e-3, 1e30) | st.just("x")
QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "flops": NUMBERS,
        "loss": NUMBERS | st.floats(1.5, 4.0),
        "params": NUMBERS,
        "tokens": NUMBERS,
        "serve_tokens": NUMBERS,
        "unique_tokens": NUMBERS,
        "max_epochs": NUMBERS | st.floats(1, 20),
        "flops_per_token": NUMBERS,
        "mfu": st.floats(),
        "level": st.floats(0, 1),
    },
)


def answered(law, question):
    """The plan, or None where it is refused with a way out."""
    try:
        planned = plan(law, draws=100, **question)
    except (InputError, Refusal) as error:
        refused = error
    else:
        refused = None
    if refused:
        assert refused.what
        assert refused.mend
        return None
    data = json.dumps(planned.to_json(), allow_nan=False)
    assert planned.params > 0
    assert planned.tokens > 0
    assert math.isfinite(planned.loss)
    assert json.loads(data)["params"] == planned.params
    return planned


@settings(max_examples=100)
@given(question=QUESTIONS)
@example(question={"flops": 1.7e308, "params": 1e-300})
@example(question={"flops": 1e300, "flops_per_token": 1e-300, "serve_tokens": 1e300})
@example(question={"loss": 2.5, "params": 1e300, "unique_tokens": 1e-300})
def test_any_question(fitted, question):
    answered(fitted, question)


@settings(max_examples=40)
@given(
    flops=st.floats(1e12, 1e28),
    serve=st.none() | st.floats(1e6, 1e16),
    unique=st.none() | st.floats(1e7, 1e13),
    epochs=st.none() | st.floats(1, 50),
)
@example(flops=4.691509037465116e15, serve=None, unique=1e7, epochs=11.0)  # the optimum beside max_epochs
@example(flops=1e12, serve=500175278186.0, unique=1e7, epochs=1.0)  # a budget for less than one parameter
def test_plausible_questions_are_answered_and_better_than_their_neighbours(
    fitted, flops, serve, unique, epochs
):
    if unique is None:
        epochs = None
    question = {"flops": flops, "serve_tokens": serve, "unique_tokens": unique, "max_epochs": epochs}
    planned = answered(fitted, question)
    if planned is None:
        return
    assert planned.total_flops == pytest.approx(flops, rel=1e-6)
    for factor in (0.9, 1.1):
        try:
            other = plan(fitted, draws=100, **question, params=factor * planned.params)
        except (InputError, Refusal):
            continue
        assert other.loss >= planned.loss - 1e-9
