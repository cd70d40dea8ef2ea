"""Warnings of a plan: each there when it should be, and away when it should not."""

import pytest

from isoloss.plans import plan, warnings
from isoloss.plans.heuristics import FREE_EPOCHS


def test_extrapolation_is_a_factor_outside_the_runs_and_1_inside(fitted, runs):
    params, tokens, _ = runs
    inside = warnings.extrapolation(fitted, params[0], tokens[0], 1.0)
    assert inside == {"params": 1.0, "tokens": 1.0, "flops": 1.0}
    outside = warnings.extrapolation(fitted, 2 * params.max(), tokens.min() / 3, 1.0)
    assert (outside["params"], outside["tokens"]) == (pytest.approx(2), pytest.approx(3))


def test_a_law_without_runs_knows_its_ranges_alone(known):
    law = known("besiroglu")
    assert warnings.extrapolation(law, 2e9, 1e10, 1.0) == {"params": 2.0, "tokens": 1.0, "flops": None}


def test_missing_intervals_and_far_plans_are_said(fitted, known):
    assert warnings.fit_warnings(fitted, {"params": 1.0}) == list(fitted.warnings)
    assert any("no covariance" in text for text in warnings.fit_warnings(known("besiroglu"), {}))
    far = warnings.fit_warnings(fitted, {"params": 1000.0, "tokens": 1.5, "flops": None})
    assert [text for text in far if "outside" in text] == [
        "params lies a factor 1e+03 outside the data: no interval covers a law that bends"
    ]


def test_the_counting_rule_is_that_of_the_fits_column(fitted):
    assert "embeddings in or out?" in warnings.counting_warning({}, 6.0)
    for source, words in (
        ({"columns": {"params": "params"}, "study": True}, "leaves out the output head"),
        ({"columns": {"params": "params_non_emb"}}, "leaves out the output head"),
        ({"columns": {"params": "N"}}, "count your budget and your model the same way"),
    ):
        assert words in warnings.counting_warning(source, 6.0)


def test_repeats_are_warned_of_once_they_cost_something():
    assert warnings.repeat_warnings(None, None, True) == []
    assert warnings.repeat_warnings(FREE_EPOCHS, None, False) == []
    assert len(warnings.repeat_warnings(1.0, None, True)) == 0
    assert "Muennighoff" in warnings.repeat_warnings(2.0, None, True)[0]
    assert "max_epochs binds" in warnings.repeat_warnings(2.0, 2.0, False)[0]
    assert "5 epochs" in warnings.repeat_warnings(5.0, None, False)[0]


def test_rounded_exponents_leave_the_plan_open(known):
    rounded = plan(known("hoffmann-rounded"), flops=1e21).warnings
    exact = plan(known("hoffmann"), flops=1e21).warnings
    assert any("alpha and beta are rounded to 2 digits" in text for text in rounded)
    assert not any("rounded" in text for text in exact)
