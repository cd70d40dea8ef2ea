"""The report of a fit in a real browser: nothing fetched, nothing forbidden, readable by all."""

from itertools import pairwise

import fitted
import pytest
from pages import violations, watched

from isoloss import report
from isoloss.laws import fit


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report with each kind of part: pictures, refusals, warnings, all tables."""
    x, loss = fitted.runs_of("power-floor")
    source = {
        "path": "<b>runs</b>.csv",
        "columns": {"params": "N"},
        "excluded": [{"row": 3, "reason": "diverged: loss 11", "by_outcome": True}],
        "findings": [],
    }
    found = fit("power-floor", x, loss, objective="squared-log", source=source)
    return report.write_fit(found, tmp_path_factory.mktemp("report") / "out")


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
    page.wait_for_timeout(200)
    assert opened.outside + opened.errors


def test_every_chart_is_drawn(opened, written):
    page = opened.page
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('figure .scroll svg')].map(svg =>
            [...svg.querySelectorAll(':is(.mark-line, .mark-area, .mark-rect) path, .mark-symbol > *')]
            .filter(mark => mark.getBoundingClientRect().width > 0).length)"""
    )
    assert len(drawn) == len(written.figures) == 8
    assert min(drawn) >= 4


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


def test_axe_finds_no_fault_of_accessibility(opened):
    assert violations(opened.page) == []
