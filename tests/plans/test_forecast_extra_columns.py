"""Forecasts of runs that share more than they are asked by: a line of sizes, repeated data, other words."""

import numpy as np
import polars as pl
import pytest
from simulated_runs import asked, loss_at

import isoloss
from isoloss import files
from isoloss.errors import InputError, Refusal
from isoloss.laws import FitStatus, fit
from isoloss.plans import plan


def compute_optimal(count=16, noise=1e-3, scatter=0.0):
    """Runs at 20 tokens a parameter, or about it."""
    rng = np.random.default_rng(3)
    N = np.geomspace(1e7, 1e9, count)
    D = 20 * N * np.exp(scatter * rng.standard_normal(count))
    return pl.DataFrame(
        {"params": N, "tokens": D, "loss": loss_at(N, D) * np.exp(noise * rng.standard_normal(count))}
    )


@pytest.mark.parametrize("asked_for", [{"flops": 6 * 20 * 4e18}, {"params": 2e9}])
def test_one_size_is_asked_where_the_other_follows_it(asked_for):
    prediction = isoloss.forecast(compute_optimal(), **asked_for)
    (doubt,) = [words for words in prediction.warnings if "follow" in words]
    assert doubt.endswith("in these runs: the forecast holds on their line alone")
    assert prediction.interval[0, 0] < loss_at(2e9, 4e10) < prediction.interval[0, 1]


def test_one_size_is_no_question_where_the_other_differs():
    with pytest.raises(InputError, match="the runs differ in params too"):
        isoloss.forecast(compute_optimal(scatter=1.0), flops=1e21)


def test_a_written_forecast_is_asked_by_one_of_its_sizes_with_the_same_doubt(tmp_path):
    path = tmp_path / "forecast.json"
    files.write_json(path, isoloss.forecast(compute_optimal(), params=2e9, tokens=4e10).to_json())
    prediction = isoloss.forecast(path, params=2e9)
    assert any("tokens follows params" in words for words in prediction.warnings)
    assert np.allclose(prediction.loss, isoloss.forecast(compute_optimal(), params=2e9).loss)


def repeated(epochs, unique):
    rng = np.random.default_rng(4)
    N = np.tile(np.geomspace(1e7, 1e9, 6), len(epochs))
    epochs, unique = np.repeat(epochs, 6), np.broadcast_to(unique, N.shape)
    loss = loss_at(N, unique * epochs**0.5) * np.exp(1e-3 * rng.standard_normal(len(N)))
    return pl.DataFrame({"params": N, "tokens": unique * epochs, "epoch": epochs, "loss": loss})


def test_epochs_say_that_data_are_repeated():
    prediction = isoloss.forecast(repeated([1.0, 2.0, 4.0, 8.0], 1e9), params=2e9, tokens=2e10)
    assert "the runs repeat 1B unique tokens: so does the forecast" in prediction.warnings
    assert any("passed more than 4 times over their data" in words for words in prediction.warnings)
    assert prediction.source["derived"]["unique_tokens"] == "unique_tokens = tokens / epochs"
    once = repeated([0.25, 0.5, 1.0], 1e9)
    assert not any("repeat" in words for words in isoloss.forecast(once, params=2e9, tokens=2e10).warnings)


def test_repetitions_that_differ_are_asked_for():
    mixed = repeated([1.0, 2.0, 4.0, 8.0], np.tile([1e9, 3e9, 1e9], 8))
    with pytest.raises(InputError, match=r"the runs differ in unique_tokens \(tokens / epochs\) too"):
        isoloss.forecast(mixed, params=2e9, tokens=2e10)
    assert len(isoloss.forecast(mixed, params=2e9, tokens=2e10, unique_tokens=2e9).loss) == 1


@pytest.mark.parametrize("none", [None, 0.0, -1.0, float("nan"), float("inf")])
def test_epochs_that_say_nothing_are_asked_for_by_their_own_name(none):
    table = repeated([2.0, 4.0, 8.0], 1e9)
    some = table.with_columns(pl.when(pl.col("epoch") == 2).then(none).otherwise("epoch").alias("epoch"))
    with pytest.raises(InputError, match=r"unique_tokens \(tokens / epochs\) is empty in 6 of 18") as refused:
        isoloss.forecast(some, params=2e9, tokens=2e10)
    assert refused.value.mend == "fill epoch in, or keep one value of it with where"


def test_data_seen_equally_often_are_told_as_such():
    thrice = repeated([3.0] * 4, np.repeat([1e9, 2e9, 4e9, 8e9], 6))
    prediction = isoloss.forecast(thrice, params=2e9, tokens=6e10)
    assert "each run sees its data 3 times: so does the forecast" in prediction.warnings


def test_sizes_that_no_model_has_are_refused_in_python_too(simulated):
    table = pl.DataFrame(dict(zip(("N", "D", "loss"), simulated, strict=True)))
    with pytest.raises(InputError, match=r"(?s)no model has so few.*7B"):
        isoloss.forecast(table, params=7, tokens=1.4e11)


def test_a_loss_above_that_of_a_guess_is_doubted(simulated):
    N, D, loss = simulated
    far = asked(N, D, 2.5 * loss, {"params": [1e5], "tokens": [1e6]})
    assert any("nats are more than a guess costs" in words for words in far.warnings)
    near = asked(N, D, 2.5 * loss, {"params": [2e9], "tokens": [1e11]})
    assert not any("guess" in words for words in near.warnings)


def test_an_interval_that_says_nothing_is_doubted(simulated):
    N, D, loss = (column[:10] for column in simulated)
    largest = np.arange(10) == np.argmax(N * D)
    wide = asked(N, D, np.where(largest, 1.4 * loss, loss), {"params": [1e11], "tokens": [1e13]})
    assert any("the runs hardly tell the loss there" in words for words in wide.warnings)
    assert not any("hardly tell" in words for words in asked(*simulated).warnings)


def test_a_curve_along_a_line_plans_no_model_beside_it():
    table = compute_optimal()
    law = isoloss.fit("chinchilla", table, curve_only=True)
    assert law.status is FitStatus.CURVE_ONLY
    assert law.reason == "N and D rise together in the runs, which do not tell what either does"
    with pytest.raises(Refusal, match="N and D rise together"):
        plan(law, flops=1e22)
    assert plan(law, flops=1e22, params=1e10).params == pytest.approx(1e10)


def test_a_law_of_a_line_is_refused_by_that_name_and_one_of_few_runs_by_its_own():
    table = compute_optimal()
    with pytest.raises(
        Refusal, match=r"(?s)N and D rise together.*other tokens per parameter, or forecast by flops"
    ):
        isoloss.fit("chinchilla", table)
    wide = compute_optimal(scatter=1.0)
    flat = np.exp(0.05 * np.random.default_rng(5).standard_normal(len(wide)))
    sizes = {name: wide[name].to_numpy() for name in ("params", "tokens")}
    with pytest.raises(Refusal, match="hardly falls"):
        fit("chinchilla", sizes, 3 * flat)
