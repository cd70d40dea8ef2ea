"""The report in a real browser, opened from a file with every outside request refused."""

import os
import shutil
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import story
from playwright.sync_api import sync_playwright

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Opened:
    """A page and everything that went wrong with it."""

    page: object
    outside: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    dialogs: list = field(default_factory=list)


def chromium():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None and os.environ.get("CI") == "true":
        pytest.fail("no Chromium: set CHROMIUM to its path, or install it")
    if path is None:
        pytest.skip("no Chromium here: set CHROMIUM to its path")
    return path


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def written(told):
    return story.reported(told(story.LSTM_AHEAD).folder)


def open_page(browser, path, width=1280):
    page = browser.new_page(viewport={"width": width, "height": 900})
    opened = Opened(page)

    def only_files(route):
        if route.request.url.startswith(("file://", "data:")):
            route.continue_()
        else:
            opened.outside.append(route.request.url)
            route.abort()

    page.route("**/*", only_files)
    page.on(
        "console", lambda message: opened.errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("dialog", lambda dialog: (opened.dialogs.append(dialog.message), dialog.dismiss()))
    page.add_init_script(
        "window.violations = [];"
        "document.addEventListener('securitypolicyviolation',"
        " e => window.violations.push(e.violatedDirective))"
    )
    page.goto(path.as_uri())
    return opened


@pytest.fixture(scope="module")
def opened(browser, written):
    return open_page(browser, written.path)


def test_nothing_is_fetched_logged_asked_or_forbidden(opened):
    assert opened.outside == []
    assert opened.errors == []
    assert opened.dialogs == []
    assert opened.page.evaluate("window.violations") == []


def test_the_watch_sees_a_page_that_does_all_that(browser, tmp_path):
    """Negative control: a page that fetches, logs, asks and breaks its own policy."""
    bad = tmp_path / "bad.html"
    policy = "<meta http-equiv='Content-Security-Policy' content=\"img-src 'none'\">"
    script = "<script>console.error('x'); alert(1); fetch('https://example.org/').catch(() => 0)</script>"
    bad.write_text(f"<!doctype html>{policy}<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>{script}")
    found = open_page(browser, bad)
    found.page.wait_for_timeout(300)
    assert found.outside
    assert found.errors
    assert found.dialogs == ["1"]
    assert found.page.evaluate("window.violations") != []


def test_every_chart_is_drawn(opened, written):
    sizes = opened.page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].map(svg => {
            const marks = [...svg.querySelectorAll('.mark-line path, .mark-symbol path, .mark-area path')];
            const boxes = marks.map(mark => mark.getBoundingClientRect());
            return {width: svg.getBoundingClientRect().width,
                    drawn: boxes.filter(b => b.width * b.height > 0).length,
                    words: svg.querySelectorAll('text').length, name: svg.querySelector('title').textContent};
        })"""
    )
    assert len(sizes) == len(written.figures) == 11
    for size in sizes:
        assert size["width"] > 300, size
        assert size["drawn"] >= 4, size
        assert size["words"] > 5, size


def test_tables_are_there_with_rows(opened, told):
    tables = opened.page.evaluate(
        """() => [...document.querySelectorAll('table')].map(
            t => ({caption: t.caption.textContent, rows: t.tBodies[0].rows.length}))"""
    )
    assert all(table["rows"] > 0 for table in tables)
    (runs,) = [table for table in tables if "runs of the study" in table["caption"]]
    assert runs["rows"] == len(told(story.LSTM_AHEAD).plan["runs"])


def test_hostile_names_are_text(opened):
    assert opened.page.evaluate("document.querySelectorAll('script').length") == 0
    assert story.HOSTILE in opened.page.inner_text("h1")
    assert story.HOSTILE in opened.page.inner_text("#runs ~ .scroll")


def test_headings_are_in_order(opened):
    levels = opened.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_itself_does_not_scroll_sideways(browser, written, width):
    page = open_page(browser, written.path, width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Wide pictures scroll inside their own frame, which the keyboard reaches.
    frames = page.evaluate(
        "[...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth > s.clientWidth, s.tabIndex])"
    )
    assert all(index == 0 for _, index in frames)
    if width == 360:
        assert any(wide for wide, _ in frames)
    page.close()


def test_the_keyboard_reaches_the_skip_link_first_and_opens_a_table(browser, written):
    page = open_page(browser, written.path).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    page.focus("summary")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    page.close()


def test_the_page_prints(browser, written):
    page = open_page(browser, written.path).page
    assert page.pdf().startswith(b"%PDF")
    page.close()


def test_axe_finds_no_fault_of_accessibility(opened):
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(opened.page).response["violations"]
    assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found] == []


def test_axe_sees_a_page_with_faults(browser, tmp_path):
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    bad = tmp_path / "faults.html"
    bad.write_text(
        "<!doctype html><title>x</title><main><img src='data:,'><p style='color:#ccc'>pale</p></main>"
    )
    found = Axe().run(open_page(browser, bad).page).response["violations"]
    assert {"image-alt", "color-contrast"} <= {fault["id"] for fault in found}
