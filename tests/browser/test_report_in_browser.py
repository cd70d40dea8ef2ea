"""The report in a real browser, opened from a file with every outside request refused."""

import re
from itertools import pairwise

import pytest
import story
import telling
from pages import violations, violations_by_night_and_by_day, wait_until, watched
from playwright.sync_api import expect
from printed import check_breaks, printed


@pytest.fixture(scope="module")
def written(told):
    return telling.reported(told(story.LSTM_AHEAD).folder)


@pytest.fixture(scope="module")
def opened(browser, written):
    return watched(browser, written.path.as_uri())


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
    watch = watched(browser, bad.as_uri())
    wait_until(watch.page, lambda: watch.outside and watch.errors and watch.dialogs)
    assert watch.dialogs == ["1"]
    watch.page.wait_for_function("window.violations.length > 0")


def test_every_chart_is_drawn(opened, written):
    sizes = opened.page.evaluate(
        """() => [...document.querySelectorAll('figure .scroll svg')].map(svg => {
            const marks = [...svg.querySelectorAll(':is(.mark-line, .mark-area) path, .mark-symbol > *')];
            const boxes = marks.map(mark => mark.getBoundingClientRect());
            return {width: svg.getBoundingClientRect().width,
                    drawn: boxes.filter(b => b.width * b.height > 0).length,
                    words: svg.querySelectorAll('text').length, name: svg.querySelector('title').textContent};
        })"""
    )
    assert len(sizes) == len(written.figures) == 12
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
    page = watched(browser, written.path.as_uri(), viewport={"width": width, "height": 900}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Wide pictures scroll inside their own frame, which the keyboard reaches.
    frames = page.evaluate(
        "[...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth > s.clientWidth, s.tabIndex])"
    )
    assert all(index == 0 for _, index in frames)
    if width == 360:
        assert any(wide for wide, _ in frames)
    page.close()


def test_on_a_phone_the_names_of_curves_are_on_the_screen(browser, written):
    page = watched(browser, written.path.as_uri(), viewport={"width": 360, "height": 740}).page
    pictures = page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].filter(s => s.checkVisibility()).map(svg => {
            const words = [...svg.querySelectorAll('text')];
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return {edge: Math.max(...words.map(word => word.getBoundingClientRect().right)),
                    least: scale * Math.min(...words.map(w => parseFloat(w.getAttribute('font-size'))))};
        })"""
    )
    fitting = [one for one in pictures if one["edge"] <= 361]
    grids = [name for name in written.figures if name.startswith("looped-")]  # of many panels: they scroll
    assert len(fitting) >= len(pictures) - len(grids) > len(grids) - 1, pictures
    assert all(one["least"] > 9 for one in fitting)
    page.close()


def test_the_keyboard_reaches_the_skip_link_first_and_opens_a_table(browser, written):
    page = watched(browser, written.path.as_uri()).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#content$"))
    page.focus("summary")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    page.close()


def test_printed_no_heading_ends_a_page_and_figures_stand_in_twos(browser, written):
    page = watched(browser, written.path.as_uri()).page
    layout = printed(page)
    assert len(layout.places["heading"]) > 20
    check_breaks(layout, len(written.figures))
    assert layout.pages <= 15
    page.context.close()


def test_a_page_that_breaks_anywhere_is_seen(browser, written):
    """Negative control."""
    page = watched(browser, written.path.as_uri()).page
    anywhere = "* { break-after: auto !important; break-inside: auto !important; }"
    last = "h2 { break-after: page !important; }"
    places = printed(page, anywhere + last + "figure svg { max-height: none !important; }").places
    assert places["heading"] != places["text"]
    assert places["figure"] != places["end"]
    page.context.close()
    page = watched(browser, written.path.as_uri()).page
    places = printed(page, "figure { break-after: page !important; }").places
    assert len(set(places["figure"].values())) > len(written.figures) / 2 + 1
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_wide_table_shows_that_it_scrolls_and_the_keyboard_scrolls_it(browser, written, scheme):
    page = watched(browser, written.path.as_uri(), color_scheme=scheme).page
    region = page.get_by_role("region", name="runs of the study")
    assert region.evaluate("e => e.scrollWidth > e.clientWidth")
    region.evaluate("e => e.scrollIntoView()")
    edge = region.bounding_box()
    strip = {"x": edge["x"] + edge["width"] - 6, "y": edge["y"] + 2, "width": 6, "height": 8}

    def shade():
        """The strip beside the caption, where no word stands."""
        return page.screenshot(clip=strip)

    more = shade()
    region.focus()
    for _ in range(80):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "e => e.scrollLeft + e.clientWidth >= e.scrollWidth - 1", arg=region.element_handle()
    )
    region.evaluate("e => e.blur()")
    assert shade() != more
    page.context.close()


def test_axe_finds_no_fault_of_accessibility_by_day_and_by_night(opened):
    assert violations_by_night_and_by_day(opened.page) == []


def test_axe_sees_a_page_with_faults(browser, tmp_path):
    bad = tmp_path / "faults.html"
    bad.write_text(
        "<!doctype html><title>x</title><main><img src='data:,'><p style='color:#ccc'>pale</p></main>"
    )
    faults = violations(watched(browser, bad.as_uri()).page)
    assert {"image-alt", "color-contrast"} <= {fault[0] for fault in faults}
