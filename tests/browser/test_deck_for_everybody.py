"""The deck in a real browser, for everybody: screen readers, narrow screens, no script, paper."""

import re

import pytest
from deck import EVERY, NUMBERS, axe, only_what_axe_reads, open_deck
from fake_panels import SLIDES
from playwright.sync_api import expect

VISIBLE = """() => [...document.querySelectorAll('section.present :not(svg *)')].flatMap((part, n) =>
    part.checkVisibility({visibilityProperty: true, opacityProperty: true}) ? [n] : [])"""


def telling_steps(deck):
    """Steps that between them show all that any step shows: the last, and some with what has gone by then."""
    shown, seen, chosen = [set(deck.page.evaluate(VISIBLE)) for _ in deck.steps()], set(), set()
    for step in reversed(range(len(shown))):
        if shown[step] - seen:
            chosen.add(step)
            seen |= shown[step]
    return chosen


@pytest.mark.parametrize(
    ("name", "numbers", "scheme", "rules"),
    [
        ("served", (2, 3, 4, 12, 13), "light", ()),
        ("shipped", EVERY, "light", ()),
        ("shipped", NUMBERS, "dark", ("color-contrast",)),
    ],
)
def test_axe_finds_no_fault_at_any_step_and_in_what_stands_behind(deck_opened, name, numbers, scheme, rules):
    deck = deck_opened(name, color_scheme=scheme)
    faults, read = {}, 0
    for number in numbers:
        deck.slide(number)
        if (name, number) == ("shipped", 12):  # both sides of a vote: the other deck's is open
            deck.page.keyboard.press("1")
        with only_what_axe_reads(deck.page):
            chosen = telling_steps(deck)
            for step in deck.steps():
                if step in chosen:
                    faults |= {(number, step): violations} if (violations := axe(deck.page, rules)) else {}
            deck.behind()
            faults |= {(number, "behind"): violations} if (violations := axe(deck.page, rules)) else {}
        read += len(chosen)
    assert faults == {}
    assert read > len(numbers), "what has gone by the last step was read before"
    assert axe(deck.page, rules) == [], "the last slide in the whole document"


@pytest.mark.parametrize("name", ["served", "shipped"])
def test_names_and_references_hold_over_all_slides(deck_opened, name):
    """What axe cannot see slide by slide: an id stands once, and what points to one finds it."""
    repeated, lost = deck_opened(name).page.evaluate(
        """() => {
            const ids = [...document.querySelectorAll('[id]')].map(part => part.id);
            const names = ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls'];
            const wanted = names.flatMap(name => [...document.querySelectorAll(`[${name}]`)].flatMap(
                part => part.getAttribute(name).split(/\\s+/)));
            return [ids.filter((id, place) => ids.indexOf(id) !== place),
                    wanted.filter(id => !ids.includes(id))];
        }"""
    )
    assert (repeated, lost) == ([], [])


def test_axe_finds_no_fault_in_a_dialog(deck_opened):
    deck = deck_opened("served")
    for name in ("overview", "help"):
        deck.page.click(f"[data-do={name}]")
        assert axe(deck.page) == []
        deck.page.keyboard.press("Escape")


def test_axe_sees_what_reveal_does_to_a_page(browser, built, tmp_path):
    """Negative control: without our mends there are faults, and axe sees a pale text."""
    deck = open_deck(browser, built)
    deck.page.evaluate(
        "document.querySelector('section.present p').style.color = '#ccc';"
        "document.querySelector('section.present h2').insertAdjacentHTML('afterend', '<img src=\"data:,\">')"
    )
    assert {"image-alt", "color-contrast"} <= {fault[0] for fault in axe(deck.page)}
    deck.page.context.close()


def test_no_application_role_and_no_region_that_reads_slides_aloud(deck_opened, either):
    deck = deck_opened(either, "#/3")
    assert deck.page.locator("[role=application]").count() == 0
    live = deck.page.evaluate(
        "[...document.querySelectorAll('[aria-live]')].map(part => [part.id, part.getAttribute('aria-live')])"
    )
    assert live == [["live", "polite"]]


@pytest.mark.parametrize("width", [320, 360, 640, 1280])
@pytest.mark.parametrize("name", ["served", "shipped"])
def test_no_slide_scrolls_sideways(deck_opened, name, width):
    """640 is 1280 at 200% zoom, 320 the narrowest screen that WCAG asks for."""
    deck = deck_opened(name, viewport={"width": width, "height": 640})
    wide = {}
    for number in EVERY if name == "shipped" else range(1, len(SLIDES) + 1):
        deck.slide(number)
        deck.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        if (scroll_width := deck.page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[number] = scroll_width
    assert wide == {}


def test_without_a_script_it_is_one_page_with_every_slide(deck_opened):
    deck = deck_opened("shipped", java_script_enabled=False)
    sections = deck.page.locator(".slides > section")
    expect(sections).to_have_count(len(EVERY))
    for number in EVERY:
        expect(sections.nth(number - 1)).to_be_visible()
        expect(deck.page.locator(f"#slide-{number}")).to_be_visible()
    expect(deck.page.locator(".contents a")).to_have_count(len(EVERY))
    assert not any(note.is_visible() for note in deck.page.locator(".notes").all())
    expect(deck.page.locator(".bar")).to_be_hidden()
    deck.page.locator(".contents a").nth(6).click()
    expect(deck.page).to_have_url(re.compile("#slide-7$"))
    expect(deck.page.locator("h1")).to_be_visible()


@pytest.mark.parametrize(("name", "slides"), [("built", len(SLIDES)), ("shipped", len(EVERY))])
def test_it_prints_one_slide_a_page(deck_opened, name, slides):
    deck = deck_opened(name)
    printed = deck.page.pdf(prefer_css_page_size=True)
    assert printed.count(b"/Type /Page\n") == slides


def test_with_the_notes_shown_it_prints_a_handout(deck_opened):
    deck = deck_opened("shipped")
    deck.page.keyboard.press("p")
    printed = deck.page.pdf(prefer_css_page_size=True)
    assert 9 <= printed.count(b"/Type /Page\n") <= len(EVERY)
    assert b"841" in printed, "A4, upright"
    exercises = deck.page.locator(".notes .exercise")
    assert exercises.count() >= 12
    deck.page.emulate_media(media="print")
    shown = "part => getComputedStyle(part).display !== 'none' && part.offsetHeight > 0"
    assert exercises.nth(3).evaluate(shown)


def test_paper_shows_what_the_last_step_shows_whatever_the_screen(deck_opened):
    for width, height in ((1280, 720), (360, 640)):
        deck = deck_opened("shipped", "#/6", viewport={"width": width, "height": height})
        deck.page.evaluate(
            """() => {
                window.printed = [];
                const away = (name) => document.querySelectorAll(`.${name}.away`).length;
                matchMedia("print").addEventListener("change", (event) => {
                    if (event.matches) window.printed.push(["guess", "headline"].map(away));
                });
            }"""
        )
        before = deck.page.locator("section.present .away").count()
        deck.page.pdf(prefer_css_page_size=True)
        guesses = deck.page.locator(".guess").count()
        assert deck.page.evaluate("window.printed") == [[guesses, 0]]
        assert deck.page.locator("section.present .away").count() == before
