"""Every table and section of a study's page, against the truth that the study was made from."""

import re

import polars as pl
import pytest
import story

from isoloss.analysis.study import analyse
from isoloss.errors import Refusal
from isoloss.figures.figure import Figure
from isoloss.report import sections, tables
from isoloss.table import Table, text_table

TRUTH = story.LSTM_AHEAD


@pytest.fixture(scope="module")
def analysis(ahead):
    return analyse(ahead)


def number(words):
    """The number of a cell, which writes minus as a sign of its own and counts with a letter."""
    scale = {"K": 1e3, "M": 1e6}.get(words[-1], 1.0)
    return float(words.rstrip("KM").replace("−", "-").replace(",", "")) * scale


def column(table, name):
    return [row[table.columns.index(name)] for row in table.rows]


def test_the_page_has_its_sections_in_order(analysis):
    parts = sections.sections(analysis)
    assert [part.anchor for part in parts] == [
        "gap",
        "params",
        "position",
        "context",
        "looped",
        "looped-more",
    ]
    assert [len(part.figures) for part in parts] == [1, 1, 1, 3, 2, 4]
    assert [len(part.tables) for part in parts] == [1, 4, 2, 1, 2, 0]
    (missing,) = [part.missing for part in parts if part.missing]
    assert [refusal.what[:22] for refusal in missing] == ["no loops were trained "]


def test_a_section_keeps_what_it_has_and_says_once_what_it_lacks():
    table = Table("a table", ("x",), (("1",),), (True,))
    lacking = [
        Refusal("no rows", mend="train"),
        Refusal("no rows", mend="train"),
        Refusal("none", mend="wait"),
    ]
    part = sections.section("here", "Here", *lacking[:2], table, lacking[2])
    assert (part.figures, part.tables) == ((), (table,))
    assert [refusal.what for refusal in part.missing] == ["no rows", "none"]


def pair_of(analysis):
    """Transformers against LSTMs."""
    (pair,) = analysis.by_params.pairs.values()
    return pair


def test_gaps_by_params_have_the_sign_of_the_truth(analysis):
    table = sections.gaps_by_params(pair_of(analysis))
    assert len(table.rows) >= 9
    for size, gap, low, high in zip(
        *(column(table, name) for name in ("N", "Transformer minus it", "From", "To")), strict=True
    ):
        N, D = number(size), pair_of(analysis).tokens
        truth = TRUTH.transformer.loss(N, D) - TRUTH.lstm.loss(N, D)
        assert number(low) < number(gap) < number(high)
        assert number(gap) == pytest.approx(truth, abs=4 * TRUTH.noise)


def test_crossings_lie_where_the_laws_were_made_to_meet(analysis, inside):
    beyond = column(sections.crossings(pair_of(analysis)), "Crossover")
    assert len(beyond) == 3
    assert not [words for words in beyond if "cross inside the data" in words]
    within = column(sections.crossings(pair_of(analyse(inside))), "Crossover")
    assert all("cross inside the data" in words for words in within)
    for words in within:
        place = number(re.search(r"N = ([\d.]+[KM])", words)[1])
        assert place == pytest.approx(story.CROSSES_INSIDE.crossing, rel=0.35)


def test_size_ratios_are_those_of_the_laws(analysis):
    table = sections.ratios(pair_of(analysis))
    answered = [row for row in table.rows if row[1] != "refused"]
    assert answered
    factor = 1 + 30 * pair_of(analysis).tokens ** -0.45
    for row in answered:
        loss, ratio = float(row[1]), float(row[2])
        ours, theirs = (
            (law.at_10k * factor / loss) ** (1 / law.a) for law in (TRUTH.transformer, TRUTH.lstm)
        )
        assert ratio == pytest.approx(theirs / ours, rel=0.3)
        assert ratio < 1  # the smaller LSTM matches
        digits = [
            len(end.replace(".", "").strip("0")) for end in (row[2], *row[3].split(" to ")) if end != "open"
        ]
        assert max(digits) <= 2


def test_differences_by_position_change_where_the_lstm_stops(analysis):
    (positions,) = analysis.by_position.pairs.values()
    table = sections.gaps_by_position(positions)
    assert set(column(table, "To token")) >= {"1", "8", str(story.CONTEXT)}
    for pair in positions.pairs:
        rows = [row for row in table.rows if number(row[0]) == pair.reference.params]
        assert number(rows[-1][5]) < 0  # the Transformer gains more from context: it uses all of it
    assert column(sections.context_uses(positions), "Context").count(
        "Gains next to nothing after token 64"
    ) == len(positions.pairs)


def test_gains_of_loops_show_change_and_bonus(analysis):
    table = sections.gains(analysis.loops)
    sizes_and_mean = len(TRUTH.looped_widths) + 1
    assert column(table, "Loss") == ["last exit", "expected", "total"] * 2 * sizes_and_mean
    law = TRUTH.looped
    for row in (row for row in table.rows if row[2] == "total"):
        truth = law.C * (number(row[1]) ** -law.gamma - 1)
        assert number(row[3]) == pytest.approx(truth, abs=4 * TRUTH.noise)
        assert 0 < number(row[6]) <= number(row[7])


def test_points_left_out_are_judged_beside_the_nearest(analysis):
    table = sections.held_out(analysis.loops)
    assert column(table, "Which") == [
        "fitted",
        *["a T_m left out"] * 3,
        *["an N left out"] * 3,
        "the last half left out",
    ]
    for row in table.rows:
        assert row[3] == "–" or number(row[3]) < 0.05


def test_fits_are_listed_with_the_exponent_they_were_made_with(analysis):
    table = tables.fits_table(analysis)
    assert table.columns == tables.FIT_COLUMNS
    ours = [row for row in table.rows if row[0].startswith("Transformer: loss against N at")]
    assert len(ours) == len(story.D_POINTS)
    for row in ours:
        exponent = number(re.search(r"\ba = ([\d.]+)", row[2])[1])
        assert exponent == pytest.approx(TRUTH.transformer.a, rel=0.2) or "E = " in row[2]
    (loop,) = [row for row in table.rows if row[0].startswith("looped: total loss")]
    low, high = re.search(r"gamma = [\d.]+ \(([\d.]+) to ([\d.]+)\)", loop[2]).groups()
    assert float(low) < TRUTH.looped.gamma < float(high)


def test_a_refused_law_says_what_lifts_it():
    row = tables.fit_row("a curve", Refusal("two sizes are too few", mend="train three"))
    assert row[:4] == ("a curve", "refused", None, "refused")
    assert row[-1] == "two sizes are too few; to lift it: train three"


def test_runs_and_recipe_count_what_was_planned(ahead):
    runs = tables.runs_table(tables.last_evaluations(ahead))
    assert len(runs.rows) == len(ahead.plan["runs"])
    assert "1 diverged" in runs.caption
    states = column(runs, "Status")
    assert states[:3] == ["failed", "diverged", "running"], "what a reader asks for first"
    assert set(states[3:]) == {"finished"}
    recipe = tables.recipe_table(ahead)
    sizes = {(run["settings"]["family"], run["counts"]["params"]) for run in ahead.plan["runs"]}
    assert {(row[0], int(number(row[4]))) for row in recipe.rows} == sizes
    assert set(column(recipe, "Tokens a step")) == {f"{story.BATCH_TOKENS:,}"}
    assert tables.sweep_tables(ahead) == []  # one rate a size


def test_of_very_many_runs_the_first_are_listed(ahead):
    last = tables.last_evaluations(ahead)
    many = pl.concat([last.filter(pl.col("status") == "finished")] * 10)
    runs = tables.runs_table(many)
    assert len(runs.rows) == tables.LISTED < many.height
    assert f"the first {tables.LISTED} are listed" in runs.caption
    assert "listed" not in tables.runs_table(last).caption


def test_provenance_says_where_numbers_come_from(ahead):
    environments, data, when = tables.provenance_tables(ahead)
    known = dict(row[:2] for row in environments.rows)
    assert (known["device name"], known["dtype"]) == ("a made-up processor", "float32")
    assert dict(row[:2] for row in data.rows)["vocab"] == f"{story.VOCAB:,}"
    assert "epochs" not in dict(row[:2] for row in data.rows)
    times = dict(when.rows)
    assert times["First event"] == "2026-01-02T03:04:05+00:00"
    assert number(times["CPU seconds, all runs"]) == 55 * len(ahead.records)
    assert tables.times([]) == [("Runs recorded", 0)]
    assert tables.distinct("Nothing", []).rows == (("no run has left a record yet",),)
    assert tables.command(ahead.plan).endswith("--scale mini")


def test_every_figure_of_a_section_has_its_texts_and_numbers(analysis):
    figures = [figure for part in sections.sections(analysis) for figure in part.figures]
    assert len({figure.name for figure in figures}) == len(figures) == 12
    for figure in figures:
        assert isinstance(figure, Figure)
        assert not re.search(
            r"[{}]", figure.subtitle + figure.description + figure.shows + figure.would_change
        )
        assert figure.title not in figure.shows
        assert figure.table.height > 3


def test_a_table_without_rows_is_not_shown():
    full, empty = (text_table("Level", ("D", "N"), rows) for rows in ([("1K", "2K")], []))
    assert sections.section("a", "A", full, empty).tables == (full,)


def test_laws_fitted_to_half_the_context_predict_the_rest(analysis):
    measured = analysis.contexts["transformer"]
    table = sections.half_errors(measured)
    assert len(table.rows) == len(measured.sizes)
    assert all(float(error) < 0.05 for error in column(table, "Error"))
