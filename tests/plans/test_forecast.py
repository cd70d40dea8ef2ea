"""The forecast: what changes nothing, what is refused, and that its intervals hold."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isoloss
from isoloss.errors import InputError, Refusal
from isoloss.laws import fit
from isoloss.plans.forecast import forecast
from isoloss.plans.forecast.bases import SEVERAL_INPUTS, fit_base
from isoloss.plans.forecast.kriging import krige
from isoloss.plans.forecast.runs import MOST_RUNS, log_runs
from isoloss.plans.forecast.table import new_runs, predicted

TRUTH = {"E": 1.8, "A": 0.5, "alpha": 0.35, "B": 0.6, "beta": 0.37}


def loss_at(N, D):
    p = TRUTH
    return p["E"] + p["A"] * (N / 1e8) ** -p["alpha"] + p["B"] * (D / 1e10) ** -p["beta"]


def runs_of(count=40, noise=0.003, seed=0, bend=0.0):
    rng = np.random.default_rng(seed)
    N, D = 10 ** rng.uniform(7, 9, count), 10 ** rng.uniform(9, 11, count)
    bent = 1 + bend * np.sin(np.log(N * D) / 3)
    return N, D, loss_at(N, D) * bent * np.exp(noise * rng.standard_normal(count))


AT = {"params": [1e8, 5e9], "tokens": [1e10, 4e11]}


@pytest.fixture(scope="module")
def runs():
    return runs_of()


def asked(N, D, loss, at=AT, **options):
    return forecast({"params": N, "tokens": D}, loss, at, **options)


@pytest.fixture(scope="module")
def plain(runs):
    return asked(*runs)


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


def test_the_order_of_rows_changes_nothing(runs, plain):
    order = np.random.default_rng(1).permutation(len(runs[0]))
    again = asked(*(column[order] for column in runs))
    assert np.array_equal(again.loss, plain.loss)
    assert np.array_equal(again.interval, plain.interval)


def test_rows_repeated_exactly_change_nothing_and_a_seed_does(runs, plain):
    twice = [np.concatenate([column, column[:9]]) for column in runs]
    again = asked(*twice)
    assert np.array_equal(again.interval, plain.interval)
    twice[2][-9:] *= 1.001
    assert not np.array_equal(asked(*twice).interval, plain.interval)


@pytest.mark.parametrize("scale", [(1000.0, 1.0, 1.0), (1.0, 1e-6, 1.0), (1.0, 1.0, 3.0)])
def test_constant_factors_change_nothing(runs, plain, scale):
    N, D, loss = (factor * column for factor, column in zip(scale, runs, strict=True))
    at = {name: factor * np.array(AT[name]) for name, factor in zip(AT, scale, strict=False)}
    same(plain, asked(N, D, loss, at), scale[2])


def test_points_asked_together_and_alone_agree(runs, plain):
    alone = asked(*runs, at={"params": 5e9, "tokens": 4e11})
    np.testing.assert_allclose(alone.interval[0], plain.interval[1], rtol=1e-9)


def test_of_many_runs_always_the_same_part_is_taken():
    N, D, loss = runs_of(3 * MOST_RUNS)
    first, second = (
        log_runs({"params": N[s], "tokens": D[s]}, loss[s]) for s in (slice(None), slice(None, None, -1))
    )
    assert len(first.y_n) == MOST_RUNS
    assert np.array_equal(first.z_In, second.z_In)


@pytest.mark.parametrize(("count", "said"), [(MOST_RUNS + 1, True), (MOST_RUNS, False)])
def test_a_part_of_the_runs_is_a_doubt(count, said):
    N, D, loss = runs_of(count)
    warnings = asked(N, D, loss, at={"params": 5e9, "tokens": 4e11}).warnings
    assert (f"{MOST_RUNS} of {count} runs were used" in " ".join(warnings)) == said


def test_levels_nest(runs):
    widths = [np.diff(asked(*runs, level=level).interval, axis=1) for level in (0.5, 0.8, 0.9, 0.95)]
    assert np.all(np.diff(np.array(widths), axis=0) > 0)


# The parts


def test_a_base_finds_its_own_constants():
    N, D, loss = runs_of(60, noise=0.0)
    runs = log_runs({"params": N, "tokens": D}, loss)
    found = fit_base(SEVERAL_INPUTS[0], runs.z_In, runs.y_n)
    assert found.converged
    floor = np.exp(found.theta_p[0] + runs.middle_loss)
    assert [floor, *np.exp(found.theta_p[3:])] == pytest.approx([1.8, 0.35, 0.37], rel=2e-3)


def test_slopes_of_every_base_are_its_derivatives(runs):
    logs = log_runs({"params": runs[0], "tokens": runs[1]}, runs[2])
    for base in SEVERAL_INPUTS:
        found = fit_base(base, logs.z_In, logs.y_n)
        _, slopes = found.value(logs.z_In)
        for p in range(len(found.theta_p)):
            step = np.zeros_like(found.theta_p)
            step[p] = 1e-6
            ends = [
                type(found)(base, 2, found.theta_p + sign * step, found.w_n, found.scatter, True).value(
                    logs.z_In
                )[0]
                for sign in (1, -1)
            ]
            np.testing.assert_allclose(slopes[:, p], (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_one_outlier_hardly_moves_a_base(runs):
    N, D, loss = runs
    spoilt = loss.copy()
    spoilt[3] *= 1.5
    clean, dirty = asked(N, D, loss), asked(N, D, spoilt)
    assert np.all(np.abs(np.log(dirty.loss / clean.loss)) < 0.01)


def test_kriging_follows_a_smooth_error_that_the_law_has_not():
    N, D, loss = runs_of(120, noise=0.0005, bend=0.02)
    runs = log_runs({"params": N, "tokens": D}, loss)
    seen, new = runs.take(np.arange(120) % 3 > 0), runs.take(np.arange(120) % 3 == 0)
    found = fit_base(SEVERAL_INPUTS[0], seen.z_In, seen.y_n)
    mean_q, _ = krige(found, seen.z_In, seen.y_n, seen.label_n).moments(new.z_In)
    law_q, _ = found.value(new.z_In)
    rms = [np.sqrt(np.mean((new.y_n - predicted) ** 2)) for predicted in (mean_q, law_q)]
    assert rms[0] < 0.5 * rms[1]


# Refusals and doubts


def test_too_few_designs_are_refused_however_many_rows():
    N, D, loss = runs_of(7)
    seeds = [np.concatenate([column, column]) for column in (N, D)]
    with pytest.raises(Refusal, match="7 different sets of N and D: too few"):
        asked(*seeds, np.concatenate([loss, 1.001 * loss]))


def test_one_size_is_refused_with_what_would_lift_it(runs):
    N, D, loss = runs
    with pytest.raises(Refusal, match="N spans a factor of 1: ") as refused:
        asked(np.full_like(N, 1e8), D, loss)
    assert refused.value.mend.startswith("ask by tokens alone, or add runs until its largest is 1.5 times")
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
def test_a_value_that_cannot_be_is_named_with_its_row(runs, change, what):
    columns = dict(zip(("params", "tokens", "loss"), (column.copy() for column in runs), strict=True))
    for name, value in change.items():
        columns[name][4] = value
    with pytest.raises(InputError, match=f"row 5: {what}"):
        asked(*columns.values())


def test_sizes_that_no_float_multiplies_are_no_question(runs):
    with pytest.raises(InputError, match="beyond 1e50"):
        asked(*runs, at={"params": 1e300, "tokens": 1e300})


def test_far_beyond_what_the_table_tested_is_said(runs):
    (warning,) = asked(*runs, at={"params": 1e12, "tokens": 1e14}).warnings
    assert "times outside the runs, and hiding runs of this table tested" in warning
    assert not asked(*runs, at={"params": 2e9, "tokens": 1e11}).warnings


def test_losses_that_no_law_follows_are_said(runs):
    """A loss that rises with size; runs of one law do not get the warning (above)."""
    N, D, loss = runs
    assert any("no law follows the runs" in warning for warning in asked(N, D, 1 / loss).warnings)


def test_sizes_that_rise_together_are_said():
    N = np.geomspace(1e7, 1e9, 30)
    found = asked(N, 20 * N, loss_at(N, 20 * N) * (1 + 0.001 * np.sin(np.arange(30))))
    assert any("rise together" in warning for warning in found.warnings)


# One input


def test_one_input_is_forecast_by_power_laws():
    N = np.geomspace(1e7, 1e9, 25)
    loss = (1.5 + (N / 1e8) ** -0.3) * np.exp(0.002 * np.random.default_rng(0).standard_normal(25))
    found = forecast({"params": N}, loss, {"params": [5e9]})
    assert set(found.laws) == {"power-floor", "power"}
    low, high = found.interval[0]
    assert low < 1.5 + 50**-0.3 < high


# From a table


@pytest.fixture(scope="module")
def frame(runs):
    return pl.DataFrame(dict(zip(("N", "D", "loss"), runs, strict=True)))


def test_a_table_gives_what_its_columns_give(frame, plain):
    found = isoloss.forecast(frame, **AT)
    assert np.array_equal(found.interval, plain.interval)
    assert found.table().columns == ["params", "tokens", "loss", "low", "high"]
    assert found.table().height == 2
    assert found.source["columns"] == {"params": "N", "tokens": "D", "loss": "loss"}


def test_flops_stand_for_one_of_the_sizes(frame):
    found = isoloss.forecast(frame, params=5e9, flops=6 * 5e9 * 4e11)
    assert found.inputs["tokens"] == pytest.approx([4e11])
    for sizes in ({}, {"params": 1e9, "tokens": 1e10, "flops": 1e20}):
        with pytest.raises(InputError, match="given"):
            isoloss.forecast(frame, **sizes)


def test_each_loop_counts_in_flops(frame):
    found = new_runs(1e9, None, 6e21, {"recurrence": 4.0})
    assert found["tokens"] == pytest.approx([6e21 / (6 * 1e9 * 4)])
    assert new_runs(1e9, None, 6e21)["tokens"] == pytest.approx([1e12])


def test_flops_by_another_rule_than_the_tables_are_refused(frame):
    other = frame.with_columns(flops=9 * pl.col("N") * pl.col("D"))
    with pytest.raises(InputError, match=r"1\.5 times 6 params tokens in every row"):
        isoloss.forecast(other, params=5e9, flops=1e22)
    assert len(isoloss.forecast(other, params=5e9, tokens=4e11).loss) == 1
    same = frame.with_columns(flops=6 * pl.col("N") * pl.col("D"))
    assert len(isoloss.forecast(same, params=5e9, flops=1e22).loss) == 1


def test_a_loss_that_rises_with_size_is_doubted(runs, plain):
    N, D, loss = runs
    (said,) = [words for words in asked(N, D, 1 / loss).warnings if "rises" in words]
    assert "rises with params and tokens: is it an accuracy" in said
    assert not any("rises" in words for words in plain.warnings)


def test_tokens_that_differ_by_rounding_are_no_designs(runs):
    N, D, loss = (np.tile(column[[0, 10, 20, 30]], 3) for column in runs)
    with pytest.raises(Refusal, match="4 different sets"):
        asked(N, D + 1e-6 * D * np.arange(len(D)), loss * np.linspace(1, 1.001, len(loss)))


@pytest.mark.parametrize("name", ["learning_rate", "batch_tokens"])
def test_of_a_sweep_the_best_of_each_size_is_kept(frame, name):
    worse = [(1e-3, 1.0), (2e-3, 1.02), (5e-4, 1.05)]
    swept = pl.concat(
        frame.with_columns(pl.lit(value).alias(name), loss=pl.col("loss") * factor) for value, factor in worse
    )
    best, found = isoloss.forecast(frame, **AT), isoloss.forecast(swept, **AT)
    assert np.array_equal(found.loss, best.loss)
    assert np.array_equal(found.interval, best.interval)
    count = f"{len(frame)} of {3 * len(frame)}"
    assert f"{name} varies at equal sizes: the best of each is kept, {count} runs" in found.warnings
    assert not any("keep one with --where" in words for words in found.warnings)
    # Seeds of the best setting stay, and what else varies is looked at as ever.
    again = frame.with_columns(loss=pl.col("loss") * 1.004, **{name: pl.lit(1e-3)})
    seeds = pl.concat([swept, again])
    (said,) = [words for words in isoloss.forecast(seeds, **AT).warnings if "best of each" in words]
    assert said.endswith(f"{2 * len(frame)} of {4 * len(frame)} runs")
    loops = swept.with_columns(recurrence=1 + pl.int_range(pl.len()) % 2)
    with pytest.raises(InputError, match="differ in recurrence"):
        isoloss.forecast(loops, **AT)
    # Two settings are no sweep: their best is not known.
    few = isoloss.forecast(swept.head(2 * len(frame)), **AT)
    assert not any("best of each" in words for words in few.warnings)


def test_a_law_that_parts_from_its_own_runs_is_said_inside_them(runs):
    N, D, loss = runs
    law = fit("chinchilla", {"params": N, "tokens": D}, loss, objective="squared-log")
    inside = {"params": [float(np.median(N))], "tokens": [float(np.median(D))]}
    said, beside = predicted(law, inside)
    assert not beside.disagrees(said)[0]
    assert not any("disagree inside" in words for words in said.warnings)
    moved = replace(law, data=replace(law.data, loss=tuple(1.05 * x for x in law.data.loss)))
    said, beside = predicted(moved, inside)
    assert beside.disagrees(said)[0]
    assert "law and forecast disagree inside the runs: the law misses runs near there" in said.warnings


def test_one_number_goes_with_many(frame):
    assert isoloss.forecast(frame, params=[1e9, 2e9, 4e9], tokens=1e11).loss.shape == (3,)
    with pytest.raises(InputError, match="shape"):
        isoloss.forecast(frame, params=[1e9, 2e9, 4e9], tokens=[1e11, 2e11])


def test_a_prediction_takes_the_shapes_that_its_law_takes(frame):
    law = isoloss.fit("chinchilla", frame, objective="squared-log")
    N, D = np.array([[5e9], [7e10]]), [1e10, 1e11, 1.4e12]
    grid, flat = isoloss.predict(law, params=N, tokens=D), isoloss.predict(law, params=7e10, tokens=D)
    assert (grid.loss.shape, grid.interval[0].shape, flat.loss.shape) == ((2, 3), (2, 3), (3,))
    assert grid.loss[1] == pytest.approx(flat.loss)
    for found in (grid, flat):
        assert any("at this table's error rate" in said for said in found.warnings)
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
def test_a_setting_that_varies_by_no_rule_is_a_doubt(frame, name):
    mixed = frame.with_columns(pl.Series(name, np.resize([1e-4, 1e-3, 1e-2], frame.height)))
    assert any(f"differ in {name} by no rule" in said for said in isoloss.forecast(mixed, **AT).warnings)
    rule = frame.with_columns((1e3 / pl.col("N").sqrt()).alias(name))
    assert not any("differ" in said for said in isoloss.forecast(rule, **AT).warnings)


def test_a_label_is_a_doubt_and_a_share_is_not_read(frame, plain):
    corpora = frame.with_columns(corpus=pl.Series(np.resize(["web", "books"], frame.height)))
    assert any("corpus has 2 values" in said for said in isoloss.forecast(corpora, **AT).warnings)
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
    found = isoloss.forecast(table, params=5e9, tokens=4e11, others={"recurrence": [1, 16]})
    truth = loss_at(5e9, 4e11) + 0.3 * np.array([1.0, 16.0]) ** -0.8
    assert set(found.extrapolation) == {"params", "tokens", "recurrence"}
    assert found.extrapolation["recurrence"].tolist() == [1.0, 2.0]
    assert found.origins > 4
    low, high = found.interval.T
    assert np.all((low < truth) & (truth < high))
    assert found.loss[0] > high[1]
    with pytest.raises(InputError, match="batch is no size that the loss falls in"):
        isoloss.forecast(table, params=5e9, tokens=4e11, others={"batch": 512})


def test_the_position_in_the_context_is_an_input_alone():
    T = np.geomspace(4, 512, 12)
    loss = (2.0 + 1.5 * T**-0.6) * np.exp(0.002 * np.random.default_rng(1).standard_normal(12))
    found = isoloss.forecast(pl.DataFrame({"position": T, "loss": loss}), others={"position": 2048})
    assert set(found.laws) == {"power-floor", "power"}
    low, high = found.interval[0]
    assert low < 2.0 + 1.5 * 2048**-0.6 < high
