"""What a study's own runs say of the papers' figures: agreement, contradiction, or nothing."""

from dataclasses import replace

import pytest

from isoloss.analysis import by_params, by_position, gap_by_tokens, loops, papers, params_words, shape
from isoloss.records import load, reference


@pytest.fixture(scope="module")
def recorded():
    return load(reference.folder("reference/architectures"))


def test_who_is_ahead_agrees_or_contradicts(recorded):
    (pair,) = by_params.measure(recorded).pairs.values()
    ahead = [gap.difference.sign for gap in pair.headline_gaps]
    sentence = papers.on_size(pair)
    assert sentence.startswith("This contradicts") == (1 in ahead)
    turned = [
        replace(gap, difference=replace(gap.difference, low=-0.2, high=-0.1, value=-0.15, se=0.01))
        for gap in pair.gaps
    ]
    assert papers.on_size(replace(pair, gaps=tuple(turned))).startswith("So it is")
    level = [replace(gap, difference=replace(gap.difference, value=0.0, se=1.0)) for gap in pair.gaps]
    assert papers.on_size(replace(pair, gaps=tuple(level))) == ""


def test_equal_total_parameters_are_another_comparison(recorded):
    (pair,) = by_params.measure(recorded).pairs.values()
    assert {gap.params for gap in pair.by_total.gaps}.isdisjoint({gap.params for gap in pair.gaps})
    table = recorded.table()
    assert {gap.params for gap in pair.by_total.gaps} <= set(table["params_total"])
    # LSTMs have the larger vocabularies here: at equal totals their lead is smaller.
    mean = [
        sum(g.difference.value for g in p.headline_gaps) / len(p.headline_gaps) for p in (pair, pair.by_total)
    ]
    assert mean[1] < mean[0]
    assert params_words.total_words(pair).startswith("With embeddings and heads counted in N, ")
    assert params_words.total_words(replace(pair, by_total=None)) == ""


def test_use_of_context_agrees_or_contradicts(recorded):
    (family_positions,) = by_position.measure(recorded).pairs.values()
    last = family_positions.pairs[-1]
    for use, words in (
        (by_position.Use.FLAT, "Here they do not."),
        (by_position.Use.GAINS, "So it is here."),
    ):
        model = replace(last.reference, context_use=by_position.ContextUse(use, (65, 128)))
        assert papers.on_position(
            replace(family_positions, pairs=(replace(last, reference=model),))
        ).endswith(words)
    unsure = replace(last.reference, context_use=by_position.ContextUse(by_position.Use.UNSURE, (65, 128)))
    assert papers.on_position(replace(family_positions, pairs=(replace(last, reference=unsure),))) == ""


def test_shapes_agree_or_contradict():
    shapes = shape.measure(load(reference.folder("reference/shape")))
    assert papers.on_shape(shapes).endswith("This contradicts it.")
    mild = [
        replace(curve, rows=curve.rows.with_columns(low=curve.rows["low"] * 0.0)) for curve in shapes.curves
    ]
    assert papers.on_shape(replace(shapes, curves=tuple(mild))).endswith("So it is here.")
    assert papers.on_shape(replace(shapes, curves=())) == ""


def test_total_loss_over_loops_agrees_or_contradicts():
    data = loops.measure(load(reference.folder("reference/looped")))
    most = data.mean_gains[-1]
    assert most.total.sign
    for sign, words in ((-1, "So it is here: with 8 loops it is lower"), (1, "This contradicts it")):
        ends = sorted((sign * 0.1, sign * 0.2))
        total = replace(most.total, value=sign * 0.15, low=ends[0], high=ends[1])
        planted = replace(data, mean_gains=(*data.mean_gains[:-1], replace(most, total=total)))
        assert words in papers.on_loops(planted)
        assert (papers.on_loops(planted) == papers.on_loops(data)) == (sign == most.total.sign)
    level = replace(data, mean_gains=(replace(most, total=replace(most.total, low=-1.0, high=1.0)),))
    assert papers.on_loops(level) == ""
    assert papers.on_loops(replace(data, mean_gains=())) == ""


def test_each_size_meets_the_best_depth_as_in_the_gap_by_tokens(recorded):
    (pair,) = by_params.measure(recorded).pairs.values()
    (gaps,) = gap_by_tokens.measure(recorded).pairs.values()
    met = {gap.params: (gap.curve, gap.difference.value) for gap in pair.headline_gaps}
    for size in gaps.sizes:
        assert met[size.params] == (size.curve, size.gaps[pair.tokens].difference.value)
    for gap in pair.gaps:
        assert gap.difference.value <= met[gap.params][1]
    assert {curve for curve, _ in met.values()} == {"1-layer LSTM", "2-layer LSTM"}
    assert pair.best_rival == "lstm"
    alone = replace(pair, gaps=tuple(g for g in pair.gaps if g.curve == pair.rival))
    assert alone.best_rival == pair.rival


def test_a_size_of_one_seed_is_called_so(recorded):
    (pair,) = by_params.measure(recorded).pairs.values()
    assert params_words.verdict(pair).endswith("neither at N = 2.65M (one seed)")
    two = [
        replace(gap, by_seed=gap.by_seed | {9: gap.difference.value}) if gap.params > 1e6 else gap
        for gap in pair.gaps
    ]
    assert params_words.verdict(replace(pair, gaps=tuple(two))).endswith("neither at N = 2.65M")
    assert params_words.single_words([(55_296, 3), (147_456, 1)]).startswith("One seed alone at N = 147K:")
    assert params_words.single_words([(55_296, 1), (147_456, 1)]) == ""
    assert params_words.single_words([(55_296, 2), (147_456, 3)]) == ""
