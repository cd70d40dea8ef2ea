"""Laws beside each other: each mark stands at a mean error, and its look says what the comparison said."""

from dataclasses import replace

import numpy as np
import pytest
import spec

from isoloss.figures import compared_laws
from isoloss.figures.compared_laws import BEST, EQUAL, LESS, MORE
from isoloss.laws import form
from isoloss.plans.compare import compare
from isoloss.plans.standing import ScoreGap

TRUTH = {"E": 1.8, "A": 480.0, "alpha": 0.35, "B": 2000.0, "beta": 0.37}
SPLITS = ("largest", "folds")


def compared(laws, sizes=6, **options):
    """Runs of a Chinchilla law of 0.5 % noise: so many sizes, each at five D."""
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, sizes), np.geomspace(1e9, 1e11, 5)))
    inputs = {"params": N, "tokens": D}
    noise = 0.005 * np.random.default_rng(0).standard_normal(N.size)
    return compare(laws, inputs, form("chinchilla").loss(TRUTH, inputs) * np.exp(noise), **options)


@pytest.fixture(scope="module")
def outcome():
    return compared(["power", "chinchilla", "outer-exponent", "kaplan-nd"])


def standings(outcome, split="largest"):
    table = compared_laws.rows_of(outcome).filter(split=split)
    return dict(table.select("law", "standing").rows())


def test_every_mark_stands_at_a_mean_error_and_every_line_begins_at_zero(outcome):
    figure = compared_laws.figure(outcome)
    for split, layers in zip(SPLITS, spec.panels(figure), strict=True):
        errors = {law.law: 100 * getattr(law, split) for law in outcome.entries}
        if split == "largest":
            errors["forecast"] = 100 * outcome.forecast
        drawn = {layer["mark"]["type"]: layer for layer in layers}
        assert len(drawn) == len(layers) == 3
        assert drawn["rule"]["encoding"]["x2"] == {"datum": 0}
        for kind in ("rule", "point"):
            assert {layer["encoding"]["x"]["field"] for layer in layers} == {"error"}
            assert {row["law"]: row["error"] for row in spec.rows(figure, drawn[kind])} == pytest.approx(
                errors
            )
        low, high = drawn["point"]["encoding"]["x"]["scale"]["domain"]
        assert low == 0
        assert max(errors.values()) < high


def test_a_mark_says_who_is_told_apart_and_the_table_by_what_interval(outcome):
    seen = set()
    for split in SPLITS:
        rows = {row["law"]: row for row in compared_laws.rows_of(outcome).filter(split=split).to_dicts()}
        for law in outcome.entries:
            gap, row = getattr(law, f"behind_{split}"), rows[law.law]
            wanted = BEST if gap is None else MORE if gap.told_apart else EQUAL
            assert row["standing"] == wanted
            assert (row["times_low"], row["times_high"]) == ((None, None) if gap is None else gap.times)
            assert gap is None or (row["times_low"] > 1) == (wanted == MORE)
            seen.add(wanted)
    assert seen == {BEST, EQUAL, MORE}


@pytest.mark.parametrize(
    ("share", "told_apart", "standing", "times"),
    [
        (0.5, True, LESS, (1 / 3, 1 / 1.5)),
        (0.5, False, EQUAL, (1 / 3, 1 / 1.5)),
        (2.0, True, MORE, (1.5, 3.0)),
        (2.0, False, EQUAL, (1.5, 3.0)),
    ],
)
def test_the_forecast_may_err_less_than_the_best_law(outcome, share, told_apart, standing, times):
    """The comparison's gap is of the one that errs more; the figure's interval always of the forecast."""
    gap = ScoreGap(abs(share - 1) * outcome.best.largest, (1.5, 3.0), told_apart)
    changed = replace(outcome, forecast=share * outcome.best.largest, forecast_gap=gap)
    (row,) = compared_laws.rows_of(changed).filter(split="largest", law="forecast").to_dicts()
    assert row["standing"] == standing
    assert (row["times_low"], row["times_high"]) == pytest.approx(times)
    title = compared_laws.figure(changed).title
    assert title.startswith("The forecast errs less") == (standing == LESS)


def test_a_title_names_those_not_told_apart_or_says_how_many(outcome):
    equal = ScoreGap(0.001, (0.9, 1.2), told_apart=False)
    more = replace(equal, told_apart=True)
    for count, words in enumerate(["", ", not told apart from a", "from a and b", "from 3 others"]):
        rest = [
            replace(outcome.entries[1], law=name, behind_largest=equal if i < count else more)
            for i, name in enumerate("abc")
        ]
        changed = replace(outcome, entries=(outcome.best, *rest), forecast=None, forecast_gap=None)
        title = compared_laws.figure(changed).title
        assert title.startswith("chinchilla errs least of the laws on the hidden runs (")
        assert title.endswith(words or ")")


def test_two_hidden_runs_tell_no_law_apart():
    few = compared(["power", "chinchilla"], holdout=np.arange(30) >= 28)
    assert standings(few)["power"] == EQUAL
    assert standings(few, "folds")["power"] == MORE, "negative control: where more runs are hidden"
    assert compared_laws.figure(few).title.endswith("; fewer than three runs judge nothing")
    assert ". Fewer than three hidden runs judge no forms" in few.verdict()
    assert "Not told apart" not in few.verdict()


def test_a_law_left_alone_is_said_to_be_alone(outcome):
    alone = replace(outcome, entries=outcome.entries[:1], refused=(("power", "no"),))
    figure = compared_laws.figure(alone)
    assert figure.title.startswith("chinchilla, the only law that the runs determine, errs by")
    assert "power: refused, no." in figure.shows


def test_where_no_law_is_left_without_the_hidden_runs_nothing_is_said_to_err_least():
    outcome = compared(["chinchilla", "kaplan-nd"], sizes=3)
    assert outcome.best.largest is None
    figure = compared_laws.figure(outcome)
    assert figure.title == "No law could be fitted without the hidden runs"
    assert "errs least" not in outcome.verdict()
    assert "The folds prefer chinchilla." in outcome.verdict()
    assert "chinchilla: not scored, N takes 2 values" in figure.shows
    left, right = spec.panels(figure)
    assert [len(spec.rows(figure, layer)) for layer in left] == [0, 0, 2]
    assert {row["label"] for row in spec.rows(figure, left[2])} == {"not scored"}
    assert [len(spec.rows(figure, layer)) for layer in right] == [2, 2, 2]
