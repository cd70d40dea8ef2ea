"""IsoFLOP figures: the finding as title, every number in the table, left-out minima open and explained."""

import json

import numpy as np
import polars as pl
import pytest
import spec
from sweeps import LAW, chinchilla_optimum, noisy

from isoloss.analysis.method_frontiers import budget_frontier, envelope_frontier, law_frontier
from isoloss.errors import InputError
from isoloss.figures import style
from isoloss.figures.isoflop import frontier_figure
from isoloss.figures.isoflop_curves import curves_figure
from isoloss.figures.render import render
from isoloss.laws import fit
from isoloss.laws.envelope import envelope
from isoloss.laws.isoflop import isoflop
from isoloss.sources.published import published


@pytest.fixture(scope="module")
def iso_flop():
    return isoflop(*noisy(largest=1.02 * chinchilla_optimum(LAW, 10**20.5)), noise=0.003)


def test_the_title_states_the_exponent_and_what_was_left_out(iso_flop):
    figure = curves_figure(iso_flop)
    low, high = iso_flop.params.interval
    assert figure.title.startswith(
        f"Optimal size grows as C^{iso_flop.params.exponent:.3f} ({low:.3f} to {high:.3f})"
    )
    assert "6 of 9 compute budgets" in figure.title
    assert figure.shows.count("is left out: the curve is lowest at") == 3
    assert "open: 3 left out" in figure.subtitle


def diamonds(figure, *, filled):
    """The rows of the minima's marks: filled ones are used, open ones left out."""
    layers = [layer for layer in spec.of_mark(figure, "point") if layer["mark"]["filled"] is filled]
    if filled:
        layers = [layer for layer in layers if layer["encoding"]["shape"] == {"value": "diamond"}]
    (layer,) = layers
    return spec.rows(figure, layer)


def test_left_out_minima_are_open_marks_with_their_reason(iso_flop):
    figure = curves_figure(iso_flop)
    used, left_out = diamonds(figure, filled=True), diamonds(figure, filled=False)
    assert [row["params"] for row in used] == [one.params for one in iso_flop.budgets if one.used]
    assert [row["params"] for row in left_out] == [one.params for one in iso_flop.budgets if not one.used]
    assert len(left_out) == 3
    assert all(row["why"].endswith(": edge") for row in left_out)
    rows = [row for layer in spec.of_mark(figure, "text") for row in spec.rows(figure, layer)]
    words = [row["why"] for row in rows if "why" in row]
    assert sorted(words) == sorted(2 * [row["why"] for row in left_out])  # each over its white shade
    named = [row["flops"] for row in rows if "label" in row]
    assert named == [row["flops"] for row in used]


def test_no_left_out_minimum_leaves_no_open_mark():
    whole = curves_figure(isoflop(*noisy(), noise=0.003))
    assert "left out" not in whole.shows
    assert diamonds(whole, filled=False) == []


def test_points_curves_and_names_of_a_budget_share_its_colour_from_dark_to_bright(iso_flop):
    figure = curves_figure(iso_flop)
    rows = [row for layer in spec.layers(figure) for row in spec.rows(figure, layer)]
    colours = {(row["flops"], row["colour"]) for row in rows if "colour" in row}
    assert len({(flops, style.letters(colour)) for flops, colour in colours}) == len(iso_flop.budgets)
    assert {style.RAMP[0], style.RAMP[-1]} <= {colour for _, colour in colours}


def test_a_bar_is_one_standard_error_of_the_minimum(iso_flop):
    figure = curves_figure(iso_flop)
    (layer,) = spec.of_mark(figure, "rule")
    for row, budget in zip(spec.rows(figure, layer), [b for b in iso_flop.budgets if b.log_se], strict=True):
        assert np.log(row["high"] / row["low"]) == pytest.approx(2 * budget.log_se)


def test_losses_far_above_every_minimum_are_not_drawn(iso_flop):
    figure = curves_figure(iso_flop)
    top = 1.25 * max(one.loss for one in iso_flop.budgets)
    assert figure.table["loss"].max() > top
    shown = [row["loss"] for layer in spec.layers(figure) for row in spec.rows(figure, layer)]
    assert max(shown) <= top


def test_each_method_has_a_colour_a_shape_and_a_name_of_its_own(iso_flop):
    C, N, loss = noisy()
    frontiers = [
        budget_frontier(iso_flop),
        envelope_frontier(envelope(C, N, loss, run=None, choice="hull", draws=50)),
    ]
    figure = frontier_figure(frontiers)
    points = spec.of_mark(figure, "point")
    looks = {(layer["mark"]["color"], layer["mark"]["shape"]) for layer in points}
    assert len(looks) == len(frontiers)
    (text,) = spec.of_mark(figure, "text")
    labels = spec.rows(figure, text)
    assert [row["label"] for row in labels] == [one.label for one in frontiers]
    assert {row["colour"] for row in labels} == {style.letters(colour) for colour, _ in looks}
    shown = sum(len(spec.rows(figure, layer)) for layer in points)
    assert shown == figure.table.height == sum(one.points.height for one in frontiers)
    for axis in ("x", "y"):
        assert points[0]["encoding"][axis]["scale"]["type"] == "log"
        assert "log scale" in points[0]["encoding"][axis]["title"]


def test_the_table_holds_every_point_and_optimum(iso_flop):
    rows = curves_figure(iso_flop).table
    assert rows.height == sum(len(one.sizes) for one in iso_flop.budgets)
    assert rows.filter(~pl.col("used"))["flags"].str.starts_with("discarded").all()
    assert rows["optimal_params"].unique().sort().to_list() == sorted(one.params for one in iso_flop.budgets)


def test_figures_render(iso_flop):
    C, N, loss = noisy()
    law = fit("chinchilla", {"params": N, "tokens": C / 6 / N}, loss, objective="squared-log")
    curves = envelope(C, N, loss, run=None, choice="hull", draws=50)
    frontiers = [
        budget_frontier(iso_flop),
        envelope_frontier(curves),
        law_frontier(law, 1e18, 1e22),
    ]
    for figure in (curves_figure(iso_flop), frontier_figure(frontiers)):
        picture = render(figure)
        assert picture.png.startswith(b"\x89PNG")
        assert "log scale" in picture.svg
        json.dumps(figure.chart.to_dict(validate=False), allow_nan=False)


def test_methods_that_disagree_say_so(iso_flop):
    one = budget_frontier(iso_flop)
    C, N, loss = noisy()
    other = budget_frontier(isoflop(C, N * (C / 1e20) ** 0.2, loss, noise=0.003))
    assert "do not all overlap" in frontier_figure([one, other]).title
    assert "intervals overlap" in frontier_figure([one, one]).title
    assert "At C = 1e22 N* is" in frontier_figure([one, other]).shows
    assert "to the power" in frontier_figure([one]).title


def test_what_papers_print_lies_beside_the_methods(iso_flop):
    figure = frontier_figure([budget_frontier(iso_flop)])
    printed, _ = spec.of_mark(figure, "line")
    assert "papers print" in figure.subtitle
    lines = pl.DataFrame(spec.rows(figure, printed))
    one = lines.filter(rule="Besiroglu et al. 2024")
    wanted = chinchilla_optimum(published("chinchilla-epoch").params, one["flops"].to_numpy())
    assert one["params"].to_numpy() == pytest.approx(wanted, rel=1e-3)
    assert lines["rule"].n_unique() == 4


def test_no_frontier_is_an_input_error():
    with pytest.raises(InputError, match="no frontier"):
        frontier_figure([])
