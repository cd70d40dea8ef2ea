import re
from xml.etree import ElementTree

import altair as alt
import polars as pl
import pytest
import story

from isoloss.analysis import by_params, by_position, contexts, gap_by_tokens, loops
from isoloss.figures import (
    context_laws,
    looped_grid,
    loss_by_params,
    loss_by_position,
    render,
    style,
)
from isoloss.figures import gap_by_tokens as gap_figure
from isoloss.figures.figure import Figure


@pytest.fixture(scope="module")
def figures(ahead):
    by_index, looped = contexts.measure_family(ahead), loops.measure(ahead)
    made = [
        loss_by_params.figure(by_params.measure(ahead)),
        gap_figure.figure(next(iter(gap_by_tokens.measure(ahead).pairs.values()))),
        loss_by_position.figure(next(iter(by_position.measure(ahead).pairs.values()))),
        context_laws.laws_figure(by_index),
        context_laws.steps_figure(by_index),
        context_laws.sizes_figure(by_index),
        looped_grid.exits_figure(looped),
        looped_grid.grid_figure(looped),
        looped_grid.grid_figure(looped, log=False),
        looped_grid.residual_figure(looped),
        looped_grid.grid_figure(looped, "expected"),
        looped_grid.grid_figure(looped, "last_exit"),
    ]
    return {figure.name: figure for figure in made}


def simple(text="plain"):
    rows = [{"x": 1, "y": 1, "c": text}, {"x": 2, "y": 2, "c": text}]
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(clip=True).encode(x="x:Q", y="y:Q", color="c:N")
    table = pl.DataFrame({"c": [text], "y": [1.5]})
    return Figure("simple", chart, text, text, "", "", table, subtitle=text)


def test_every_specification_is_valid_and_has_a_title_and_a_subtitle(figures):
    assert len(figures) == 12
    for figure in figures.values():
        style.configured(figure.chart).to_dict(validate=True)
        spec = figure.specification
        assert " ".join(spec["title"]["text"]).replace("\u00a0", " ") == figure.title
        assert "title" not in figure.chart.to_dict(validate=False)
        assert spec["title"]["subtitle"]
        assert not figure.table.is_empty()
        assert figure.would_change


def test_every_subtitle_names_d_seeds_or_what_was_fitted(figures):
    for figure in figures.values():
        subtitle = " ".join(figure.specification["title"]["subtitle"])
        assert re.search(r"seed|fitted", subtitle), figure.name


def test_svg_png_and_pdf_come_out_and_the_same_every_time():
    first, second = render.render(simple()), render.render(simple())
    assert first.svg == second.svg
    assert first.png == second.png
    assert first.png.startswith(b"\x89PNG")
    assert first.pdf.startswith(b"%PDF")
    ElementTree.fromstring(first.svg)  # noqa: S314 (our own)


def test_ids_are_unique_to_the_figure_and_all_references_resolve(figures):
    svg = render.render(figures["context-laws"]).svg
    ids = re.findall(r'\bid="([^"]+)"', svg)
    used = re.findall(r"url\(#([^)]+)\)", svg)
    assert used
    assert set(used) <= set(ids)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("context-laws-") for name in ids)


def test_hostile_text_stays_text_in_the_svg():
    svg = render.render(simple(story.HOSTILE)).svg
    tree = ElementTree.fromstring(svg)  # noqa: S314 (our own)
    tags = {element.tag.rsplit("}", 1)[-1] for element in tree.iter()}
    assert "script" not in tags
    assert any("<script>" in (element.text or "") for element in tree.iter())


def test_files_are_written_beside_each_other(tmp_path):
    figure = simple()
    paths = render.write(figure, render.render(figure), tmp_path)
    assert sorted(path.name for path in paths) == ["simple.csv", "simple.pdf", "simple.png", "simple.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "simple.csv",
        "simple.pdf",
        "simple.png",
        "simple.svg",
    ]


def test_csv_keeps_full_numbers_and_guards_formulas():
    table = pl.DataFrame({"name": ['=HYPERLINK("x")', 'say "hi"', "plain"], "loss": [1 / 3, -2.0, None]})
    text = render.csv(table).decode()
    assert '"\'=HYPERLINK(""x"")"' in text
    back = pl.read_csv(text.encode())
    assert back["loss"].to_list() == [1 / 3, -2.0, None]
    assert back["name"][1] == 'say "hi"'
