"""The explorer in a real browser: one file, nothing fetched, its policy kept, chart and table of one mind."""

import pytest
import story
from pages import violations, watched


@pytest.fixture(scope="module")
def opened(browser, told):
    written = story.reported(told(story.LSTM_AHEAD).folder)
    found = watched(browser, written.path.with_name("interactive.html").as_uri())
    found.page.wait_for_function("window.ready && document.querySelector('#chart svg')")
    return found


def test_nothing_is_fetched_logged_or_forbidden(opened):
    assert opened.outside == []
    assert opened.errors == []
    assert opened.page.evaluate("window.violations") == []


def test_axe_finds_nothing_serious(opened):
    assert violations(opened.page) == []


def points(page):
    """Marks that are drawn, each named by Vega with its values."""
    return page.locator("#chart .mark-symbol.role-mark path").count()


def rows(page):
    return page.locator("#table tbody tr").count()


def test_chart_and_table_show_the_same_rows_before_and_after_a_filter(opened):
    page = opened.page
    assert points(page) == rows(page) > 10
    before = rows(page)
    page.fill("#filter", "lstm s0")
    page.wait_for_function(
        "n => document.querySelectorAll('#chart .mark-symbol.role-mark path').length < n", arg=before
    )
    assert points(page) == rows(page) > 0
    assert all("lstm" in text.lower() for text in page.locator("#table tbody tr").all_inner_texts())
    page.fill("#filter", "")


def test_d_leaves_what_was_trained_no_longer(opened):
    page = opened.page
    page.locator("#most").fill("0")
    page.check("#last")
    tokens = page.locator("#table tbody tr td:nth-child(3)").all_inner_texts()
    assert set(tokens) == {page.locator("#most-now").inner_text()}
    page.uncheck("#last")
    page.locator("#most").fill(page.locator("#most").get_attribute("max"))


def test_the_table_sorts_by_keyboard_and_says_so(opened):
    page = opened.page
    head = page.locator("th[data-column=params]")
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    losses = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr td:last-child')].map(c => c.textContent)"
    )
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    turned = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr td:last-child')].map(c => c.textContent)"
    )
    assert set(turned) == set(losses)
    assert turned != losses


def test_what_stands_across_is_chosen_and_a_run_of_the_table_is_pointed_at(opened):
    page = opened.page
    page.select_option("#across", "flops_6nd")
    page.wait_for_function("document.querySelector('#chart').innerText.includes('6 N D FLOPs')")
    page.locator("#table tbody tr").first.focus()
    page.wait_for_function(
        "[...document.querySelectorAll('#chart .mark-symbol.role-mark path')]"
        ".some(point => point.getAttribute('opacity') < 0.2)"
    )


def test_a_page_without_its_hash_does_not_run(browser, told, tmp_path):
    """Negative control: a script that was changed after the page was made is refused by its own policy."""
    written = story.reported(told(story.LSTM_AHEAD).folder)
    html = written.path.with_name("interactive.html").read_text("utf-8")
    bad = tmp_path / "bad.html"
    bad.write_text(html.replace("heads();\nfor", "document.title = 'changed';\nheads();\nfor"), "utf-8")
    found = watched(browser, bad.as_uri())
    found.page.wait_for_timeout(300)
    assert found.page.title() != "changed"
    assert found.page.evaluate("window.ready") is None
