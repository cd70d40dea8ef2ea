"""Forecasts of tables: columns, sweeps, units, what varies unasked, further inputs."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from simulated_runs import AT, asked, loss_at

import isoloss
from isoloss import files
from isoloss.errors import InputError, Refusal
from isoloss.laws import fit
from isoloss.plans.forecast.table import new_runs, predicted


@pytest.fixture(scope="module")
def frame(simulated):
    return pl.DataFrame(dict(zip(("N", "D", "loss"), simulated, strict=True)))


def test_a_table_gives_what_its_columns_give(frame, plain):
    prediction = isoloss.forecast(frame, **AT)
    assert np.array_equal(prediction.interval, plain.interval)
    assert prediction.table().columns == ["params", "tokens", "loss", "low", "high"]
    assert prediction.table().height == 2
    assert prediction.source["columns"] == {"params": "N", "tokens": "D", "loss": "loss"}


def test_flops_stand_for_one_of_the_sizes(frame):
    prediction = isoloss.forecast(frame, params=5e9, flops=6 * 5e9 * 4e11)
    assert prediction.inputs["tokens"] == pytest.approx([4e11])
    for sizes in ({}, {"params": 1e9, "tokens": 1e10, "flops": 1e20}):
        with pytest.raises(InputError, match="given"):
            isoloss.forecast(frame, **sizes)


def test_each_loop_counts_in_flops(frame):
    sizes = new_runs({"params": 1e9, "flops": 6e21, "recurrence": 4.0})
    assert sizes["tokens"] == pytest.approx([6e21 / (6 * 1e9 * 4)])
    assert new_runs({"params": 1e9, "tokens": None, "flops": 6e21})["tokens"] == pytest.approx([1e12])


def test_flops_by_another_rule_than_the_tables_are_refused(frame):
    other = frame.with_columns(flops=9 * pl.col("N") * pl.col("D"))
    with pytest.raises(InputError, match=r"1\.5 times 6 params tokens in every row"):
        isoloss.forecast(other, params=5e9, flops=1e22)
    assert len(isoloss.forecast(other, params=5e9, tokens=4e11).loss) == 1
    same = frame.with_columns(flops=6 * pl.col("N") * pl.col("D"))
    assert len(isoloss.forecast(same, params=5e9, flops=1e22).loss) == 1


def test_a_loss_that_rises_with_size_is_doubted(simulated, plain):
    N, D, loss = simulated
    (warning,) = [words for words in asked(N, D, 1 / loss).warnings if "rises" in words]
    assert "rises with params and tokens: is it an accuracy" in warning
    assert not any("rises" in words for words in plain.warnings)


def test_tokens_that_differ_by_rounding_are_no_designs(simulated):
    N, D, loss = (np.tile(column[[0, 10, 20, 30]], 3) for column in simulated)
    with pytest.raises(Refusal, match="4 different sets"):
        asked(N, D + 1e-6 * D * np.arange(len(D)), loss * np.linspace(1, 1.001, len(loss)))


@pytest.mark.parametrize("name", ["learning_rate", "batch_tokens"])
def test_of_a_sweep_the_best_of_each_size_is_kept(frame, name):
    worse = [(1e-3, 1.0), (2e-3, 1.02), (5e-4, 1.05)]
    swept = pl.concat(
        frame.with_columns(pl.lit(value).alias(name), loss=pl.col("loss") * factor) for value, factor in worse
    )
    best, prediction = isoloss.forecast(frame, **AT), isoloss.forecast(swept, **AT)
    assert np.array_equal(prediction.loss, best.loss)
    assert np.array_equal(prediction.interval, best.interval)
    count = f"{len(frame)} of {3 * len(frame)}"
    assert f"{name} varies at equal sizes: the best of each is kept, {count} runs" in prediction.warnings
    assert not any("keep one with --where" in words for words in prediction.warnings)
    # Seeds of the best setting stay, and what else varies is looked at as ever.
    second_seed = frame.with_columns(loss=pl.col("loss") * 1.004, **{name: pl.lit(1e-3)})
    seeds = pl.concat([swept, second_seed])
    (warning,) = [words for words in isoloss.forecast(seeds, **AT).warnings if "best of each" in words]
    assert warning.endswith(f"{2 * len(frame)} of {4 * len(frame)} runs")
    loops = swept.with_columns(recurrence=1 + pl.int_range(pl.len()) % 2)
    with pytest.raises(InputError, match="differ in recurrence"):
        isoloss.forecast(loops, **AT)
    # Two settings are no sweep: their best is not known.
    few = isoloss.forecast(swept.head(2 * len(frame)), **AT)
    assert not any("best of each" in words for words in few.warnings)


def test_a_law_that_parts_from_its_own_runs_is_said_inside_them(simulated):
    N, D, loss = simulated
    law = fit("chinchilla", {"params": N, "tokens": D}, loss, objective="squared-log")
    inside = {"params": [float(np.median(N))], "tokens": [float(np.median(D))]}
    law_prediction, prediction = predicted(law, inside)
    assert not prediction.disagrees(law_prediction)[0]
    assert not any("disagree inside" in words for words in law_prediction.warnings)
    moved = replace(law, data=replace(law.data, loss=tuple(1.05 * x for x in law.data.loss)))
    law_prediction, prediction = predicted(moved, inside)
    assert prediction.disagrees(law_prediction)[0]
    assert (
        "law and forecast disagree inside the runs: the law misses runs near there" in law_prediction.warnings
    )


def test_one_number_goes_with_many(frame):
    assert isoloss.forecast(frame, params=[1e9, 2e9, 4e9], tokens=1e11).loss.shape == (3,)
    with pytest.raises(InputError, match="2 values of tokens for 3 of params"):
        isoloss.forecast(frame, params=[1e9, 2e9, 4e9], tokens=[1e11, 2e11])


def test_a_question_of_no_run_is_refused(frame):
    for sizes in ({"params": [], "tokens": []}, {"params": [], "flops": []}):
        with pytest.raises(InputError, match="no sizes are asked for"):
            isoloss.forecast(frame, **sizes)
    with pytest.raises(InputError, match="1 value of tokens for 0 of params"):
        isoloss.forecast(frame, params=[], tokens=1e10)


def test_a_prediction_takes_the_shapes_that_its_law_takes(frame):
    law = isoloss.fit("chinchilla", frame, objective="squared-log")
    N, D = np.array([[5e9], [7e10]]), [1e10, 1e11, 1.4e12]
    grid, flat = isoloss.predict(law, params=N, tokens=D), isoloss.predict(law, params=7e10, tokens=D)
    assert (grid.loss.shape, grid.interval[0].shape, flat.loss.shape) == ((2, 3), (2, 3), (3,))
    assert grid.loss[1] == pytest.approx(flat.loss)
    for prediction in (grid, flat):
        assert any("so far outside the runs" in warning for warning in prediction.warnings)
    none = isoloss.predict(law, params=[], tokens=[])
    assert (none.loss.shape, none.warnings) == ((0,), law.warnings)


def test_a_size_that_varies_unasked_is_an_error(frame):
    with pytest.raises(InputError, match="differ in tokens too"):
        isoloss.forecast(frame, params=1e10)
    loops = np.resize([1, 2, 4], frame.height)
    for name, column in (("recurrence", loops), ("position", loops), ("unique_tokens", frame["D"] / loops)):
        table = frame.with_columns(pl.Series(name, column))
        with pytest.raises(InputError, match=f"differ in {name} too"):
            isoloss.forecast(table, **AT)
    one = frame.with_columns(recurrence=pl.lit(4), unique_tokens=2.0 * pl.col("D"))
    assert not any("differ" in warning for warning in isoloss.forecast(one, **AT).warnings)


@pytest.mark.parametrize("name", ["learning_rate", "batch_tokens"])
def test_a_sweep_is_one_where_tokens_are_rounded_or_a_cell_is_empty(frame, name):
    settings = ((1e-3, 1.0, 1.0), (2e-3, 1.02, 1.0004), (5e-4, 1.05, 0.9996))
    swept, rounded = (
        pl.concat(
            frame.with_columns(
                pl.lit(value).alias(name),
                D=pl.col("D") * (rounding if by_steps else 1),
                loss=pl.col("loss") * factor,
            )
            for value, factor, rounding in settings
        )
        for by_steps in (False, True)
    )
    row = pl.int_range(pl.len())
    gap = swept.with_columns(pl.when(row != 45).then(name).alias(name))
    best = isoloss.forecast(frame, **AT)
    for table in (rounded, gap):
        prediction = isoloss.forecast(table, **AT)
        assert f"40 of {len(table)} runs" in next(
            warning for warning in prediction.warnings if "best of each" in warning
        )
        assert prediction.interval == pytest.approx(best.interval, rel=1e-9)
    # Sizes that differ by more are designs of their own.
    apart = rounded.with_columns(D=pl.col("D") * (1 + 0.002 * row))
    assert not any("best of each" in warning for warning in isoloss.forecast(apart, **AT).warnings)
    # A rule is one where a cell is empty, too.
    rule = frame.with_columns((1e3 / pl.col("N").sqrt()).alias(name))
    rule = rule.with_columns(pl.when(row != 7).then(name).alias(name))
    assert not any("changes from run" in warning for warning in isoloss.forecast(rule, **AT).warnings)


def test_loops_that_each_have_a_rate_of_their_own_are_no_sweep(frame):
    loops = ((1, 1e-3, 1.04), (2, 2e-3, 1.02), (4, 5e-4, 1.0))
    table = pl.concat(
        frame.with_columns(
            pl.lit(times).alias("recurrence"),
            pl.lit(rate).alias("learning_rate"),
            loss=pl.col("loss") * factor,
        )
        for times, rate, factor in loops
    )
    with pytest.raises(InputError, match="differ in recurrence too"):
        isoloss.forecast(table, **AT)
    sweep = isoloss.forecast(table.drop("recurrence"), **AT)
    assert any("best of each is kept" in warning for warning in sweep.warnings)


def test_tokens_that_are_equal_but_for_rounding_stand_still():
    N = np.geomspace(1e7, 1e9, 25)
    D = 1e9 * (1 + 4e-4 * np.linspace(0, 1, 25) ** 2)
    table = pl.DataFrame({"params": N, "tokens": D, "flops": 6 * N * D, "loss": loss_at(N, D)})
    for columns in (["params", "tokens", "loss"], table.columns, ["params", "flops", "loss"]):
        prediction = isoloss.forecast(table.select(columns), params=5e9)
        low, high = prediction.interval[0]
        assert low < loss_at(5e9, 1e9) < high
    with pytest.raises(Refusal, match="D spans a factor of 1: ") as refused:
        isoloss.forecast(table, params=5e9, tokens=1e9)
    assert refused.value.mend.startswith("forecast by params alone")
    moved = table.with_columns(tokens=pl.col("tokens") * (1 + 0.01 * (np.arange(25) % 3))).drop("flops")
    with pytest.raises(InputError, match="differ in tokens too"):
        isoloss.forecast(moved, params=5e9)


@pytest.mark.parametrize(("name", "value"), [("recurrence", 4.0), ("position", 4.0), ("unique_tokens", 1e9)])
def test_a_size_that_some_runs_leave_empty_is_an_error(frame, name, value):
    for values in (pl.lit(value), pl.col("D") / 4):
        table = frame.with_columns(pl.when(pl.int_range(pl.len()) < 15).then(values).alias(name))
        with pytest.raises(InputError, match=f"{name} is empty in 25 of 40 runs"):
            isoloss.forecast(table, **AT)
    empty = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
    assert len(isoloss.forecast(empty, **AT).loss) == 2


@pytest.mark.parametrize("name", ["learning_rate", "batch_tokens"])
def test_a_setting_that_varies_by_no_rule_is_a_doubt(frame, name):
    mixed = frame.with_columns(pl.Series(name, np.resize([1e-4, 1e-3, 1e-2], frame.height)))
    assert any(
        f"{name} changes from run to run and" in warning for warning in isoloss.forecast(mixed, **AT).warnings
    )
    rule = frame.with_columns((1e3 / pl.col("N").sqrt()).alias(name))
    assert not any("changes" in warning for warning in isoloss.forecast(rule, **AT).warnings)


def test_a_written_forecast_keeps_what_was_said_of_rates_and_batches(frame, tmp_path):
    rates = np.resize([1e-4, 1e-3, 1e-2], frame.height)
    changing = frame.with_columns(learning_rate=pl.Series(rates))
    swept = pl.concat(
        frame.with_columns(pl.lit(rate).alias("learning_rate"), loss=pl.col("loss") * factor)
        for rate, factor in ((1e-3, 1.0), (2e-3, 1.02), (5e-4, 1.05))
    )
    for table, words in (
        (changing, "learning_rate changes from run to run"),
        (swept, "best of each is kept"),
    ):
        first = isoloss.forecast(table, **AT)
        files.write_json(tmp_path / "forecast.json", first.to_json())
        reloaded = isoloss.forecast(tmp_path / "forecast.json", **AT)
        assert sum(words in warning for warning in reloaded.warnings) == 1
        assert reloaded.warnings == first.warnings
        assert reloaded.interval == pytest.approx(first.interval, rel=1e-9)


def test_a_label_is_a_doubt_and_a_share_is_not_read(frame, plain):
    corpora = frame.with_columns(corpus=pl.Series(np.resize(["web", "books"], frame.height)))
    assert any("corpus has 2 values" in warning for warning in isoloss.forecast(corpora, **AT).warnings)
    shares = isoloss.forecast(frame.with_columns(code_share=pl.Series(np.linspace(0, 1, frame.height))), **AT)
    assert shares.warnings == plain.warnings
    assert np.array_equal(shares.interval, plain.interval)


def test_json_has_numbers_for_one_point_and_lists_for_more(frame):
    one = isoloss.forecast(frame, params=5e9, tokens=4e11).to_json()
    many = isoloss.forecast(frame, **AT).to_json()
    json.dumps([one, many], allow_nan=False)
    assert isinstance(one["loss"], float)
    assert len(one["interval"]) == 2
    assert isinstance(many["loss"], list)
    assert len(many["interval"][0]) == 2
    assert set(one["extrapolation"]) == {"params", "tokens", "flops"}
    for law in one["laws"].values():
        assert law["status"] == "converged"
        assert law["interval"][0] < law["loss"] < law["interval"][1]
    assert sum(law["share"] for law in one["laws"].values()) == pytest.approx(1)


def test_loops_are_a_third_input_by_the_same_code():
    rng = np.random.default_rng(5)
    N, D = 10 ** rng.uniform(7, 9, 60), 10 ** rng.uniform(9, 11, 60)
    loops = rng.choice([1.0, 2.0, 4.0, 8.0], 60)
    loss = (loss_at(N, D) + 0.3 * loops**-0.8) * np.exp(0.003 * rng.standard_normal(60))
    table = pl.DataFrame({"params": N, "tokens": D, "recurrence": loops, "loss": loss})
    prediction = isoloss.forecast(table, params=5e9, tokens=4e11, recurrence=[1, 16])
    truth = loss_at(5e9, 4e11) + 0.3 * np.array([1.0, 16.0]) ** -0.8
    assert set(prediction.extrapolation) == {"params", "tokens", "recurrence", "flops"}
    assert prediction.extrapolation["recurrence"].tolist() == [1.0, 2.0]
    assert prediction.origins > 4
    low, high = prediction.interval.T
    assert np.all((low < truth) & (truth < high))
    assert prediction.loss[0] > high[1]
    with pytest.raises(InputError, match="batch is no size that the loss falls in"):
        new_runs({"params": 5e9, "tokens": 4e11, "batch": 512})


def test_the_position_in_the_context_is_an_input_alone():
    T = np.geomspace(4, 512, 12)
    loss = (2.0 + 1.5 * T**-0.6) * np.exp(0.002 * np.random.default_rng(1).standard_normal(12))
    prediction = isoloss.forecast(pl.DataFrame({"position": T, "loss": loss}), position=2048)
    assert set(prediction.laws) == {"power-floor", "power"}
    low, high = prediction.interval[0]
    assert low < 2.0 + 1.5 * 2048**-0.6 < high
