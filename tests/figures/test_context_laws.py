from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import spec

from isoloss.analysis import contexts as measured
from isoloss.errors import Refusal
from isoloss.figures import context_laws, marks
from isoloss.figures.style import RAMP, letters

OCTAVES = [1, 2, 3, 5, 9, 17, 33, 65]


@pytest.fixture(scope="module")
def contexts(ahead):
    return measured.measure_family(ahead)


def test_a_curves_end_prints_its_law_in_its_colour(contexts):
    figure = context_laws.laws_figure(contexts)
    (names,) = spec.of_mark(figure, "text")
    rows = spec.rows(figure, names)
    assert len(rows) == len(contexts.sizes)
    assert all(" T^-0.6" in row["label"] and row["label"].startswith("N = ") for row in rows)
    assert len({row["colour"] for row in rows}) == len(rows)


def test_no_formula_is_printed_where_the_data_leave_it_open(contexts):
    lost = [
        replace(size, law=Refusal("flat", mend="more"), left_out_B=size.left_out_B[:0])
        for size in contexts.sizes
    ]
    figure = context_laws.laws_figure(replace(contexts, sizes=tuple(lost)))
    assert len(spec.of_mark(figure, "line")) == 1
    (names,) = spec.of_mark(figure, "text")
    assert not any("T^" in row["label"] for row in spec.rows(figure, names))
    assert figure.table["law_loss"].null_count() == figure.table.height


def test_measured_curve_and_law_of_a_size_share_its_colour(contexts):
    figure = context_laws.laws_figure(contexts)
    solid, law = spec.of_mark(figure, "line")
    (names,) = spec.of_mark(figure, "text")
    lines = {letters(row["colour"]) for row in spec.rows(figure, law)}
    assert lines == {row["colour"] for row in spec.rows(figure, names)}
    assert law["mark"]["strokeDash"] == [5, 4]
    assert sorted(row["loss"] for row in spec.rows(figure, solid)) == sorted(figure.table["loss"])
    low, high = solid["encoding"]["color"]["scale"]["domain"]
    sizes = [size.params for size in contexts.sizes]
    assert (low, high) == (min(sizes), max(sizes))


def test_the_shade_runs_from_the_lowest_seed_to_the_highest(contexts):
    figure = context_laws.laws_figure(contexts)
    (shade,) = spec.of_mark(figure, "area")
    size, rows = contexts.sizes[0], spec.rows(figure, shade)
    seeds = np.array([profile.loss_GB.mean(axis=1) for profile in size.profiles])
    drawn = [row for row in rows if row["params"] == size.params]
    assert [row["lowest_seed"] for row in drawn] == pytest.approx(seeds.min(axis=0).tolist())
    assert [row["highest_seed"] for row in drawn] == pytest.approx(seeds.max(axis=0).tolist())
    assert len(seeds) > 1


def test_steps_are_drawn_on_a_log_axis_one_curve_an_octave(contexts):
    figure = context_laws.steps_figure(contexts)
    (curves,) = spec.of_mark(figure, "line")
    assert curves["encoding"]["x"]["scale"]["type"] == "log"
    rows = contexts.steps.rows
    assert sorted(row["loss"] for row in spec.rows(figure, curves)) == sorted(rows["loss"])
    assert rows["from_token"].unique().sort().to_list() == OCTAVES
    assert rows["step"].min() == 1
    assert "times later" in figure.title


def test_without_a_trace_there_is_no_curve_by_step(contexts):
    with pytest.raises(Refusal, match="no trace"):
        context_laws.steps_figure(replace(contexts, steps=Refusal("no trace", mend="trace")))


def test_a_short_context_is_dashed_beside_the_long(contexts):
    alone = context_laws.sizes_figure(contexts)
    assert len(spec.of_mark(alone, "line")) == 1
    assert "No size was trained with a shorter context" in alone.subtitle
    both = context_laws.sizes_figure(replace(contexts, short=contexts.sizes[:3]))
    dashed, solid = spec.of_mark(both, "line")
    assert dashed["mark"]["strokeDash"] == [5, 4]
    assert len(spec.rows(both, dashed)) == 3 * len(OCTAVES)
    assert len(spec.rows(both, solid)) == len(contexts.sizes) * len(OCTAVES)
    assert "short minus long" in both.subtitle


def test_labels_take_the_colours_of_the_bar():
    ends = marks.on_ramp(pl.Series([1.0, 10.0, 1000.0]), 1.0, 1000.0)
    first, middle, last = map(bytes.fromhex, ends.str.strip_prefix("#"))
    dark, low, _, bright = (bytes.fromhex(colour[1:]) for colour in RAMP)
    assert (first, last) == (dark, bright)
    assert np.abs(np.subtract(list(middle), list(low))).max() <= 4, "one of 64 shades"
