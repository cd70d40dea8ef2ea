"""Warnings of a plan: each there when it should be, and away when it should not."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from brevity import numbers

from isoloss import predict, text
from isoloss.errors import Refusal
from isoloss.plans import plan, warnings
from isoloss.plans.design import design
from isoloss.plans.forecast import doubts_with_forecast, forecaster, forecaster_of
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
    bare, outside = known("besiroglu"), {"params": 1000.0, "tokens": 1.5, "flops": None}
    assert warnings.fit_warnings(fitted, {"params": 1.0}, None, None, asked=True) == list(fitted.warnings)
    assert any("no covariance" in text for text in warnings.fit_warnings(bare, {}, None, None, asked=True))
    for law, asked, why in (
        (fitted, True, "no interval covers a wrong law, and no error rate is known"),
        (fitted, False, "a warning by the factor alone; isoloss.predict goes by the table's error rate"),
        (bare, False, "no interval covers a wrong law, and no error rate is known"),
    ):
        far = warnings.fit_warnings(law, outside, None, None, asked=asked)
        assert [text for text in far if "outside" in text] == [
            f"params lies a factor 1e+03 outside the data: {why}"
        ]


def test_a_level_beyond_the_draws_is_said(fitted):
    for level, said in ((0.9, 0), (0.9999, 1)):
        asked = plan(fitted, flops=1e20, level=level).warnings
        assert sum("extremes of 1,000 draws" in warning for warning in asked) == said


@pytest.mark.parametrize(
    ("law", "rate", "said"),
    [
        ((0.9, 1.3), (0.01, 0.2), "params, 1.05 times"),
        ((0.5, 0.9), (0.01, 0.2), "params, 1e4 times"),
        ((1.1, 1.3), (0.01, 0.2), None),
        ((1.1, 1.3), (0.01, 0.3), "params, 1e4 times"),
        ((1.1, 1.3), (0.3, 0.2), "params, 1.05 times"),
        (None, (0.01, 0.2), "params, 1e4 times"),
    ],
)
def test_a_point_is_doubted_where_the_error_rate_counts_or_the_law_is_surer(plain, law, rate, said):
    """Two points, 1.05 and 1e4 times outside; ``law``, ``rate``: parts of the forecast's interval."""
    half = np.array([0.02, 0.2])
    forecast = replace(
        plain,
        inputs={"params": np.array([2e9, 7e12]), "tokens": np.array([1e10, 1e11])},
        interval=np.exp(np.stack([-half, half], axis=1)),
        extrapolation={"params": np.array([1.05, 1e4]), "tokens": np.array([1.0, 3.0])},
        error_outside=half * rate,
        warnings=(),
    )
    interval = None if law is None else np.exp(np.outer([-1, 1], half * law))
    doubts = doubts_with_forecast(["a"], ["far"], interval, forecast)
    assert len(doubts) == 1 + bool(said)
    for words in doubts[1:]:
        point = "params 2B, tokens 10B" if "1.05" in said else "params 7T, tokens 100B"
        first, detail = text.headline(words)
        assert first.endswith(f"% more than inside ({point}).")
        assert f"The farthest is {said} outside" in detail
        assert ("times the forecast's" in detail) == (law is not None)
    # Without a forecast a factor is all there is.
    assert doubts_with_forecast(["a"], ["far"], interval, None) == ("a", "far")
    refused = doubts_with_forecast(["a"], ["far"], interval, Refusal("too few"))
    assert refused == ("a", "far", "no forecast beside it: too few")


def test_how_far_is_too_far_follows_the_error_rate_and_no_factor(simulated):
    """The law's interval is so wide here that it says nothing: only the rate doubts."""
    N, D, loss = simulated
    known, times = forecaster({"params": N, "tokens": D}, loss), np.geomspace(1.01, 1e5, 80)

    def nearest(rate):
        moved = replace(known, rate=replace(known.rate, rate=rate))
        for factor in times:
            forecast = moved.at({"params": factor * N.max(), "tokens": np.median(D)})
            if any("expect the loss" in words for words in doubts_with_forecast([], [], (1, 9), forecast)):
                return factor
        return None

    factors = [nearest(rate) for rate in (0.05, 0.005, 0.001)]
    assert factors[0] < 1.2 < factors[1] < factors[2]
    # Negative control: where hidden runs were not missed, no distance is too far.
    assert nearest(1e-6) is None


def test_the_same_is_said_by_predict_and_plan(fitted):
    """So far beyond the runs, within a factor of ten: what each size adds is the table's error rate."""
    planned = fitted.plan(flops=6e21)
    assert planned == plan(fitted, flops=6e21)
    assert max(planned.extrapolation.values()) < 10
    prediction = predict(fitted, params=planned.params, tokens=planned.tokens)
    said = [[words for words in result.warnings if "outside" in words] for result in (planned, prediction)]
    assert said[0] == said[1]
    first, detail = text.headline(said[0][0])
    assert first.startswith("so far outside the runs expect the loss to be off by 0.")
    assert len(first.split()) <= 20
    assert len(numbers(first)) == 1
    assert "for each factor e, from hiding runs of this table" in detail
    # Negative control: by factors alone there is nothing to doubt at this distance.
    assert not any("outside" in text for text in plan(fitted, flops=6e21, with_forecast=False).warnings)


def test_a_plan_asks_for_a_forecast_outside_the_runs_and_once_for_a_fit(fitted, monkeypatch):
    asked = []

    def counted(*args, **options):
        asked.append(args)
        return forecaster(*args, **options)

    monkeypatch.setattr("isoloss.plans.forecast.table.forecaster", counted)
    law = replace(fitted, data=replace(fitted.data, loss=tuple(1.5 * loss for loss in fitted.data.loss)))
    plan(law, flops=1e20, draws=100)
    assert len(asked) == 0
    for flops in (1e22, 2e22):
        plan(law, flops=flops, draws=100)
    predict(law, params=1e10, tokens=1e11)
    assert len(asked) == 1


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
