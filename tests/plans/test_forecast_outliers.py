"""Runs far from the rest: found, named by their rows, and what the forecast is without them."""

import numpy as np
import polars as pl
import pytest
from simulated_runs import AT, runs_of

import isoloss
from isoloss import files

POINT = {name: values[1] for name, values in AT.items()}


def table_of(seed, far=(), count=40, bend=0.0):
    N, D, loss = runs_of(count, seed=seed, bend=bend)
    loss[list(far)] *= np.resize([1.1, 0.9], len(far))
    return pl.DataFrame({"params": N, "tokens": D, "loss": loss})


def outlier_warnings(prediction):
    return [warning for warning in prediction.warnings if "far from the rest" in warning]


def test_rows_far_from_the_rest_are_named_with_the_loss_without_them():
    table = table_of(0, far=(2, 16))
    prediction = isoloss.forecast(table, **POINT)
    rest = isoloss.forecast(table.filter(~pl.int_range(pl.len()).is_in([2, 16])), **POINT)
    low, high = rest.interval[0]
    without = f"without them the loss is {rest.loss[0]:.4f} ({low:.4f} to {high:.4f})"
    assert outlier_warnings(prediction) == [f"rows 3, 17 lie far from the rest: {without}"]
    assert np.log(high / low) < 0.5 * np.log(prediction.interval[0, 1] / prediction.interval[0, 0])
    # Numbers are those of the table as given, whatever is left out or stands there twice.
    least = 0.9 * min(table["params"][2], table["params"][16])
    kept = isoloss.forecast(pl.concat([table, table[16:17]]), where=f"params > {least}", **POINT)
    assert len(kept.data.loss) < 40
    assert outlier_warnings(kept)[0].startswith("rows 3, 17 lie far")
    (words,) = outlier_warnings(isoloss.forecast(table, **AT))
    assert "rows 3, 17 lie far from the rest: without them losses change by up to " in words


@pytest.mark.parametrize("bend", [0.0, 0.02])
def test_control_runs_of_a_law_and_of_a_bend_have_none(bend):
    for seed in range(4):
        for count in (14, 60):
            assert outlier_warnings(isoloss.forecast(table_of(seed, count=count, bend=bend), **POINT)) == []


def test_of_more_rows_than_are_used_all_that_lie_far_are_named():
    far = range(0, 300, 13)
    prediction = isoloss.forecast(table_of(0, far=far, count=300), **POINT)
    assert len(prediction.data.loss) == 150
    assert outlier_warnings(prediction)[0].startswith(
        f"rows {', '.join(str(row + 1) for row in list(far)[:12])} and 12 more lie"
    )


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_of_one_size_they_are_named_too(factor):
    N = np.geomspace(1e7, 1e9, 20)
    loss = (1.8 + 480 * N**-0.35) * np.exp(0.001 * np.random.default_rng(3).standard_normal(20))
    loss[11] *= factor
    prediction = isoloss.forecast(pl.DataFrame({"params": N, "loss": loss}), params=1e10)
    assert outlier_warnings(prediction)[0].startswith(
        "row 12 lies far from the rest: without it the loss is 1.9"
    )


def test_many_runs_or_few_name_no_group():
    assert outlier_warnings(isoloss.forecast(table_of(1, far=range(0, 40, 5)), **POINT)) == []
    assert outlier_warnings(isoloss.forecast(table_of(1, far=(3,), count=11), **POINT)) == []


def test_a_written_forecast_counts_them_and_a_fit_names_them(tmp_path):
    table = table_of(0, far=(2,))
    files.write_json(tmp_path / "forecast.json", isoloss.forecast(table, **POINT).to_json())
    assert outlier_warnings(isoloss.forecast(tmp_path / "forecast.json", **POINT))[0].startswith(
        "1 run lies far"
    )
    law = isoloss.fit("chinchilla", table, objective="squared-log")
    files.write_json(tmp_path / "fit.json", law.to_json())
    for prediction in (isoloss.forecast(tmp_path / "fit.json", **POINT), isoloss.predict(law, **POINT)):
        assert "row 3 lies far from the rest: without it the loss is " in outlier_warnings(prediction)[0]
