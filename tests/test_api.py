"""The public face: what a fit does beyond its law, however it came to be."""

import json

import fitted
import polars as pl
import pytest

import isoloss
from isoloss.laws import Fit
from isoloss.plans import plan


@pytest.fixture(scope="module")
def law():
    inputs, loss = fitted.runs_of("chinchilla")
    return isoloss.fit("chinchilla", pl.DataFrame(inputs | {"loss": loss}))


def test_a_fit_plans_as_the_function_does(law):
    assert law.plan(flops=1e19) == plan(law, flops=1e19)


def test_a_fit_read_back_is_the_same_and_still_plans(law):
    read = Fit.from_json(json.loads(json.dumps(law.to_json())))
    assert type(read) is type(law) is Fit
    assert read == law
    assert read.plan(flops=1e19) == law.plan(flops=1e19)


def test_a_fit_and_a_printed_law_draw_themselves(law):
    printed = isoloss.published("chinchilla-epoch")
    assert printed.plan(flops=1e21) == plan(printed, flops=1e21)
    assert law.formula() in " ".join(law.plot().to_dict(validate=False)["title"]["text"])
