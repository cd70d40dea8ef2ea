"""The report of a fit in a real browser: nothing fetched, nothing forbidden, readable by all."""

from dataclasses import replace
from itertools import pairwise

import pytest
from pages import violations_by_night_and_by_day, wait_until, watched
from printed import check_breaks, printed

import isoloss
from isoloss import report


@pytest.fixture(scope="module")
def written(run_tables, tmp_path_factory):
    """Of the 245 runs of a published table: pictures, a part that is missing, warnings, all tables."""
    law = isoloss.fit("chinchilla", run_tables / "epoch-chinchilla" / "svg_extracted_data.csv")
    left_out = [{"row": 3, "reason": "diverged: loss 11", "by_outcome": True}]
    source = {**law.source, "path": "<b>runs</b>.csv", "excluded": left_out}
    return report.write_fit(replace(law, source=source), tmp_path_factory.mktemp("report") / "out")


@pytest.fixture(scope="module")
def opened(browser, written):
    return watched(browser, written.path.as_uri())


def test_nothing_is_fetched_or_logged(opened):
    page = opened.page
    assert opened.outside == opened.errors == []
    assert page.evaluate("document.querySelectorAll('script').length") == 0
    assert page.evaluate("document.querySelectorAll('b').length") == 0
    # Negative control: the page's own policy forbids what it must not do, and the watch sees it.
    page.evaluate("fetch('https://example.org/').catch(() => 0)")
    wait_until(page, lambda: opened.outside + opened.errors)


def test_the_page_of_hundreds_of_runs_is_of_a_megabyte_at_most(written):
    assert 300_000 < written.path.stat().st_size <= 1_000_000


def test_every_chart_is_drawn(opened, written):
    page = opened.page
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('figure .scroll svg')].map(svg =>
            [...svg.querySelectorAll(':is(.mark-line, .mark-area, .mark-rect) path, .mark-symbol > *')]
            .filter(mark => mark.getBoundingClientRect().width > 0).length)"""
    )
    assert len(drawn) == len(written.figures) > 12
    assert min(drawn) >= 3


def test_words_of_pictures_stay_inside_them(opened):
    page = opened.page
    outside = page.evaluate(
        """() => [...document.querySelectorAll('figure .scroll svg')].flatMap(svg => {
            const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(text => {
                const box = text.getBoundingClientRect();
                return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
            }).map(text => text.textContent);
        })"""
    )
    assert outside == []


def test_headings_are_in_order_and_the_contents_lead_to_them(opened):
    page = opened.page
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.evaluate(
        "[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.getAttribute('href')))"
    )


def test_it_fits_a_phone(browser, written):
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(written.path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.close()


def test_axe_finds_no_fault_of_accessibility_by_day_and_by_night(opened):
    assert violations_by_night_and_by_day(opened.page) == []


def test_printed_no_heading_ends_a_page_and_figures_stand_in_twos(browser, written):
    page = watched(browser, written.path.as_uri()).page
    layout = printed(page)
    assert len(layout.places["heading"]) > 15
    check_breaks(layout, len(written.figures))
    page.context.close()
