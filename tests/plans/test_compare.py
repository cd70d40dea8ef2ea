"""The right form wins, forms that cannot be told apart are not, and refusals keep their reason."""

import json
from dataclasses import replace

import numpy as np
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import form
from isoloss.plans.backtest import backtest
from isoloss.plans.compare import compare, nesting_faults
from isoloss.plans.standing import ScoreGap, score_gaps

LAW = {"E": 1.8, "A": 480.0, "alpha": 0.35, "B": 2000.0, "beta": 0.37}
N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 1e11, 5)))
GRID = {"params": N, "tokens": D}
LAWS = ["power", "chinchilla", "kaplan-nd"]


def noisy(seed, sd=0.005):
    return form("chinchilla").loss(LAW, GRID) + sd * np.random.default_rng(seed).standard_normal(N.size)


@pytest.fixture(scope="module")
def compared():
    return compare(LAWS, GRID, noisy(0))


def by_law(comparison):
    return {one.law: one for one in comparison.entries}


def test_the_true_form_wins_on_every_count(compared):
    assert compared.best.law == "chinchilla"
    assert compared.best.behind_largest is None
    assert compared.best.behind_criterion == 0
    worse = by_law(compared)["power"]
    assert worse.behind_folds.told_apart
    assert worse.folds - compared.best.folds == pytest.approx(worse.behind_folds.value)
    assert worse.behind_criterion > 20
    assert "chinchilla errs least" in compared.verdict()
    assert "prefer" not in compared.verdict()
    assert compared.warnings == ()


def test_averaging_beats_choosing_where_no_form_is_right_and_the_verdict_says_so():
    rng = np.random.default_rng(0)
    sizes = {"params": 10 ** rng.uniform(7, 9, 40), "tokens": 10 ** rng.uniform(9, 11, 40)}
    law = form("chinchilla").loss(LAW, sizes)
    bent = law * (1 + 0.02 * np.sin(np.log(sizes["params"] * sizes["tokens"]) / 3))
    comparison = compare(["chinchilla", "kaplan-nd"], sizes, bent, holdout="largest-flops", share=0.3)
    assert comparison.forecast < comparison.best.largest
    assert comparison.forecast_gap.told_apart
    assert "Averaging beats choosing: the forecast errs by" in comparison.verdict()
    few = compare(["chinchilla", "kaplan-nd"], sizes, bent, holdout="largest-flops", rungs=1)
    assert few.forecast < few.best.largest
    assert few.forecast_gap.times is None
    assert "Averaging beats" not in few.verdict()
    assert "not told apart from it" in few.verdict()


def test_one_hidden_run_is_called_one(compared):
    assert compared.hidden > 1
    assert " on the hidden runs" in compared.verdict()
    assert " on the one hidden run" in replace(compared, hidden=1).verdict()


def test_averaging_is_not_praised_where_chance_would_do(compared):
    assert "beats" not in compared.verdict()
    assert "The forecast errs by" in compared.verdict()
    assert compared.forecast == compared.to_json()["forecast"]


def test_choosing_is_praised_where_averaging_is_told_apart_as_worse(compared):
    gap = ScoreGap(0.01, (1.5, 4.0), told_apart=True)
    worse = replace(compared, forecast=compared.best.largest + 0.01, forecast_gap=gap)
    assert "Choosing beats averaging: the forecast errs by" in worse.verdict()


def test_a_form_that_huber_refuses_is_fitted_by_squares_and_said():
    """Two dozen runs of noise 0.6%: the default of fit is that of compare."""
    rng = np.random.default_rng(0)
    sizes = {"params": 10 ** rng.uniform(7.3, 9, 24), "tokens": 10 ** rng.uniform(9.3, 11, 24)}
    loss = form("chinchilla").loss(LAW, sizes) * np.exp(0.006 * rng.standard_normal(24))
    comparison = compare(["chinchilla", "outer-exponent"], sizes, loss, objective=None)
    assert "chinchilla" in by_law(comparison)
    assert any(warning.startswith("chinchilla: fitted by squared-log") for warning in comparison.warnings)
    strict = compare(["chinchilla", "power"], sizes, loss, objective="huber-log")
    assert "chinchilla" in dict(strict.refused)
    tested = backtest("chinchilla", sizes, loss, rungs=2)
    assert tested.fit.objective.name == "squared-log"
    with pytest.raises(Refusal, match="floor") as refused:
        backtest("chinchilla", sizes, loss, rungs=2, objective="huber-log")
    assert "try another objective" in refused.value.mend


def test_the_other_truth_gives_the_other_winner():
    """Negative control: the same check with data of the rival law."""
    kaplan = {"Nc": 6.4e13, "aN": 0.076, "Dc": 1.8e13, "aD": 0.103}
    loss = form("kaplan-nd").loss(kaplan, GRID) + 0.002 * np.random.default_rng(1).standard_normal(N.size)
    comparison = compare(["power", "kaplan-nd"], GRID, loss)
    assert comparison.best.law == "kaplan-nd"


def test_equal_forms_are_told_apart_no_more_often_than_the_level_allows():
    """Errors of 4 forms over 20 groups that share most of their noise, at 90%."""
    rng = np.random.default_rng(0)
    false, careless, true = 0, 0, 0
    for _ in range(500):
        shared = rng.standard_normal(20)
        errors = {name: dict(enumerate(np.abs(shared + 0.3 * rng.standard_normal(20)))) for name in "abcd"}
        false += any(gap.told_apart for gap in score_gaps(errors, 0.9).values())
        # Negative control: the best and the worst of four taken for the only two.
        ends = sorted(errors, key=lambda name: sum(errors[name].values()))[:: len(errors) - 1]
        careless += any(
            gap.told_apart for gap in score_gaps({name: errors[name] for name in ends}, 0.9).values()
        )
        errors["e"] = {group: error + 0.5 for group, error in errors["a"].items()}
        true += score_gaps(errors, 0.9)["e"].told_apart
    assert false / 500 <= 0.13
    assert careless / 500 > 0.13
    assert true / 500 >= 0.95


def test_a_law_that_refuses_is_listed_with_its_reason():
    x = {"params": np.geomspace(1e7, 1e9, 12)}
    loss = (5e13 / x["params"]) ** 0.08 * (1 + 0.002 * np.random.default_rng(2).standard_normal(12))
    comparison = compare(["power", "power-floor"], x, loss)
    assert [one.law for one in comparison.entries] == ["power"]
    assert comparison.refused[0][0] == "power-floor"
    assert "floor" in comparison.refused[0][1]
    assert "only form" in comparison.verdict()
    with pytest.raises(Refusal, match="no form stands"):
        compare(["power", "power-floor"], {"params": np.tile([1e8, 1.1e8], 6)}, loss, folds=2)


def test_groups_never_stand_on_both_sides():
    """A run's checkpoints share an offset. Folds by row see it on the other side; folds by run do not."""
    x = {"params": np.repeat(np.geomspace(1e6, 1e9, 16), 4)}
    run = np.repeat(np.arange(16), 4)
    rng = np.random.default_rng(3)
    offset = 0.05 * rng.standard_normal(16)
    x["params"] = x["params"] * np.tile([1.0, 1.01, 1.02, 1.03], 16)
    loss = 1.8 + 400 * x["params"] ** -0.35 + offset[run] + 0.001 * rng.standard_normal(64)
    by_run = compare(["power", "power-floor"], x, loss, groups=run)
    by_row = compare(["power", "power-floor"], x, loss)
    assert by_run.groups == 16
    assert by_row.groups == 64
    assert by_law(by_run)["power-floor"].folds > by_law(by_row)["power-floor"].folds


def test_a_larger_law_never_fits_worse():
    comparison = compare(["power", "power-floor", "chinchilla", "outer-exponent"], GRID, noisy(4), folds=2)
    assert comparison.warnings == ()


def test_a_larger_law_that_fits_worse_is_flagged():
    assert nesting_faults({"chinchilla": 1.0, "outer-exponent": 0.9}) == ()
    assert nesting_faults({"chinchilla": 1.0, "power": 0.1}) == ()
    (fault,) = nesting_faults({"chinchilla": 1.0, "outer-exponent": 1.1})
    assert "outer-exponent contains chinchilla yet fits worse" in fault


def test_the_criterion_is_that_of_the_textbook(compared):
    one = by_law(compared)["power"]
    designs = len(np.unique(np.stack([N, D]), axis=1)[0])
    slope, level = np.polyfit(np.log(N), np.log(noisy(0)), 1)
    rss = np.sum((np.log(noisy(0)) - level - slope * np.log(N)) ** 2)
    assert one.criterion == pytest.approx(
        designs * np.log(rss / designs) + 2 * 3 + 2 * 3 * 4 / (designs - 4), rel=1e-6
    )


def test_the_same_seed_gives_the_same_folds():
    one, second, other = (compare(["power", "kaplan-nd"], GRID, noisy(0), seed=seed) for seed in (1, 1, 2))
    assert second.to_json() == one.to_json()
    assert other.best.folds != one.best.folds
    assert other.best.largest == one.best.largest


@pytest.mark.parametrize(
    ("laws", "options", "words"),
    [
        (["power"], {}, "two or more"),
        (["power", "power"], {}, "two or more"),
        (["power", "nothing"], {}, "no law is named"),
        (LAWS, {"folds": 1}, "folds"),
        (LAWS, {"folds": 31}, "folds"),
        (LAWS, {"holdout": "largest-width"}, "largest-params"),
        (["power", "context"], {}, "position"),
    ],
)
def test_bad_options_are_named(laws, options, words):
    with pytest.raises(InputError, match=words):
        compare(laws, GRID, noisy(0), **options)


def test_json_is_strict(compared):
    reloaded = json.loads(json.dumps(compared.to_json(), allow_nan=False))
    assert [one["law"] for one in reloaded["entries"]] == [one.law for one in compared.entries]
    assert reloaded["criterion"] == "AICc of the squared-log fit"
    assert reloaded["verdict"] == compared.verdict()
