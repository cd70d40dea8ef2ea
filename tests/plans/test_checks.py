"""Questions that contradict themselves, each with its message; those that do not, as numbers."""

import re

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.plans.allocate import AllocationQuestion
from isoloss.plans.checks import check_answer, check_numbers, check_reach
from isoloss.plans.cost import Rates
from isoloss.plans.fixed_inputs import FixedInputs
from isoloss.plans.loss_surface import loss_surface

PLAIN = {"flops_per_token": 6.0}
USUAL = {"level": 0.9, "few_tokens": False}


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"flops": -1.0}, "flops is -1.0"),
        ({"flops": "many"}, "flops is 'many'"),
        ({"flops": np.inf}, "flops is inf"),
        ({"flops": 1e20, "flops_per_token": None}, "flops_per_token is None"),
        ({}, "neither a budget nor a target"),
        ({"flops": 1e20, "loss": 2.0}, "both a budget and a target"),
        ({"flops": 1e20, "params": 1e9, "tokens": 1e9}, "nothing is left to plan"),
        ({"flops": 1e20, "max_epochs": 4}, "how many tokens there are"),
        ({"flops": 1e20, "max_epochs": 0.5, "unique_tokens": 1e9}, "max_epochs is 0.5"),
        ({"flops": 1e20, "max_epochs": 2, "unique_tokens": 1e9, "tokens": 3e9}, "more than 2 epochs"),
    ],
)
def test_what_cannot_be_planned_is_an_input_error(numbers, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check_numbers(PLAIN | numbers, signed_loss=False)


def test_what_can_be_planned_comes_back_as_floats_without_what_was_not_given():
    given = check_numbers(PLAIN | {"flops": np.int64(10), "loss": None, "tokens": "1e9"}, signed_loss=False)
    assert given == {"flops": 10.0, "tokens": 1e9, "flops_per_token": 6.0}
    assert check_numbers(PLAIN | {"loss": -0.5}, signed_loss=True)["loss"] == -0.5
    with pytest.raises(InputError, match=r"loss is -0\.5"):
        check_numbers(PLAIN | {"loss": -0.5}, signed_loss=False)


def test_a_loss_is_reached_above_the_floor_and_refused_at_it(known):
    surface = loss_surface(known("besiroglu"), FixedInputs(), 100, 0)
    floor = float(surface.terms.E[0])
    check_reach(surface, AllocationQuestion(Rates(6.0), loss=floor + 1e-3), **USUAL)
    with pytest.raises(Refusal, match="the floor there"):
        check_reach(surface, AllocationQuestion(Rates(6.0), loss=floor), **USUAL)
    with pytest.raises(Refusal, match="with params fixed"):
        check_reach(surface, AllocationQuestion(Rates(6.0), loss=floor + 1e-3, params=1e8), **USUAL)


def test_an_uncertain_floor_is_refused_up_to_its_upper_end(fitted):
    surface = loss_surface(fitted, FixedInputs(), 1000, 0)
    top = np.quantile(surface.terms.E[1:], 0.95)
    check_reach(surface, AllocationQuestion(Rates(6.0), loss=float(top) + 1e-3), **USUAL)
    with pytest.raises(Refusal, match="the data do not say"):
        check_reach(surface, AllocationQuestion(Rates(6.0), loss=float(top) - 1e-3), **USUAL)


def test_an_answer_without_an_optimum_says_what_was_in_the_way():
    check_answer(AllocationQuestion(Rates(6.0), flops=1e20), 20.0, 20.0)
    with pytest.raises(Refusal, match="no optimum"):
        check_answer(AllocationQuestion(Rates(6.0), flops=1e20), np.nan, np.nan)
    with pytest.raises(Refusal, match="does not pay for training and serving"):
        check_answer(AllocationQuestion(Rates(6.0), flops=1e20, serve_tokens=1e12), np.nan, np.nan)
    bounded = AllocationQuestion(Rates(6.0), flops=1e20, most_tokens=1e9)
    with pytest.raises(InputError, match="2 times as many tokens"):
        check_answer(bounded, 20.0, float(np.log(2e9)))
