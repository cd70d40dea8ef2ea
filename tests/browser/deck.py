"""The deck opened in Chromium: its slides, its panels, and what axe says of it."""

from contextlib import contextmanager

from pages import Watched, violations, watched
from playwright.sync_api import expect

from isoloss.teach.deck.page import shipped_slides

NUMBERS = range(1, 14)
EVERY = range(1, len(shipped_slides()) + 1)


class Deck(Watched):
    def slide(self, number):
        self.page.evaluate("number => { location.hash = '#/' + number; }", number)
        label = f"{number} / 13" if number in NUMBERS else f"A{number - 13}"
        expect(self.page.locator(".counter")).to_have_text(label)

    def turn(self, key="PageDown"):
        """Press a key until the slide changes, or nothing does; how often it was pressed."""
        for pressed in range(1, 20):
            before = self.page.inner_text(".counter"), self.page.inner_html("section.present")
            self.page.keyboard.press(key)
            if self.page.inner_text(".counter") != before[0]:
                return pressed
            if self.page.inner_html("section.present") == before[1]:
                return pressed
        raise AssertionError(f"{key} does not get away from {before[0]}")

    def steps(self):
        """Every step of the slide that is shown, by its number, each reached by one more key press."""
        here = "document.querySelector('section.present')"
        self.page.evaluate(f"stage.stand({here}, 0)")
        for number in range(self.page.evaluate(f"stage.lastStep({here})") + 1):
            if number > 0:
                self.page.keyboard.press("PageDown")
            assert self.page.evaluate(f"stage.reached.get({here})") == number
            yield number

    def show(self):
        """Every step of the slide, so that what it has can be seen."""
        label = self.page.inner_text(".counter")
        self.turn("PageDown")
        if self.page.inner_text(".counter") != label:
            self.page.keyboard.press("PageUp")

    def behind(self):
        self.page.focus("section.present h2")
        self.page.keyboard.press("t")

    def panel(self, name):
        return self.page.locator(f".panel[data-panel={name}]")

    def set(self, name, **values):
        panel = self.panel(name)
        opened = self.page.locator("html.behind-shown").count() > 0
        if not opened:
            self.behind()
        for key, value in values.items():
            control = panel.locator(f"[name={key}]")
            if isinstance(value, bool):
                control.set_checked(value)
            elif control.evaluate("control => control.tagName") == "SELECT":
                control.select_option(value)
            else:
                control.fill(str(value))
        if not opened:
            self.behind()

    def focused(self):
        return self.page.evaluate("document.activeElement.textContent")


SAID = """(line) => {
    window.said = [];
    const keep = () => window.said.push({text: line.textContent, at: performance.now()});
    new MutationObserver(keep).observe(line, {childList: true});
}"""
"""Keeps each text that a line shows, and since when."""

NO_SERVER = "window.EventSource = class { close() {} };"


def open_deck(browser, address, hash="", *, still=False, **context):
    """A live page from a file has no server to hear; one from a server is heard, or no job would begin."""
    context = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"} | context
    from_file = address.startswith("file://")
    deck = watched(browser, address, hash, Deck, NO_SERVER if from_file else "", still=still, **context)
    if still:
        deck.page.clock.run_for(100)  # reveal.js is ready after a moment
    if context.get("java_script_enabled", True):
        deck.page.wait_for_selector("html.ready")
    if not from_file:
        deck.page.wait_for_selector(".link[aria-label=connected]", state="attached")
    return deck


def axe(page, rules=()):
    """Faults that are more than minor. ``rules``: these alone.

    A picture is one image to a screen reader; its hundreds of parts would take most of the time.
    """
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    faults = violations(page, context={"exclude": [["figure svg > g"]]}, options=options)
    return [(name, html) for name, impact, html in faults if impact != "minor"]


@contextmanager
def only_what_axe_reads(page):
    """axe goes through the whole document at every call: the hidden slides' cells, and parts of pictures."""
    page.evaluate(
        """() => {
            const heavy = '.slides > section:not(.present), section.present figure svg > g';
            window.heavy = [...document.querySelectorAll(heavy)].map(part => [part, [...part.childNodes]]);
            window.heavy.forEach(([part]) => part.replaceChildren());
        }"""
    )
    yield
    page.evaluate("window.heavy.forEach(([part, children]) => part.replaceChildren(...children))")
