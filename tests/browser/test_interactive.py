"""The explorer in a real browser: one file, nothing fetched, its policy kept, chart and table of one mind."""

from math import log

import pytest
import story
from pages import violations_by_night_and_by_day, watched

from isoloss.report import interactive

MARKS = "#chart .mark-symbol.role-mark path"
PLACES = f"""() => [...document.querySelectorAll('{MARKS}')].map(mark => {{
    const item = mark.__data__, box = mark.getBoundingClientRect();
    const at = [box.x + box.width / 2, box.y + box.height / 2];
    return {{...item.datum, x: item.x, y: item.y, opacity: item.opacity, at}};
}})"""


@pytest.fixture(scope="module")
def file(told, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "interactive.html"
    path.write_text(interactive.page(told(story.LSTM_AHEAD)), "utf-8")
    return path


@pytest.fixture(scope="module")
def opened(browser, file):
    watch = watched(browser, file.as_uri())
    watch.page.evaluate("window.ready")
    assert watch.page.locator("#last").is_checked()
    before = len(marks(watch.page))
    watch.page.uncheck("#last")
    assert len(marks(watch.page)) > before > 3
    return watch


@pytest.fixture
def page(opened):
    """The whole picture, the pointer elsewhere."""
    opened.page.mouse.move(1, 1)
    opened.page.evaluate("document.activeElement.blur()")
    opened.page.click("#whole")
    return opened.page


def marks(page):
    """Each mark's values, its place in the chart and on the page, once it is drawn."""
    page.evaluate("window.ready")
    return page.evaluate(PLACES)


def left(page, value):
    """That value of the marks that are not faded."""
    return {mark[value] for mark in marks(page) if mark["opacity"] > 0.2}


def rows(page):
    return page.locator("#table tbody tr").count()


def test_nothing_is_fetched_logged_or_forbidden(opened):
    assert opened.outside == []
    assert opened.errors == []
    assert opened.page.evaluate("window.violations") == []


def test_axe_finds_nothing_serious_by_day_and_by_night(opened):
    assert violations_by_night_and_by_day(opened.page) == []


def test_a_pointer_on_a_mark_is_told_its_run_and_finds_its_row(page):
    one = marks(page)[0]
    page.mouse.move(*one["at"])
    page.wait_for_selector("#vg-tooltip-element.visible")
    tip = dict(row.locator("td").all_inner_texts() for row in page.locator("#vg-tooltip-element tr").all())
    named = [(one["run_id"], f"{one['tokens']:,}") for one in marks(page)]
    mark = marks(page)[named.index((tip["run"], tip["D"]))]
    assert tip["model"] == mark["curve"]
    assert (tip["N"], tip["seed"]) == (f"{mark['params']:,}", str(mark["seed"]))
    for name, value in {"loss": "loss", "from (two s.e.)": "low", "to": "high"}.items():
        assert tip[name] == f"{mark[value]:.4f}"
    row = page.locator("tr.pointed")
    assert row.locator("td").last.inner_text() == tip["run"]
    assert row.locator("td").nth(5).inner_text() == tip["loss"]
    page.mouse.move(1, 1)
    page.wait_for_function("!document.querySelector('tr.pointed')")


def test_a_mark_that_is_clicked_takes_the_focus_to_its_row_and_back_to_itself(page):
    page.mouse.click(*marks(page)[3]["at"])
    run = page.evaluate("document.activeElement.lastElementChild.textContent")
    assert left(page, "run_id") == {run}
    inside = """() => { const row = document.activeElement.getBoundingClientRect(),
                           box = document.querySelector('.scroll').getBoundingClientRect();
                       return row.top >= box.top && row.bottom <= box.bottom; }"""
    assert page.evaluate(inside)


def test_the_legend_fades_by_click_and_by_keyboard_and_says_so(page):
    first, second = page.locator(".legend button").all()[:2]
    first.click()
    name = first.inner_text().strip()
    assert left(page, "curve") == {name}
    first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert second.get_attribute("aria-pressed") == "true"
    assert left(page, "curve") == {name, second.inner_text().strip()}
    for button in (first, second):
        button.press(" ")
    assert left(page, "curve") == {mark["curve"] for mark in marks(page)}


def test_the_legend_has_the_look_of_its_marks(page):
    drawn = {mark["curve"] for mark in marks(page)}
    names = {button.inner_text().strip() for button in page.locator(".legend button").all()}
    assert names == drawn
    assert page.locator(".legend path").count() == len(drawn) > 5
    colours = page.evaluate(
        f"""() => Object.fromEntries([...document.querySelectorAll('{MARKS}')].map(
            mark => [mark.__data__.datum.curve, mark.getAttribute('fill')]))"""
    )
    for button in page.locator(".legend button").all():
        assert button.locator("path").get_attribute("fill") == colours[button.inner_text().strip()]


def test_the_wheel_zooms_and_the_whole_picture_comes_back(page):
    before = marks(page)
    middle = page.locator("#chart svg").bounding_box()
    page.mouse.move(middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2)
    page.mouse.wheel(0, -400)
    page.wait_for_function(f"Math.abs(document.querySelector('{MARKS}').__data__.x - {before[0]['x']}) > 5")
    spread = [max(one["x"] for one in some) - min(one["x"] for one in some) for some in (before, marks(page))]
    assert spread[1] > 1.2 * spread[0]
    page.click("#whole")
    assert [one["x"] for one in marks(page)] == pytest.approx([one["x"] for one in before])
    assert [one["y"] for one in marks(page)] == pytest.approx([one["y"] for one in before])


@pytest.mark.parametrize(("box", "value", "axis"), [("#log-x", "params", "x"), ("#log-y", "loss", "y")])
def test_an_axis_is_linear_or_logarithmic(page, box, value, axis):
    def bent(logarithmic):
        """By how much places leave the line through the ends, as a share of the axis."""
        at = sorted((log(one[value]) if logarithmic else one[value], one[axis]) for one in marks(page))
        (low, first), *_, (high, last) = at
        return max(abs((x - first) / (last - first) - (v - low) / (high - low)) for v, x in at)

    checked = page.is_checked(box)
    assert bent(checked) < 1e-6 < 0.001 < bent(not checked)
    page.click(box)
    assert bent(not checked) < 1e-6 < 0.001 < bent(checked)
    page.click(box)


def test_chart_and_table_show_the_same_rows_before_and_after_a_filter(page):
    before = rows(page)
    assert len(marks(page)) == before > 10
    page.fill("#filter", "lstm s0")
    assert len(marks(page)) < before
    assert len(marks(page)) == rows(page) > 0
    assert all("lstm" in text.lower() for text in page.locator("#table tbody tr").all_inner_texts())
    page.fill("#filter", "")
    assert len(marks(page)) == rows(page) == before


def test_d_leaves_what_was_trained_no_longer(page):
    page.locator("#most").fill("0")
    page.check("#last")
    tokens = page.locator("#table tbody tr td:nth-child(3)").all_inner_texts()
    assert set(tokens) == {page.locator("#most-now").inner_text()}
    page.uncheck("#last")
    page.locator("#most").fill(page.locator("#most").get_attribute("max"))


def test_the_table_sorts_by_keyboard_and_says_so(page):
    head = page.locator("th[data-column=params]")
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    losses = page.locator("#table tbody tr td:last-child").all_inner_texts()
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    turned = page.locator("#table tbody tr td:last-child").all_inner_texts()
    assert set(turned) == set(losses)
    assert turned != losses


def test_rows_are_one_stop_of_the_tab_key_and_arrows_go_through_them(page):
    assert page.locator("#table tr[tabindex='0']").count() == 1
    page.locator("#table tr[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.rowIndex") == 2
    run = page.evaluate("document.activeElement.lastElementChild.textContent")
    assert left(page, "run_id") == {run}
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.rowIndex") == 1


def test_what_stands_across_is_chosen(page):
    page.select_option("#across", "flops_6nd")
    page.wait_for_function("document.querySelector('#chart').innerText.includes('6 N D FLOPs')")
    page.select_option("#across", "params")
    page.wait_for_function("document.querySelector('#chart').innerText.includes('Parameters N')")


def test_a_phone_has_the_whole_chart_and_its_legend_on_the_screen(browser, file):
    page = watched(browser, file.as_uri(), viewport={"width": 360, "height": 740}).page
    page.evaluate("window.ready")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    parts = "[...document.querySelectorAll('#chart svg, .legend button')]"
    edges = page.evaluate(f"{parts}.map(part => part.getBoundingClientRect().right)")
    assert max(edges) <= 360
    page.context.close()


def test_a_page_without_its_hash_does_not_run(browser, file, tmp_path):
    """Negative control: a script that was changed after the page was made is refused by its own policy."""
    bad = tmp_path / "bad.html"
    html = file.read_text("utf-8")
    bad.write_text(html.replace("heads();\nfor", "document.title = 'changed';\nheads();\nfor"), "utf-8")
    watch = watched(browser, bad.as_uri())
    watch.page.wait_for_function("window.violations.length > 0")
    assert watch.page.title() != "changed"
    assert watch.page.evaluate("window.ready") is None
