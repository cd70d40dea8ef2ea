"""Warnings of a plan: each there when it should be, and away when it should not."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from isoloss.plans import plan, warnings
from isoloss.plans.design import design
from isoloss.plans.forecast import doubts_with_forecast, forecaster_of
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
    assert warnings.fit_warnings(fitted, {"params": 1.0}, None, None) == list(fitted.warnings)
    assert any("no covariance" in text for text in warnings.fit_warnings(known("besiroglu"), {}, None, None))
    far = warnings.fit_warnings(fitted, {"params": 1000.0, "tokens": 1.5, "flops": None}, None, None)
    assert [text for text in far if "outside" in text] == [
        "params lies a factor 1e+03 outside the data: no interval covers a law that bends"
    ]


@pytest.mark.parametrize(
    ("shares", "adds", "factor_stays"),
    [((0.9, 1.3), "1.05 times", True), ((0.5, 0.9), "1e4 times", False), ((1.1, 1.3), None, True)],
)
def test_a_far_point_keeps_its_factor_unless_the_law_is_surer_there(shares, adds, factor_stays):
    """Two points, 1.05 and 1e4 times outside; ``shares``: the law's interval as a part of the forecast's."""
    interval = np.exp([[-0.02, 0.02], [-0.2, 0.2]])
    prediction = SimpleNamespace(
        extrapolation={"params": np.array([1.05, 1e4]), "tokens": np.array([1.0, 3.0])},
        interval=interval,
        error_rate=0.01,
        warnings=(),
    )
    doubts = doubts_with_forecast(
        ["a", "far"], ["far"], (interval ** np.array(shares)[:, None]).T, prediction
    )
    assert ("far" in doubts) == factor_stays
    assert [words.split(" outside")[0] for words in doubts if "error rate" in words] == [adds] * bool(adds)
    assert doubts[0] == "a"


def test_the_counting_rule_is_that_of_the_fits_column(fitted):
    assert "embeddings in or out?" in warnings.counting_warning({}, 6.0)
    for source, words in (
        ({"columns": {"params": "params"}, "study": True}, "leaves out the output head"),
        ({"columns": {"params": "params_non_emb"}}, "leaves out the output head"),
        ({"columns": {"params": "N"}}, "count your budget and your model the same way"),
        (
            {"columns": {"params": "params", "params_total": "all"}, "count": "params_total"},
            "the column 'all'",
        ),
        ({"columns": {}, "count": "params_total"}, "the column 'params_total'"),
    ):
        assert words in warnings.counting_warning(source, 6.0)


def test_flops_of_another_rule_are_said_beside_a_budget(runs):
    N, D, loss = runs
    table = {"params": N, "tokens": D, "loss": loss}
    target = {"params": 7e9, "tokens": 1.4e11}
    for times, words in ((1.0, ""), (1.5, "flops is 1.5 times 6 params tokens"), (None, " from row to row")):
        factor = np.linspace(1.3, 2.0, len(N)) if times is None else times
        known = forecaster_of(pl.DataFrame(table | {"flops": factor * 6 * N * D}))
        for answer in (
            plan(known, flops=1e22, draws=20),
            design(known, budget_flops=1e20, target=target, at_most=1),
        ):
            flops_warnings = [warning for warning in answer.warnings if "times 6 params tokens" in warning]
            assert len(flops_warnings) == bool(words)
            assert all(
                "FLOPs mean 6 N D here, but " in warning and words in warning for warning in flops_warnings
            )


@pytest.mark.parametrize(("given", "words"), [(9.0, 0), (7.0, 1), (6.0, 1)])
def test_a_budget_of_the_tables_own_rule_is_not_doubted(runs, given, words):
    N, D, loss = runs
    known = forecaster_of(pl.DataFrame({"params": N, "tokens": D, "loss": loss, "flops": 9 * N * D}))
    plan_warnings = plan(known, flops=1e22, draws=20, flops_per_token=given).warnings
    assert sum("times 6 params tokens" in warning for warning in plan_warnings) == words
    assert sum(f"FLOPs mean {given:g} N D here, but " in warning for warning in plan_warnings) == words


def test_no_budget_agrees_with_flops_that_follow_no_constant(runs):
    N, D, loss = runs
    flops = np.linspace(1.3, 2.0, len(N)) * 6 * N * D
    known = forecaster_of(pl.DataFrame({"params": N, "tokens": D, "loss": loss, "flops": flops}))
    for given in (6.0, 1.93 * 6, 12.0):  # 1.93 is the upper end that the message names
        plan_warnings = plan(known, flops=1e22, draws=20, flops_per_token=given).warnings
        assert any(f"FLOPs mean {given:g} N D here, but " in warning for warning in plan_warnings)


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
