import numpy as np
import polars as pl
import pytest
import story

from isoloss.analysis import by_params, points
from isoloss.errors import Refusal
from isoloss.laws import fit
from isoloss.records import load, reference


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
        run_id=pl.int_range(pl.len()).cast(pl.String), context=pl.lit(128)
    )


def row(loss=3.0, *, rate=0.01, seed=0, tokens=100, cooled=True, status="finished", family="lstm"):
    return (family, 2, 1, 1000, seed, rate, tokens, loss, cooled, status)


def test_only_cooled_points_of_finished_runs_are_compared():
    rows = [row(3.0), row(3.1, cooled=False), row(3.2, status="diverged", seed=1)]
    assert points.cooled_points(table(rows))["loss"].to_list() == [3.0]


def test_runs_at_other_learning_rates_are_no_seeds_of_a_size():
    rows = [row(3.5, rate=0.1), row(3.0, rate=0.01), row(3.02, rate=0.01, seed=1), row(3.3, rate=0.001)]
    cooled = points.cooled_points(table(rows))
    assert cooled["learning_rate"].unique().to_list() == [0.01]
    assert points.means(cooled)["seeds"].to_list() == [2]


def test_a_sweep_is_shown_with_the_rate_that_was_used():
    rows = [row(3.5, rate=0.1), row(3.0, rate=0.01), row(3.02, rate=0.01, seed=1), row(3.3, rate=0.001)]
    swept = points.sweeps(table(rows))
    assert swept["learning_rate"].to_list() == [0.001, 0.01, 0.1]
    assert swept["chosen"].to_list() == [False, True, False]
    assert points.sweeps(table(rows[1:3])).is_empty()


def test_a_study_without_finished_runs_is_refused():
    with pytest.raises(Refusal, match="no run has finished"):
        points.cooled_points(table([row(status="diverged")]))


def test_models_of_a_shorter_context_are_a_curve_of_their_own():
    short = table([row(3.5)]).with_columns(context=pl.lit(8))
    cooled = points.cooled_points(pl.concat([table([row(3.0)]), short]))
    assert dict(cooled.select("curve", "loss").iter_rows()) == {
        "2-layer LSTM": 3.0,
        "2-layer LSTM, context 8": 3.5,
    }
    assert points.cooled_points(short)["curve"].to_list() == ["2-layer LSTM"]


def test_a_missing_family_is_named():
    with pytest.raises(Refusal, match="no finished transformer run"):
        points.of_families(points.cooled_points(table([row()])), "transformer", "lstm")


def test_the_largest_shared_d_is_taken_and_its_absence_refused():
    rows = [row(tokens=100), row(tokens=200), row(tokens=100, family="transformer")]
    assert points.shared_tokens(points.cooled_points(table(rows))) == [100]
    apart = [row(tokens=200), row(tokens=100, family="transformer")]
    with pytest.raises(Refusal, match="shared"):
        points.shared_tokens(points.cooled_points(table(apart)))


def test_a_law_is_fitted_per_curve_and_refused_on_too_few_sizes(ahead):
    cooled = points.cooled_points(ahead.table()).filter(pl.col("tokens") == story.D_POINTS[-1])
    ours = cooled.filter(pl.col("curve") == "Transformer")
    assert points.fit_over_params(ours).params["a"] == pytest.approx(story.LSTM_AHEAD.transformer.a, rel=0.05)
    two = ours.filter(pl.col("params") < 50_000)
    assert isinstance(points.fit_over_params(two), Refusal)


def test_the_main_d_is_the_largest_that_most_sizes_reached():
    """Two sizes trained to 200, one of them on to 400."""
    rows = [
        (*row(tokens=tokens)[:3], params, *row(tokens=tokens)[4:])
        for tokens, params in [(100, 1000), (200, 1000), (400, 1000), (100, 2000), (200, 2000)]
    ]
    cooled = points.cooled_points(table(rows))
    assert points.shared_tokens(cooled) == [100, 200, 400]
    assert points.main_tokens(cooled) == 200


def test_the_best_curve_is_judged_at_equal_size():
    """The larger models of the worse depth have the lower mean loss."""
    rows = [
        ("lstm", depth, 1, params, 0, 0.01, 100, 4.0 - 0.1 * np.log(params) + worse, True, "finished")
        for depth, sizes, worse in ((1, (1000, 2000, 4000), 0.0), (2, (2000, 4000, 8000), 0.02))
        for params in sizes
    ]
    assert points.best_curve(points.cooled_points(table(rows)), "lstm") == "1-layer LSTM"
    assert points.best_curve(points.cooled_points(table(rows[:2] + rows[3:])), "lstm") == "2-layer LSTM"


def test_loops_at_equal_depth_are_a_curve_of_their_own_beside_others():
    rows = table([row(3.0, family="looped"), row(3.5, family="looped", seed=1)])
    named = points.cooled_points(rows, ["1"])["curve"].to_list()
    assert named == ["looped, T_m = 1", "looped, T_m = 1, layers for loops"]
    assert points.cooled_points(rows, ["0", "1"])["curve"].unique().to_list() == ["looped, T_m = 1"]


def test_the_recorded_loops_fall_with_n():
    """Its runs at equal depth, where layers change with loops, once bent every curve."""
    measured = by_params.measure(load(reference.folder("reference/looped")))
    curves = {curve.name: curve for curve in measured.curves}
    assert set(curves) == {f"looped, T_m = {loops}" for loops in (1, 2, 4, 8)}
    assert curves["looped, T_m = 1"].change < 0


N = np.array([55e3, 147e3, 332e3, 786e3, 2.65e6]).repeat(3)


def drawn(loss_N, noise, seed):
    spread = np.random.default_rng(seed).normal(0, noise, len(N))
    return pl.DataFrame({"params": N, "seed": np.tile([0, 1, 2], 5), "loss": loss_N + spread})


def laws_of(loss_N, noise=0.007, draws=40):
    return [points.fit_over_params(drawn(loss_N, noise, seed)) for seed in range(draws)]


def test_a_law_that_its_seeds_contradict_is_no_curve():
    """A floor too weak for five sizes to tell from 0 bends all the same: power alone would miss the sizes."""
    laws = laws_of(2.77 + 29 * N**-0.33)
    assert not any(law.law == "power" and points.misses(law) for law in laws if not isinstance(law, Refusal))
    ahead = [isinstance(law, Refusal) or law.law == "power-floor" for law in laws]
    assert np.mean(ahead) > 0.9
    # Negative control: power by itself does miss them.
    alone = [fit("power", {"params": N}, drawn(2.77 + 29 * N**-0.33, 0.007, s)["loss"]) for s in range(9)]
    assert all(map(points.misses, alone))


def test_a_true_power_law_stays_one_at_its_rate():
    laws = [law for law in laws_of(6 * N**-0.055) if not isinstance(law, Refusal)]
    assert np.mean([law.law == "power" and law.covariance is not None for law in laws]) > 0.8


def test_sizes_on_no_smooth_line_have_no_law():
    laws = laws_of(3.0 + np.where(np.isin(N, [147e3, 786e3]), 0.2, 0.0), draws=5)
    assert all(isinstance(law, Refusal) for law in laws)
