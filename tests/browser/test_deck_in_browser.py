"""The deck in a real browser: live from its server with quick panels, and as one file that was built.

Every request that does not go to the deck itself is refused and counted.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import fake_panels
import pytest
from fake_panels import PANELS, SLIDES
from playwright.sync_api import expect, sync_playwright

from isoloss.teach import result
from isoloss.teach.deck import page as deck_page

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
PATIENCE = 60_000
NUMBERS = range(1, 14)


@dataclass
class Opened:
    """A page and everything that went wrong with it."""

    page: object
    address: str
    outside: list = field(default_factory=list)
    errors: list = field(default_factory=list)

    def slide(self, number):
        self.page.evaluate("number => { location.hash = '#/' + number; }", number)
        expect(self.page.locator(".counter")).to_have_text(f"{number} / 13")

    def panel(self, name):
        return self.page.locator(f".panel[data-panel={name}]")

    def set(self, name, **values):
        panel = self.panel(name)
        panel.locator(".settings").evaluate("details => { details.open = true; }")
        for key, value in values.items():
            control = panel.locator(f"[name={key}]")
            if isinstance(value, bool):
                control.set_checked(value)
            elif control.evaluate("control => control.tagName") == "SELECT":
                control.select_option(value)
            else:
                control.fill(str(value))

    def focused(self):
        return self.page.evaluate("document.activeElement.textContent")


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
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    result.write(fake_panels.recorded(), folder)
    return folder


@pytest.fixture(scope="module")
def served(recorded, browser):
    """The address of a live deck with quick panels."""
    server = subprocess.Popen(
        [sys.executable, fake_panels.__file__, "serve", str(recorded)], stderr=subprocess.PIPE, text=True
    )
    yield server.stderr.readline().split()[-1]
    server.terminate()
    server.wait(30)
    server.stderr.close()


@pytest.fixture(scope="module")
def built(recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("built") / "deck.html"
    path.write_text(deck_page.build(recorded, panels=PANELS, sources=SLIDES), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The deck that ships, with its own words and recordings."""
    path = tmp_path_factory.mktemp("shipped") / "deck.html"
    path.write_text(deck_page.build(), "utf-8")
    return path.as_uri()


def open_page(browser, address, hash="", **context):
    context = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"} | context
    page = browser.new_context(**context).new_page()
    opened = Opened(page, address)
    allowed = address.split("/?")[0]

    def only_ours(route):
        if route.request.url.startswith((allowed, "data:", "blob:")):
            route.continue_()
        else:
            opened.outside.append(route.request.url)
            route.abort()

    page.route("**/*", only_ours)
    page.on("console", lambda said: opened.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.goto(address + hash)
    if context.get("java_script_enabled", True):
        page.wait_for_selector("html.ready")
    return opened


@pytest.fixture
def opened(browser, request):
    """A function that opens a page and closes it; nothing outside was asked for, nothing went wrong."""
    pages = []

    def open_one(name, hash="", **context):
        one = open_page(browser, request.getfixturevalue(name), hash, **context)
        pages.append(one)
        return one

    yield open_one
    for one in pages:
        one.page.context.close()
    assert [one.outside for one in pages] == [[]] * len(pages)
    assert [one.errors for one in pages] == [[]] * len(pages)


@pytest.fixture(params=["served", "built"])
def either(request):
    return request.param


# --- walking ---------------------------------------------------------------------------------------------


def test_keys_walk_all_slides_and_back_with_focus_title_and_address(opened, either):
    deck = opened(either)
    press = deck.page.keyboard.press

    def stands_at(number):
        expect(deck.page.locator(".counter")).to_have_text(f"{number} / 13")
        assert deck.page.url.endswith(f"#/{number}") or number == 1
        assert deck.focused() == f"Slide {number}: words & more"
        assert deck.page.title() == f"Slide {number}: words & more · {number} / 13 · The Great Shift"
        seen = deck.page.locator(".slides > section:visible")
        expect(seen).to_have_count(1)
        hidden = deck.page.evaluate(
            "[...document.querySelectorAll('.slides > section')].filter(s => s.hidden && s.inert).length"
        )
        assert hidden == 12

    stands_at(1)
    for number in range(2, 14):
        press(["ArrowRight", "Space", "PageDown"][number % 3])
        stands_at(number)
    press("ArrowRight")
    stands_at(13)
    for number in range(12, 0, -1):
        press(["ArrowLeft", "PageUp"][number % 2])
        stands_at(number)
    press("End")
    stands_at(13)
    press("Home")
    stands_at(1)


def test_an_address_leads_to_its_slide_and_back_goes_back(opened, either):
    deck = opened(either, "#/7")
    assert deck.focused() == "Slide 7: words & more"
    deck.page.keyboard.press("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("8 / 13")
    deck.page.go_back()
    expect(deck.page.locator(".counter")).to_have_text("7 / 13")
    assert deck.focused() == "Slide 7: words & more"


def test_the_overview_lists_all_slides_and_goes_to_one(opened, either):
    deck = opened(either, "#/3")
    deck.page.keyboard.press("o")
    overview = deck.page.locator("#overview")
    expect(overview).to_be_visible()
    expect(overview.locator("a")).to_have_count(13)
    expect(overview.locator("[aria-current]")).to_have_text("Slide 3: words & more")
    deck.page.keyboard.press("ArrowRight")  # keys act on the dialog, not on the slides behind it
    expect(deck.page.locator(".counter")).to_have_text("3 / 13")
    deck.page.keyboard.press("Escape")
    expect(overview).to_be_hidden()
    deck.page.click("[data-do=overview]")
    overview.locator("a").nth(10).click()
    expect(overview).to_be_hidden()
    expect(deck.page.locator(".counter")).to_have_text("11 / 13")
    assert deck.focused() == "Slide 11: words & more"


def test_g_with_a_number_goes_there(opened):
    deck = opened("built")
    for key in ("g", "1", "2", "Enter"):
        deck.page.keyboard.press(key)
    expect(deck.page.locator(".counter")).to_have_text("12 / 13")
    deck.page.keyboard.press("g")
    deck.page.keyboard.press("Escape")
    expect(deck.page.locator(".counter")).to_have_text("12 / 13")


def test_notes_help_and_tables_open_and_close(opened):
    deck = opened("built", "#/3")
    note = deck.page.locator("section.present .notes")
    for key, there in (("p", note), ("?", deck.page.locator("#help"))):
        expect(there).to_be_hidden()
        deck.page.keyboard.press(key)
        expect(there).to_be_visible()
        deck.page.keyboard.press("Escape")
        expect(there).to_be_hidden()
    table = deck.panel("quick").locator("table")
    deck.page.keyboard.press("t")
    expect(table).to_be_visible()
    assert table.locator("thead th").all_inner_texts() == ["x", "value", "low", "high", "n"]
    deck.page.keyboard.press("t")
    expect(table).to_be_hidden()


def test_no_key_acts_in_a_field_or_with_a_modifier(opened):
    deck = opened("served", "#/3")
    deck.set("quick", prompt="")
    deck.panel("quick").locator("[name=prompt]").press_sequentially("go x p?")
    deck.page.keyboard.press("ArrowLeft")
    deck.page.keyboard.press("Home")
    assert deck.panel("quick").locator("[name=prompt]").input_value() == "go x p?"
    expect(deck.page.locator(".counter")).to_have_text("3 / 13")
    deck.page.focus("section.present h2")
    for key in ("Control+ArrowRight", "Alt+End", "Meta+o", "Control+p"):
        deck.page.evaluate(
            """key => {
                const [modifier, name] = key.split("+");
                const pressed = {key: name, bubbles: true, cancelable: true, ctrlKey: modifier === "Control",
                    altKey: modifier === "Alt", metaKey: modifier === "Meta"};
                document.activeElement.dispatchEvent(new KeyboardEvent("keydown", pressed));
            }""",
            key,
        )
    expect(deck.page.locator(".counter")).to_have_text("3 / 13")
    expect(deck.page.locator("#overview")).to_be_hidden()
    expect(deck.panel("quick")).not_to_have_attribute("data-state", "running")


def test_letters_can_be_switched_off_and_stay_off(opened):
    deck = opened("built")
    deck.page.keyboard.press("?")
    deck.page.uncheck("#letters")
    deck.page.keyboard.press("Escape")
    for _ in range(2):
        deck.page.keyboard.press("o")
        expect(deck.page.locator("#overview")).to_be_hidden()
        deck.page.keyboard.press("ArrowRight")  # no letter: it still acts
        expect(deck.page.locator(".counter")).to_have_text("2 / 13")
        deck.page.goto(deck.address + "?again")
        deck.page.wait_for_selector("html.ready")


def test_tab_never_reaches_another_slide(opened):
    deck = opened("served", "#/4")
    reached = set()
    for _ in range(40):
        deck.page.keyboard.press("Tab")
        reached.add(
            deck.page.evaluate(
                "(document.activeElement.closest('.slides > section, .bar, body') || {}).className"
            )
        )
    assert reached <= {"present", "bar needs-script", "reveal-viewport"}  # the last is the body
    assert {"present", "bar needs-script"} <= reached


def test_a_swipe_turns_the_page(opened):
    deck = opened("built", has_touch=True, viewport={"width": 360, "height": 640})
    swipe = """([from, to, down]) => {
        const place = document.querySelector("section.present h2");
        const touch = (x, y) => new Touch({identifier: 1, target: place, clientX: x, clientY: y});
        const fire = (name, touches, changed) => place.dispatchEvent(
            new TouchEvent(name, {bubbles: true, touches: touches, changedTouches: changed}));
        fire("touchstart", [touch(from, 100)], [touch(from, 100)]);
        fire("touchend", [], [touch(to, 100 + down)]);
    }"""
    deck.page.evaluate(swipe, [300, 80, 10])
    expect(deck.page.locator(".counter")).to_have_text("2 / 13")
    deck.page.evaluate(swipe, [300, 80, 400])  # scrolling, not turning
    expect(deck.page.locator(".counter")).to_have_text("2 / 13")
    deck.page.evaluate(swipe, [80, 300, 10])
    expect(deck.page.locator(".counter")).to_have_text("1 / 13")


# --- live panels -----------------------------------------------------------------------------------------


def test_a_panel_runs_streams_and_finishes_and_other_slides_quote_it(opened):
    deck = opened("served", "#/3")
    panel = deck.panel("quick")
    expect(panel.locator(".told .badge").first).to_have_text("RECORDED")
    deck.set("quick", prompt=fake_panels.HOSTILE[:40], seconds=4, first_seed=5)
    deck.page.evaluate(
        "window.said = []; const live = document.querySelector('#live');"
        "new MutationObserver(() => window.said.push(live.textContent)).observe(live, {childList: true});"
    )
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("r")
    expect(panel.locator(".state")).to_contain_text("% done: step")
    expect(panel.locator(".output figcaption")).to_contain_text("So far")
    expect(panel.locator(".run")).to_be_disabled()
    # A second page, and a reload, see the same job.
    other = opened("served", "#/3")
    expect(other.panel("quick").locator(".state")).to_contain_text("% done: step")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    expect(panel.locator(".output .told")).to_contain_text("From <script>alert(1)</script>")
    before = panel.locator(".before")  # what was recorded stays, folded, for comparison
    expect(before.locator("summary").first).to_have_text("Recorded before, for comparison")
    expect(before.locator(".badge").first).to_be_hidden()
    expect(other.panel("quick").locator(".told .badge").first).to_have_text("LIVE")
    expect(panel.locator(".cancel")).to_be_disabled()
    assert len(deck.page.evaluate("window.said")) <= 3  # at most one in five seconds
    deck.page.reload()
    deck.page.wait_for_selector("html.ready")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    deck.slide(13)
    quoted = deck.page.locator("[data-verdict=quick]")
    expect(quoted.locator(".badge")).to_have_text("LIVE")
    expect(quoted).to_contain_text("n = 2000 unseen strings · 3 seeds · Wilson interval")


def test_the_next_seeds_follow_the_last(opened):
    deck = opened("served", "#/4")
    deck.panel("second").locator(".run").focus()  # with the focus in a panel, keys act on that one
    deck.page.keyboard.press("s")
    expect(deck.panel("second").locator(".told .badge").first).to_have_text("LIVE")
    expect(deck.panel("second").locator("[name=first_seed]")).to_have_value("3")
    expect(deck.panel("second").locator(".numbers")).to_contain_text("first seed 3")
    expect(deck.panel("timed").locator(".output")).to_contain_text("Not measured yet")


def test_a_panel_can_be_cancelled(opened):
    deck = opened("served", "#/3")
    deck.set("quick", seconds=500)
    deck.panel("quick").locator(".run").click()
    expect(deck.panel("quick").locator(".state")).to_contain_text("% done")
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("x")
    expect(deck.panel("quick").locator(".state")).to_have_text("cancelled")
    expect(deck.panel("quick").locator(".run")).to_be_enabled()


def test_a_dead_worker_shows_an_error_and_the_deck_lives_on(opened):
    deck = opened("served", "#/3")
    problem = deck.panel("quick").locator(".problem")
    deck.set("quick", end="die")
    deck.panel("quick").locator(".run").click()
    expect(problem).to_contain_text("out of memory, says the kernel")
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("4 / 13")
    deck.page.keyboard.press("ArrowLeft")
    deck.set("quick", end="well")
    deck.panel("quick").locator(".run").click()
    expect(problem).to_be_hidden()
    expect(deck.panel("quick").locator(".state")).to_have_text("done")


def test_a_job_over_its_cap_says_so(opened):
    deck = opened("served", "#/5")
    deck.set("capped", seconds=500)
    deck.panel("capped").locator(".run").click()
    expect(deck.panel("capped").locator(".problem")).to_contain_text("more than its cap of 1 seconds")


def test_settings_out_of_bounds_are_not_sent_and_those_only_the_server_sees_are_told(opened):
    deck = opened("served", "#/3")
    deck.set("quick", points=51)
    deck.panel("quick").locator(".run").click()
    assert deck.page.evaluate("document.activeElement.name") == "points"
    expect(deck.panel("quick").locator(".problem")).to_be_hidden()
    deck.set("quick", points=4, rates="0.1, x")
    deck.panel("quick").locator(".run").click()
    expect(deck.panel("quick").locator(".problem")).to_contain_text("rates")
    assert deck.errors.pop().startswith("Failed to load resource")  # the browser's own line about status 422


def test_run_all_runs_and_results_are_exported(opened):
    deck = opened("served", "#/13")
    deck.page.click("[data-do=run-all]")
    # The capped panel's second goes by while its worker starts: it need not finish.
    for name in ("quick", "second", "timed", "taste"):
        expect(deck.panel(name).locator(".state")).to_have_text("done")
    with deck.page.expect_download() as download:
        deck.page.click("[data-do=export]")
    made = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert download.value.suggested_filename == "results.json"
    assert {"quick", "second", "timed", "taste"} <= {one["panel"] for one in made["results"]}


def test_a_vote_comes_before_the_reveal(opened):
    deck = opened("served", "#/12")
    taste = deck.panel("taste")
    taste.locator(".run").click()
    expect(taste).to_have_attribute("data-state", "running")
    expect(taste).to_have_attribute("data-state", "done")
    told = taste.locator(".told")
    expect(taste.locator("[data-vote]")).to_have_count(2)
    expect(told).to_be_hidden()
    taste.locator("[data-vote=b]").click()
    expect(told).to_be_visible()
    expect(taste.locator("[data-vote=b]")).to_have_attribute("aria-pressed", "true")
    expect(deck.page.locator("#live")).to_contain_text("Your vote: Text 2")


def test_what_is_computed_in_the_page_is_right(opened):
    deck = opened("built", "#/2")
    valves = deck.page.locator("[data-interactive=valves]")
    expect(valves).to_contain_text("= 1.0 letter.")
    valves.get_by_label("Forget gate f").fill("0.95")
    expect(valves).to_contain_text("ln ½ / ln f = 13.5 letters")
    valves.get_by_text("Next letter").click()
    valves.get_by_text("Next letter").click()
    assert valves.locator("tbody tr").count() == 3
    expect(valves.locator("tbody tr").nth(2)).to_contain_text("90.3 %")  # 0.95 ** 2
    deck.slide(7)
    dictionary = deck.page.locator("[data-interactive=dictionary]")
    for weight in ("76.8 %", "18.7 %", "4.5 %"):  # softmax of (2, 0, -2) / sqrt 2
        expect(dictionary).to_contain_text(weight)
    dictionary.get_by_label("Temperature").fill("0.1")
    expect(dictionary).to_contain_text("100.0 %")
    dictionary.get_by_label("Query, number 1").fill("0")
    expect(dictionary.locator("tbody tr").nth(0)).to_contain_text("33.3 %")


# --- everybody -------------------------------------------------------------------------------------------


def axe(page):
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    # A picture is one image to a screen reader; its hundreds of parts would take axe most of the time.
    found = Axe().run(page, context={"exclude": [["figure svg > g"]]}).response["violations"]
    return [
        (fault["id"], fault["nodes"][0]["html"][:200])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("name", "numbers"), [("served", (2, 3, 4, 12, 13)), ("shipped", NUMBERS)])
def test_axe_finds_no_serious_fault(opened, name, numbers):
    deck = opened(name)
    faults = {}
    for number in numbers:
        deck.slide(number)
        # Fields and sentences that are folded away; the tables are alike, and slow to look at.
        folded = "document.querySelectorAll('.settings, .more').forEach(part => { part.open = true; })"
        deck.page.evaluate(folded)
        faults |= {number: found} if (found := axe(deck.page)) else {}
    assert faults == {}


def test_axe_finds_no_fault_in_a_dialog(opened):
    deck = opened("served")
    for name in ("overview", "help"):
        deck.page.click(f"[data-do={name}]")
        assert axe(deck.page) == []
        deck.page.keyboard.press("Escape")


def test_axe_sees_what_reveal_does_to_a_page(browser, built, tmp_path):
    """Negative control: without our mends there are faults, and axe sees a pale text."""
    deck = open_page(browser, built)
    deck.page.evaluate(
        "document.querySelector('section.present p').style.color = '#ccc';"
        "document.querySelector('section.present h2').insertAdjacentHTML('afterend', '<img src=\"data:,\">')"
    )
    assert {"image-alt", "color-contrast"} <= {fault[0] for fault in axe(deck.page)}
    deck.page.context.close()


def test_no_application_role_and_no_region_that_reads_slides_aloud(opened, either):
    deck = opened(either, "#/3")
    assert deck.page.locator("[role=application]").count() == 0
    live = deck.page.evaluate(
        "[...document.querySelectorAll('[aria-live]')].map(part => [part.id, part.getAttribute('aria-live')])"
    )
    assert live == [["live", "polite"]]


@pytest.mark.parametrize("width", [320, 360, 640, 1280])
@pytest.mark.parametrize("name", ["served", "shipped"])
def test_no_slide_scrolls_sideways(opened, name, width):
    """640 is 1280 at 200 % zoom, 320 the narrowest screen that WCAG asks for."""
    deck = opened(name, viewport={"width": width, "height": 640})
    wide = {}
    for number in NUMBERS:
        deck.slide(number)
        deck.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        if (found := deck.page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[number] = found
    assert wide == {}


def test_without_a_script_it_is_one_page_with_every_slide(opened):
    deck = opened("shipped", java_script_enabled=False)
    sections = deck.page.locator(".slides > section")
    expect(sections).to_have_count(13)
    for number in NUMBERS:
        expect(sections.nth(number - 1)).to_be_visible()
        expect(deck.page.locator(f"#slide-{number}")).to_be_visible()
    expect(deck.page.locator(".contents a")).to_have_count(13)
    expect(deck.page.locator(".bar")).to_be_hidden()
    deck.page.locator(".contents a").nth(6).click()
    assert deck.page.url.endswith("#slide-7")
    expect(deck.page.locator("h1")).to_be_visible()


@pytest.mark.parametrize("name", ["built", "shipped"])
def test_it_prints_one_slide_a_page(opened, name):
    deck = opened(name)
    printed = deck.page.pdf(prefer_css_page_size=True)
    assert printed.count(b"/Type /Page\n") == 13
