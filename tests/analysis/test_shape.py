"""Shape at fixed N: groups found by what shapes share, and verdicts on planted optima, edges and none."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
import story

from isoloss.analysis import shape
from isoloss.errors import Refusal
from isoloss.records.table import loss_table
from isoloss.stats import simultaneous

NONE = replace(story.LSTM_AHEAD, transformer_widths=(), lstm_widths=(), loops=(), hostile=False)


def of(**values):
    return tuple(values.items())


ASPECTS = tuple(
    of(n_layer=layers, d_model=width * factor, n_head=2)
    for factor in (1, 2, 4)
    for layers, width in ((1, 56), (2, 40), (3, 32), (4, 28), (8, 20))
)
FF = tuple(
    of(n_layer=3, d_model=width, n_head=4, d_ff=d_ff)
    for width, d_ff in ((32, 704), (48, 416), (64, 256), (80, 147), (96, 64))
)
HEADS = tuple(of(n_layer=3, d_model=64, n_head=heads) for heads in (1, 8, 16))
OPTIMUM = replace(
    NONE, seeds=3, shapes=ASPECTS + FF + HEADS, bends=(("aspect", 10.0, 0.02), ("ff", 4.0, 0.05))
)


@dataclass
class Made:
    """The loss table of a story, without files: mean loss and seeded noise at the end of the last D."""

    plan: dict
    rows: pl.DataFrame

    def table(self):
        return self.rows


def study(of_story, noise=0.002, seed=0, drop=()):
    """``noise``: relative, of one run, beside as much that all runs of one seed share."""
    runs, draw = story.planned(of_story), np.random.default_rng(seed)
    shared = draw.normal(0, 0.003, of_story.seeds)
    plan = {"study": "shape", "runs": runs}
    table = loss_table(plan, [], {})
    tokens = story.D_POINTS[-1]
    losses = [
        story.mean_losses(of_story, run, tokens)["exit_1"]
        * np.exp(draw.normal(0, noise) + shared[run["settings"]["seed"]])
        for run in runs
    ]
    table = table.with_columns(
        tokens=pl.lit(tokens), cooled=pl.lit(True), status=pl.lit("finished"), loss=pl.Series(losses)
    )
    return Made(plan, table.with_row_index().filter(~pl.col("index").is_in(drop)).drop("index"))


def by_name(shapes):
    return {(curve.panel, curve.name): curve for curve in shapes.curves}


@pytest.fixture(scope="module")
def optimum():
    return shape.measure(study(OPTIMUM))


# Which shapes are a group


def test_curves_follow_from_what_shapes_share(optimum):
    assert {key: curve.rows.height for key, curve in by_name(optimum).items()} == {
        (shape.FF, "n_head = 4"): 5,
        (shape.ASPECT, "N = 37.8K"): 5,
        (shape.ASPECT, "N = 151K"): 5,
        (shape.ASPECT, "N = 604K"): 5,
        (shape.HEADS, "d_model = 64"): 5,
    }
    heads = by_name(optimum)[shape.HEADS, "d_model = 64"].rows
    assert heads["x"].to_list() == [4, 8, 16, 32, 64]
    ff = by_name(optimum)[shape.FF, "n_head = 4"].rows
    assert ff["x"].to_list() == pytest.approx([64 / 96, 147 / 80, 4, 416 / 48, 22])


def test_other_studies_planned_no_shapes():
    assert not shape.planned(study(story.LSTM_AHEAD))
    assert not shape.planned(study(replace(NONE, shapes=ASPECTS[:1])))
    assert shape.planned(study(replace(NONE, shapes=ASPECTS[:5])))


def test_a_shape_with_another_activation_is_no_part_of_a_group():
    gated = tuple((*one, ("activation", "swiglu")) for one in ASPECTS[:2])
    assert not shape.planned(study(replace(NONE, shapes=ASPECTS[2:4] + gated)))


# What is measured


def test_the_increase_is_that_planted_after_correcting_n(optimum):
    """(8, 160) has 4% more parameters than (3, 128): uncorrected, its increase would be 0.3% off."""
    exact = shape.measure(study(OPTIMUM, noise=0.0))
    for curve in exact.curves:
        if curve.panel == shape.HEADS:
            continue
        wanted = [OPTIMUM.bent(row) for row in curve.rows.select(shape.SHAPE).to_dicts()]
        assert curve.rows["increase"].to_numpy() == pytest.approx(
            np.array(wanted) / min(wanted) - 1, abs=3e-4
        )
    assert exact.exponent.value == pytest.approx(OPTIMUM.transformer.a, rel=0.05)
    value, (low, high) = optimum.compute
    assert low < 1.01 ** (1 / OPTIMUM.transformer.a) - 1 < high
    assert value == pytest.approx(1.01 ** (1 / optimum.exponent.value) - 1)


def test_the_published_exponent_gives_the_published_rate():
    assert shape.worth(0.050) == pytest.approx(0.2202, abs=1e-4)


def test_the_flat_region_is_that_planted(optimum):
    """0.05 log(x / 4)^2 is within 1% from 2.56 to 6.26, 0.02 log(x / 10)^2 from 4.93 to 20.3."""
    ff = by_name(optimum)[shape.FF, "n_head = 4"].flat
    assert ff.sure == (4, 4)
    assert ff.measured == pytest.approx((3.1, 5.7), abs=0.3), "chords lie inside a convex curve"
    assert ff.possible == pytest.approx((147 / 80, 416 / 48))
    aspect = by_name(optimum)[shape.ASPECT, "N = 37.8K"].flat
    assert aspect.measured == pytest.approx((5.5, 20), rel=0.1)
    assert aspect.interval[0] <= aspect.fold <= aspect.interval[1]
    heads = by_name(optimum)[shape.HEADS, "d_model = 64"].flat
    assert (heads.fold, heads.interval) == (16, (16, None))


@pytest.mark.parametrize(
    ("bends", "words"),
    [
        ((("aspect", 10.0, 0.02),), "both ends worse"),
        ((), "no difference beyond the noise"),
        ((("aspect", 60.0, 0.02),), "only the low end is worse"),
        ((("aspect", 2.0, 0.02),), "only the high end is worse"),
    ],
)
def test_the_verdict_is_on_what_was_planted(bends, words):
    shapes = shape.measure(study(replace(OPTIMUM, shapes=ASPECTS, bends=bends)))
    assert words in by_name(shapes)[shape.ASPECT, "N = 37.8K"].verdict


def test_where_nothing_is_planted_a_difference_is_found_once_in_twenty_at_most():
    flat = replace(OPTIMUM, shapes=ASPECTS[:5], bends=(), transformer=replace(NONE.transformer, a=0.0))
    curves = [shape.measure(study(flat, seed=seed)).curves[0] for seed in range(300)]
    wrong = sum(bool((curve.rows["low"] > 0).any()) for curve in curves)
    assert wrong <= 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5


def test_the_sure_and_the_possible_range_hold_the_true_one():
    """0.02 log(x / 10)^2 is within 1% of that of the best shape, 10.7, from 4.9 to 20.4."""
    flat = replace(NONE.transformer, a=0.0)
    planted = replace(OPTIMUM, shapes=ASPECTS[:5], bends=(("aspect", 10.0, 0.02),), transformer=flat)
    held = 0
    for seed in range(200):
        flat = shape.measure(study(planted, noise=0.003, seed=seed)).curves[0].flat
        (low, high), sure = flat.possible, flat.sure
        held += (low or 0) <= 4.9 <= sure[0] and sure[1] <= 20.4 <= (high or 99)
    assert held >= 200 * 0.95 - 3 * (200 * 0.05 * 0.95) ** 0.5


# What is missing


def test_without_seeds_nothing_is_judged():
    shapes = shape.measure(study(replace(OPTIMUM, seeds=1)))
    assert all(curve.flat is None and curve.verdict.startswith("no verdict") for curve in shapes.curves)
    assert shapes.curves[0].rows["low"].null_count() == 5


def test_a_missing_run_leaves_the_others_judged():
    shapes = shape.measure(study(OPTIMUM, drop=(0, 4, 50)))
    assert len(shapes.curves) == 5
    assert all(curve.flat is not None for curve in shapes.curves)
    assert shapes.missing == 0
    gone = shape.measure(study(OPTIMUM, drop=(0, 1, 2)))
    assert gone.missing == 1
    assert [curve.rows.height for curve in gone.curves if curve.panel == shape.ASPECT] == [4, 5, 5]


def test_one_size_has_no_law_and_is_not_corrected():
    shapes = shape.measure(study(replace(OPTIMUM, shapes=FF + HEADS)))
    assert isinstance(shapes.exponent, Refusal)
    assert shapes.compute is None
    assert by_name(shapes)[shape.FF, "n_head = 4"].flat.sure == (4, 4)


def test_too_few_finished_shapes_are_refused():
    with pytest.raises(Refusal, match="no 3 shapes of one size"):
        shape.measure(study(replace(OPTIMUM, shapes=ASPECTS[:3]), drop=(0, 1, 2)))
    with pytest.raises(Refusal, match="no 3 shapes of one size"):
        shape.measure(study(replace(OPTIMUM, shapes=ASPECTS[:3]), drop=range(9)))


def test_all_pairs_hold_at_once():
    """q(0.95; 5, 10) = 4.654 (tables of Tukey's studentised range)."""
    assert simultaneous(0.0, 1.0, 3, 10, 5).high == pytest.approx(4.654 / 2**0.5, abs=2e-3)
    assert simultaneous(0.0, 1.0, 3, 10, 2).high == pytest.approx(2.228, abs=2e-3), "two means: Student's t"
    assert simultaneous(0.0, 1.0, 1, 0, 5).sign is None


def test_an_interval_that_says_nothing_is_said_once_in_words():
    flat = shape.Flat((1.0, 3.0), (1.0, 1.0), (None, None))
    sure = shape.Flat((1.0, 3.0), (1.0, 2.0), (0.5, 4.0))
    assert shape.fold(flat, unsure=True) == "3-fold"
    assert shape.fold(sure) == "3-fold (2 to 8)"


def test_a_range_is_of_all_curves_of_its_panel(optimum):
    one = shape.Flat((1.0, 4.0), (1.0, 3.0), (0.5, None))
    two = shape.Flat((2.0, 8.0), (2.5, 6.0), (None, 9.0))
    assert shape.shared([one, two]) == shape.Flat((2.0, 4.0), (2.5, 3.0), (0.5, 9.0))
    far = shape.Flat((5.0, 8.0), (5.0, 8.0), (None, None))
    assert shape.shared([one, far]) is None
    curves = [replace(curve, flat=flat) for curve, flat in zip(optimum.curves[:2], (one, far), strict=True)]
    curves = [replace(curve, panel=shape.ASPECT) for curve in curves]
    apart = replace(optimum, curves=tuple(curves))
    assert shape.fold_words(apart) == "no d_model / n_layer is within 1% of the best in every curve"
    alone = shape.fold_words(replace(optimum, curves=tuple(curves[:1])))
    assert alone.startswith("changing d_model / n_layer 4-fold")
    assert "no d_model" not in alone
