"""The forecast: what changes nothing, what is refused, and that its intervals hold."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import AT, asked, loss_at, runs_of

from isoloss.errors import InputError, Refusal
from isoloss.plans.forecast import forecast, forecaster
from isoloss.plans.forecast.bases import SEVERAL_INPUTS, fit_base
from isoloss.plans.forecast.kriging import krige
from isoloss.plans.forecast.runs import MOST_RUNS, log_runs


def test_it_holds_the_truth_and_is_surer_inside(plain):
    low, high = plain.interval.T
    truth = loss_at(np.array(AT["params"]), np.array(AT["tokens"]))
    assert np.all((low < truth) & (truth < high))
    widths = np.log(high / low)
    assert widths[0] < 0.5 * widths[1]
    assert plain.loss.shape == (2,)
    assert plain.interval.shape == (2, 2)
    assert plain.extrapolation["flops"][0] == 1.0
    assert plain.extrapolation["params"][1] == pytest.approx(5e9 / runs_of()[0].max())


def same(ours, others, factor=1.0):
    np.testing.assert_allclose(others.loss, factor * ours.loss, rtol=1e-7)
    np.testing.assert_allclose(others.interval, factor * ours.interval, rtol=1e-7)


def test_the_order_of_rows_changes_nothing(simulated, plain):
    order = np.random.default_rng(1).permutation(len(simulated[0]))
    second = asked(*(column[order] for column in simulated))
    assert np.array_equal(second.loss, plain.loss)
    assert np.array_equal(second.interval, plain.interval)


def test_rows_repeated_exactly_change_nothing_and_a_seed_does(simulated, plain):
    twice = [np.concatenate([column, column[:9]]) for column in simulated]
    second = asked(*twice)
    assert np.array_equal(second.interval, plain.interval)
    twice[2][-9:] *= 1.001
    assert not np.array_equal(asked(*twice).interval, plain.interval)


@pytest.mark.parametrize("scale", [(1000.0, 1.0, 1.0), (1.0, 1e-6, 1.0), (1.0, 1.0, 3.0)])
def test_constant_factors_change_nothing(simulated, plain, scale):
    N, D, loss = (factor * column for factor, column in zip(scale, simulated, strict=True))
    at = {name: factor * np.array(AT[name]) for name, factor in zip(AT, scale, strict=False)}
    same(plain, asked(N, D, loss, at), scale[2])


def test_points_asked_together_and_alone_agree(simulated, plain):
    alone = asked(*simulated, at={"params": 5e9, "tokens": 4e11})
    np.testing.assert_allclose(alone.interval[0], plain.interval[1], rtol=1e-9)


def test_of_many_runs_always_the_same_part_is_taken():
    N, D, loss = runs_of(3 * MOST_RUNS)
    first, second = (
        log_runs({"params": N[s], "tokens": D[s]}, loss[s]) for s in (slice(None), slice(None, None, -1))
    )
    assert len(first.y_n) == MOST_RUNS
    assert np.array_equal(first.z_In, second.z_In)


@pytest.mark.parametrize(("count", "has_note"), [(MOST_RUNS + 1, True), (MOST_RUNS, False)])
def test_a_part_of_the_runs_is_a_note(count, has_note):
    N, D, loss = runs_of(count)
    prediction = asked(N, D, loss, at={"params": 5e9, "tokens": 4e11})
    notes = prediction.source.get("notes", [])
    assert [note.partition(":")[0] for note in notes] == [f"{MOST_RUNS} of {count} runs were used"] * has_note
    assert not any("were used" in warning for warning in prediction.warnings)


def test_levels_nest(simulated):
    widths = [np.diff(asked(*simulated, level=level).interval, axis=1) for level in (0.5, 0.8, 0.9, 0.95)]
    assert np.all(np.diff(np.array(widths), axis=0) > 0)


@pytest.mark.parametrize("level", [1e-6, 0.999999])
def test_the_least_and_the_largest_level_have_an_interval(simulated, level):
    """Ten powers of ten outside too: a warning of NumPy would fail."""
    far = {"params": [5e9, 1e19], "tokens": [4e11, 1e21]}
    ends = asked(*simulated, far, level=level).interval
    assert np.all((ends > 0) & np.isfinite(ends) & (ends[:, :1] < ends[:, 1:]))


def test_an_interval_ends_before_floats_do(simulated):
    N, D, loss = simulated
    known = forecaster({"params": N, "tokens": D}, loss)
    hopeless = replace(known, rate=replace(known.rate, rate=50.0))
    found = hopeless.at({"params": 1e15, "tokens": 1e17}, 0.999)
    assert np.all(np.isfinite(found.interval))
    assert any("the interval spans a factor of" in warning for warning in found.warnings)


# The parts


def test_a_base_finds_its_own_constants():
    N, D, loss = runs_of(60, noise=0.0)
    runs = log_runs({"params": N, "tokens": D}, loss)
    law = fit_base(SEVERAL_INPUTS[0], runs.z_In, runs.y_n)
    assert law.converged
    floor = np.exp(law.theta_p[0] + runs.middle_loss)
    assert [floor, *np.exp(law.theta_p[3:])] == pytest.approx([1.8, 0.35, 0.37], rel=2e-3)


def test_slopes_of_every_base_are_its_derivatives(simulated):
    logs = log_runs({"params": simulated[0], "tokens": simulated[1]}, simulated[2])
    for base in SEVERAL_INPUTS:
        law = fit_base(base, logs.z_In, logs.y_n)
        _, slopes = law.value(logs.z_In)
        for p in range(len(law.theta_p)):
            step = np.zeros_like(law.theta_p)
            step[p] = 1e-6
            ends = [
                type(law)(base, 2, law.theta_p + sign * step, law.w_n, law.scatter, True).value(logs.z_In)[0]
                for sign in (1, -1)
            ]
            np.testing.assert_allclose(slopes[:, p], (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_one_outlier_hardly_moves_a_base(simulated):
    N, D, loss = simulated
    spoilt = loss.copy()
    spoilt[3] *= 1.5
    clean, dirty = asked(N, D, loss), asked(N, D, spoilt)
    assert np.all(np.abs(np.log(dirty.loss / clean.loss)) < 0.01)


def test_kriging_follows_a_smooth_error_that_the_law_has_not():
    N, D, loss = runs_of(120, noise=0.0005, bend=0.02)
    runs = log_runs({"params": N, "tokens": D}, loss)
    seen, new = runs.take(np.arange(120) % 3 > 0), runs.take(np.arange(120) % 3 == 0)
    law = fit_base(SEVERAL_INPUTS[0], seen.z_In, seen.y_n)
    mean_q, _ = krige(law, seen.z_In, seen.y_n, seen.label_n).moments(new.z_In)
    law_q, _ = law.value(new.z_In)
    rms = [np.sqrt(np.mean((new.y_n - predicted) ** 2)) for predicted in (mean_q, law_q)]
    assert rms[0] < 0.5 * rms[1]


# Refusals and doubts


def test_too_few_designs_are_refused_however_many_rows():
    N, D, loss = runs_of(7)
    seeds = [np.concatenate([column, column]) for column in (N, D)]
    with pytest.raises(Refusal, match="7 different sets of N and D: too few"):
        asked(*seeds, np.concatenate([loss, 1.001 * loss]))


def test_one_size_is_refused_with_what_would_lift_it(simulated):
    N, D, loss = simulated
    with pytest.raises(Refusal, match="N spans a factor of 1: ") as refused:
        asked(np.full_like(N, 1e8), D, loss)
    assert refused.value.mend.startswith(
        "forecast by tokens alone, or add runs until its largest is 1.5 times"
    )
    with pytest.raises(Refusal, match=r"N spans a factor of 1\.\d") as refused:
        asked(np.where(np.arange(len(N)) % 2, 1e8, 1.3e8), D, loss)
    assert "alone" not in refused.value.mend


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"loss": -1.0}, "loss is -1.0"),
        ({"params": np.nan}, "params is nan"),
        ({"tokens": 0.0}, "tokens is 0.0"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_row(simulated, change, what):
    columns = dict(zip(("params", "tokens", "loss"), (column.copy() for column in simulated), strict=True))
    for name, value in change.items():
        columns[name][4] = value
    with pytest.raises(InputError, match=f"row 5: {what}"):
        asked(*columns.values())


def test_sizes_that_no_float_multiplies_are_no_question(simulated):
    with pytest.raises(InputError, match="beyond 1e50"):
        asked(*simulated, at={"params": 1e300, "tokens": 1e300})


def test_far_beyond_what_the_table_tested_is_said(simulated):
    (warning,) = asked(*simulated, at={"params": 1e12, "tokens": 1e14}).warnings
    assert "the point lies 1.43e6 times outside the runs. Hiding runs of this table tested up to" in warning
    sizes = {"params": [2e9, 1e12, 1e10], "tokens": [1e11, 1e14, 1e12]}
    (warning,) = asked(*simulated, at=sizes).warnings
    assert "the point (params 1T, tokens 100T) lies 1.43e6 times outside the runs. Hiding" in warning
    assert not asked(*simulated, at={"params": 2e9, "tokens": 1e11}).warnings


def test_losses_that_no_law_follows_are_said(simulated):
    """A loss that rises with size; runs of one law do not get the warning (above)."""
    N, D, loss = simulated
    assert any("no law follows the runs" in warning for warning in asked(N, D, 1 / loss).warnings)


def test_sizes_that_rise_together_are_said():
    N = np.geomspace(1e7, 1e9, 30)
    prediction = asked(N, 20 * N, loss_at(N, 20 * N) * (1 + 0.001 * np.sin(np.arange(30))))
    assert any("rise together" in warning for warning in prediction.warnings)
    # Of three inputs two are enough, and it is known which.
    loops = np.resize([1.0, 2.0, 4.0, 8.0], 30)
    spread = N * np.random.default_rng(3).uniform(2, 200, 30)
    for tokens, together in ((20 * N, ["params", "tokens"]), (spread, [])):
        loss = loss_at(N, tokens) + 0.3 / loops
        assert log_runs({"params": N, "tokens": tokens, "recurrence": loops}, loss).on_one_line == together
    runs = {"params": N, "tokens": 20 * N, "recurrence": loops}
    prediction = forecast(
        runs, loss_at(N, 20 * N) + 0.3 / loops, {"params": 1e8, "tokens": 1e9, "recurrence": 2}
    )
    assert any("rise together" in warning for warning in prediction.warnings)


# One input


def test_one_input_is_forecast_by_power_laws():
    N = np.geomspace(1e7, 1e9, 25)
    loss = (1.5 + (N / 1e8) ** -0.3) * np.exp(0.002 * np.random.default_rng(0).standard_normal(25))
    prediction = forecast({"params": N}, loss, {"params": [5e9]})
    assert set(prediction.laws) == {"power-floor", "power"}
    low, high = prediction.interval[0]
    assert low < 1.5 + 50**-0.3 < high


def test_compute_of_loops_lies_outside_though_no_size_does():
    rng = np.random.default_rng(3)
    r = np.repeat([1.0, 2.0, 4.0, 8.0], 10)
    N, D = 10 ** rng.uniform(7, 9, 40), 10 ** rng.uniform(9, 11, 40)
    # No run of many loops is large, so that the corner has the size of each and the compute of none.
    N, D = N / r, D / r
    inputs = {"params": N, "tokens": D, "recurrence": r}
    loss = loss_at(N, D) - 0.02 * np.log(r)
    corner = {name: float(column.max()) for name, column in inputs.items()}
    outside = forecast(inputs, loss, corner).extrapolation
    assert [outside[name][0] for name in inputs] == [1.0] * 3
    assert outside["flops"][0] == pytest.approx(np.prod(list(corner.values())) / (N * D * r).max())
    inside = {name: float(column[0]) for name, column in inputs.items()}
    assert forecast(inputs, loss, inside).extrapolation["flops"][0] == 1.0
    unique = {"params": N, "tokens": D, "unique_tokens": D / r}
    at = {name: float(np.max(column)) for name, column in unique.items()}
    assert "product" in forecast(unique, loss, at).extrapolation


def test_a_run_saw_no_more_unique_tokens_than_tokens():
    rng = np.random.default_rng(0)
    D, U = 10 ** rng.uniform(9, 11, 30), 10 ** rng.uniform(9, 10.5, 30)
    loss = loss_at(1e8, np.minimum(U, D)) - 0.05 * np.log(D / np.minimum(U, D))
    at = {"tokens": [1e10] * 3, "unique_tokens": [5e9, 1e10, 1e12]}
    fewer, once, more = forecast({"tokens": D, "unique_tokens": U}, loss, at).loss
    assert more == once != fewer
    capped = forecast({"tokens": D, "unique_tokens": np.minimum(U, D)}, loss, at)
    assert capped.loss[1] == once


def test_a_size_as_good_as_the_largest_lies_inside(simulated):
    N, D, _ = simulated
    for factor, outside in ((1 + 5e-8, False), (1.01, True)):
        at = {"params": N.max() * factor, "tokens": float(np.median(D))}
        assert (asked(*simulated, at).extrapolation["params"][0] > 1) == outside


@pytest.mark.parametrize(
    ("at", "what"),
    [
        ({"params": [], "tokens": []}, "no sizes are asked for"),
        ({"params": [1e9, 1e9], "tokens": [1e10] * 3}, "3 values of tokens for 2 of params"),
        ({"params": np.ma.array([1e9, 1e9], mask=[False, True]), "tokens": [1e10] * 2}, "params is nan"),
    ],
)
def test_points_that_are_none_are_said(simulated, at, what):
    with pytest.raises(InputError, match=what):
        asked(*simulated, at)
