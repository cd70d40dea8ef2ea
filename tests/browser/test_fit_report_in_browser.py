"""The report of a fit in a real browser: nothing fetched, nothing forbidden, readable by all."""

import os
import shutil
from itertools import pairwise

import fitted
import pytest
from playwright.sync_api import sync_playwright

from isoloss import report
from isoloss.laws import fit

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None and os.environ.get("CI") == "true":
        pytest.fail("no Chromium: set CHROMIUM to its path, or install it")
    if path is None:
        pytest.skip("no Chromium here: set CHROMIUM to its path")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


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
    """The page, and what it asked for or complained of."""
    page, wrong = browser.new_page(viewport={"width": 1280, "height": 900}), []

    def only_files(route):
        if route.request.url.startswith(("file://", "data:")):
            route.continue_()
        else:
            wrong.append(route.request.url)
            route.abort()

    page.route("**/*", only_files)
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(written.path.as_uri())
    yield page, wrong
    page.close()


def test_nothing_is_fetched_or_logged(opened):
    page, wrong = opened
    assert wrong == []
    assert page.evaluate("document.querySelectorAll('script').length") == 0
    assert page.evaluate("document.querySelectorAll('b').length") == 0
    # Negative control: the page's own policy forbids what it must not do, and the watch sees it.
    page.evaluate("fetch('https://example.org/').catch(() => 0)")
    page.wait_for_timeout(200)
    assert wrong
    wrong.clear()


def test_every_chart_is_drawn(opened, written):
    page, _ = opened
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].map(svg =>
            [...svg.querySelectorAll('.mark-line path, .mark-symbol path, .mark-area path, .mark-rect path')]
            .filter(mark => mark.getBoundingClientRect().width > 0).length)"""
    )
    assert len(drawn) == len(written.figures) == 6
    assert min(drawn) >= 4


def test_words_of_pictures_stay_inside_them(opened):
    page, _ = opened
    outside = page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
            const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(text => {
                const box = text.getBoundingClientRect();
                return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
            }).map(text => text.textContent);
        })"""
    )
    assert outside == []


def test_headings_are_in_order_and_the_contents_lead_to_them(opened):
    page, _ = opened
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.evaluate(
        "[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.getAttribute('href')))"
    )


def test_it_fits_a_phone_and_prints(browser, written):
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(written.path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.pdf().startswith(b"%PDF")
    page.close()


def test_axe_finds_no_fault_of_accessibility(opened):
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(opened[0]).response["violations"]
    assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found] == []
