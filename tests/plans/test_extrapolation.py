"""What benchmarks/extrapolation.py counts: pairs where neither is refused, means, draws of a setting."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isoloss.errors import Refusal
from isoloss.plans.forecast.origins import LEAST_FACTOR, TAILS

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import extrapolation
from extrapolation import Score, common, line, mean_of, of_splits, score, simulations
from predictors import by_forecast, stretched, with_constants, with_priors
from public_tables import Table, chinchilla, fresh, gadre, isoflops, tables
from simulated_tables import truths

ONE = Score(0.9, 0.03, 0.01, float(np.log(0.01)), 0.07)
WIDE = replace(ONE, held=1.0, rms=0.04, log_rms=float(np.log(0.04)))


def test_sides_are_compared_where_neither_is_refused():
    ours, theirs = [ONE, WIDE, None], [ONE, None, ONE]
    assert (common(ours, theirs), common(theirs, ours)) == ([ONE], [ONE])
    assert mean_of([None]) is None
    assert line("law", [None]) == "law: refused everywhere"


def test_the_centre_has_a_mean_over_tables_and_one_over_splits_too():
    cells = line("law", [mean_of([ONE, WIDE]), ONE, None]).split()
    assert cells[1] == "2"
    assert cells[5] == f"{np.sqrt(0.025 * 0.01):.2%}"
    assert cells[6] == f"{np.sqrt(0.02 * 0.01):.2%}"


def test_a_refused_split_has_no_score():
    def refuse(of, hide, level):
        raise Refusal("no law")

    of = Table("", "", np.ones(4), np.ones(4), np.ones(4))
    hide = np.arange(4) > 2
    assert score(of, hide, refuse) is None
    ends = np.log([1.01]), np.log([0.99]), np.log([1.02])
    scored = score(of, hide, lambda *asked: ends)
    assert (scored.held, scored.rms) == (1.0, pytest.approx(np.log(1.01)))
    assert scored.winkler == pytest.approx(np.log(1.02 / 0.99))


def test_each_setting_of_a_simulation_draws_its_own_runs(monkeypatch):
    seen = []

    def look(of, hide, level):
        seen.append(of.params[~hide])
        return (np.log(of.loss[hide]),) * 3

    monkeypatch.setattr(extrapolation, "METHODS", {"look": look})
    monkeypatch.setattr(extrapolation, "SIMULATED", ("look",))
    simulations((20,), (0.01, 0.05), 2)
    first = [params[0] for params in seen]
    of_one_noise = 2 * len(truths(np.random.default_rng(0)))
    assert len(set(first)) == len(first) == 2 * of_one_noise
    simulations((20,), (0.01,), 2)
    assert [params[0] for params in seen[len(first) :]] == first[:of_one_noise]


def table_of(family, seed):
    rng = np.random.default_rng(seed)
    N, D = 10 ** rng.uniform(7, 9, 40), 10 ** rng.uniform(9, 11, 40)
    loss = (1.8 + 480 * N**-0.35 + 2000 * D**-0.37) * np.exp(0.01 * rng.standard_normal(40))
    return Table(family, "", N, D, loss)


def test_the_forecasts_own_constants_are_among_those_to_choose():
    of, hide = table_of("", 0), np.arange(40) > 34
    own, same, other = (
        method(of, hide, 0.95)
        for method in (by_forecast, with_constants(LEAST_FACTOR, TAILS), with_constants(1.0, 30))
    )
    np.testing.assert_array_equal(own, same)
    assert np.abs(np.subtract(own, other)[1:]).min() > 0
    mean, low, high = stretched(by_forecast, 2.0)(of, hide, 0.95)
    np.testing.assert_allclose(high - low, 2 * (own[2] - own[1]))
    np.testing.assert_array_equal(mean, own[0])


def test_constants_are_chosen_without_the_family_they_are_judged_on(monkeypatch, capsys):
    """Of family a narrow intervals hold all, of family b wide ones alone: each gets the other's choice."""

    def reach(half):
        def method(of, hide, level):
            mean = np.log(of.loss[hide]) + (0.0 if of.family == "a" else 0.1)
            return mean, mean - half, mean + half

        return method

    monkeypatch.setattr(extrapolation, "TUNED", {"it": {"narrow": reach(0.01), "wide": reach(0.2)}})
    extrapolation.by_family([table_of("a", 0), table_of("b", 1)])
    out = capsys.readouterr().out
    assert "it, a: wide\n" in out
    assert "it, b: narrow\n" in out
    assert " 50.0% " in next(line for line in out.splitlines() if line.startswith("it, 90%"))


def test_the_forecasts_own_priors_are_among_those_to_choose():
    of, hide = table_of("", 0), np.arange(40) > 34
    own, same, other = (
        method(of, hide, 0.9)[0] for method in (by_forecast, with_priors(0.6, 0.02), with_priors(10.0, 0.003))
    )
    np.testing.assert_allclose(same, own, rtol=1e-9)
    assert np.abs(other - own).max() > 1e-5


def test_priors_are_chosen_without_the_family_they_are_judged_on(monkeypatch, capsys):
    """One prior is right for family a alone, the other for b alone: each gets the other's choice."""

    def right_for(family):
        return lambda of, hide, level: (np.log(of.loss[hide]) + (0.001 if of.family == family else 0.1),) * 3

    monkeypatch.setattr(extrapolation, "PRIORS", {name: right_for(name) for name in ("a", "b")})
    extrapolation.centre_by_family([table_of("a", 0), table_of("b", 1)])
    lines = capsys.readouterr().out.splitlines()
    assert [row.split()[-2] for row in lines if row.startswith("a ")] == ["1.00%", "1.00%"]
    assert [row.split()[-2] for row in lines if row.startswith("chosen with")] == ["10.00%", "10.00%"]


@pytest.fixture(scope="module")
def public(run_tables):
    """Whole families of public tables, each beside all its splits."""
    all_tables = list(tables(run_tables, (gadre, chinchilla, isoflops)))
    assert len(all_tables) == 7
    return all_tables


def by_seven_tenths(of, hide, level):
    """The negative control: the same intervals shrunk by 30 %."""
    mean, low, high = by_forecast(of, hide, level)
    return mean, mean - 0.7 * (mean - low), mean + 0.7 * (high - mean)


def holds(public, method):
    """Held and half-width, means over tables; the least held."""
    each = [mean_of(of_splits(of, method)) for of in public]
    held = [one.held for one in each]
    return np.mean(held), min(held), np.mean([one.half_width for one in each])


def test_on_public_tables_nine_tenths_of_larger_runs_are_held(public):
    held, least, half_width = holds(public, by_forecast)
    assert 0.86 < held < 0.96
    assert least > 0.78
    assert half_width < 0.04


def test_shrunk_intervals_hold_too_little_there(public):
    held, least, _ = holds(public, by_seven_tenths)
    assert held < 0.82
    assert least < 0.7


def test_priors_bring_the_centre_nearer_on_tables_that_chose_nothing(run_tables):
    """By a tenth at least, over nine tables; 16 % on the machine of the log. An open floor is the control."""
    chose_nothing = list(tables(run_tables, (fresh,)))
    assert len(chose_nothing) == 9
    own, control = (
        np.mean([np.log(mean_of(of_splits(of, with_priors(*prior))).rms) for of in chose_nothing])
        for prior in ((0.6, 0.02), (10.0, 0.003))
    )
    assert own < control + np.log(0.9)
