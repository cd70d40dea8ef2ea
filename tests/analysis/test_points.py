import polars as pl
import pytest
import story

from isoloss.analysis import points
from isoloss.errors import Refusal


def table(rows):
    names = [
        "family",
        "n_layer",
        "recurrence",
        "params",
        "seed",
        "learning_rate",
        "tokens",
        "loss",
        "cooled",
        "status",
    ]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(
        run_id=pl.int_range(pl.len()).cast(pl.String)
    )


def row(loss=3.0, *, rate=0.01, seed=0, tokens=100, cooled=True, status="finished", family="lstm"):
    return (family, 2, 1, 1000, seed, rate, tokens, loss, cooled, status)


def test_only_cooled_points_of_finished_runs_are_compared():
    rows = [row(3.0), row(3.1, cooled=False), row(3.2, status="diverged", seed=1)]
    assert points.cooled_points(table(rows))["loss"].to_list() == [3.0]


def test_runs_at_other_learning_rates_are_no_seeds_of_a_size():
    rows = [row(3.5, rate=0.1), row(3.0, rate=0.01), row(3.02, rate=0.01, seed=1), row(3.3, rate=0.001)]
    kept = points.cooled_points(table(rows))
    assert kept["learning_rate"].unique().to_list() == [0.01]
    assert points.means(kept)["seeds"].to_list() == [2]


def test_a_sweep_is_shown_with_the_rate_that_was_used():
    rows = [row(3.5, rate=0.1), row(3.0, rate=0.01), row(3.02, rate=0.01, seed=1), row(3.3, rate=0.001)]
    swept = points.sweeps(table(rows))
    assert swept["learning_rate"].to_list() == [0.001, 0.01, 0.1]
    assert swept["chosen"].to_list() == [False, True, False]
    assert points.sweeps(table(rows[1:3])).is_empty()


def test_a_study_without_finished_runs_is_refused():
    with pytest.raises(Refusal, match="no run has finished"):
        points.cooled_points(table([row(status="diverged")]))


def test_a_missing_family_is_named():
    with pytest.raises(Refusal, match="no finished transformer run"):
        points.of_families(points.cooled_points(table([row()])), "transformer", "lstm")


def test_the_largest_shared_d_is_taken_and_its_absence_refused():
    rows = [row(tokens=100), row(tokens=200), row(tokens=100, family="transformer")]
    assert points.shared_tokens(points.cooled_points(table(rows))) == 100
    apart = [row(tokens=200), row(tokens=100, family="transformer")]
    with pytest.raises(Refusal, match="shared"):
        points.shared_tokens(points.cooled_points(table(apart)))


def test_a_law_is_fitted_per_curve_and_refused_on_too_few_sizes(ahead):
    cooled = points.cooled_points(ahead.table()).filter(pl.col("tokens") == story.D_POINTS[-1])
    ours = cooled.filter(pl.col("curve") == "Transformer")
    assert points.fit_over_params(ours).params["a"] == pytest.approx(story.LSTM_AHEAD.transformer.a, rel=0.05)
    two = ours.filter(pl.col("params") < 50_000)
    assert isinstance(points.fit_over_params(two), Refusal)
