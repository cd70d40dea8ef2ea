"""The stage: nothing overflows at any step, letters are large enough for the last row, words are few."""

import pytest
from deck import EVERY, NUMBERS

SIZES = [(1280, 720), (1920, 1080), (3840, 2160)]
MOST_WORDS = 40

MEASURE = """() => {
  const slide = document.querySelector('section.present'), stage = slide.getBoundingClientRect();
  const seen = (part) => part.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const H = innerHeight, faults = [];
  const named = (part) =>
    `${part.tagName}.${part.getAttribute('class') || ''} ${part.textContent.trim().slice(0, 30)}`;
  const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  let words = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const part = node.parentElement, said = node.textContent.trim();
    if (!said || !seen(part) || part.closest('.visually-hidden, desc, title, option')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    const drawing = part.closest('svg');
    const scale = drawing ? Math.abs(part.getScreenCTM().a || part.getScreenCTM().b) : 1;
    const size = parseFloat(getComputedStyle(part).fontSize) * scale;
    if (size < H / (drawing ? 40 : 30) - 0.3) faults.push(`${(H / size).toFixed(0)}th: ${named(part)}`);
    // What a model wrote is shown like a picture; nobody reads it out.
    if (!drawing && !part.closest('q, .given, .written')) words += said.split(/\\s+/).length;
    let frame = stage;
    for (let up = part.parentElement; up && up !== slide; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX !== 'visible' && !(up instanceof SVGElement)) frame = up.getBoundingClientRect();
      if (frame !== stage) break;
    }
    const inside = box.left > frame.left - 2 && box.right < frame.right + 2
      && box.top > frame.top - 2 && box.bottom < frame.bottom + 2;
    if (!inside) faults.push(`outside: ${named(part)}`);
  }
  return {faults, words};
}"""

OVERLAP = """() => {
  const slide = document.querySelector('section.present');
  const seen = (part) => part.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const parts = [...slide.querySelectorAll('p, h2, figure, .scoreboard, .knobs, .texts, .vote, button, svg')]
    .filter((part) => seen(part) && !part.closest('svg svg') && part.getBoundingClientRect().height > 0);
  const faults = [], said = (part) => part.textContent.trim().slice(0, 25);
  parts.forEach((a, i) => parts.slice(i + 1).forEach((b) => {
    if (a.contains(b) || b.contains(a)) return;
    const p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 4 && high > 4) faults.push(`${said(a)} | ${said(b)}`);
  }));
  return faults;
}"""


def steps(deck):
    """Every step of the slide that is shown, by its number."""
    number, before = 0, None
    while True:
        yield number
        before = (deck.page.inner_text(".counter"), deck.page.inner_html("section.present"))
        deck.page.keyboard.press("PageDown")
        number += 1
        if (deck.page.inner_text(".counter"), deck.page.inner_html("section.present")) == before:
            return
        if deck.page.inner_text(".counter") != before[0]:
            return


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_nothing_overflows_overlaps_or_is_small_at_any_step(deck_opened, width, height, scheme):
    if scheme == "dark" and (width, height) != SIZES[0]:
        return  # colours move nothing
    deck = deck_opened("shipped", viewport={"width": width, "height": height}, color_scheme=scheme)
    found = {}
    for number in EVERY:
        deck.slide(number)
        for step in steps(deck):
            faults = deck.page.evaluate(MEASURE)["faults"] + deck.page.evaluate(OVERLAP)
            if faults:
                found[number, step] = faults[:3]
    assert found == {}


def test_a_slide_begins_with_few_words(deck_opened):
    deck = deck_opened("shipped")
    counted = {}
    for number in NUMBERS:
        deck.slide(number)
        counted[number] = deck.page.evaluate(MEASURE)["words"]
    assert {number: words for number, words in counted.items() if words > MOST_WORDS} == {}
    assert min(counted.values()) > 3, "negative control: words are counted"


def test_the_measure_sees_small_letters_and_what_sticks_out(deck_opened):
    """Negative control."""
    deck = deck_opened("shipped")
    deck.page.evaluate(
        "document.querySelector('section.present h2').style.fontSize = '12px';"
        "document.querySelector('section.present .lead').style.marginLeft = '60rem';"
    )
    faults = deck.page.evaluate(MEASURE)["faults"]
    assert any("th: H2" in fault for fault in faults)
    assert any("outside: P.lead" in fault for fault in faults)


def test_a_phone_reads_one_column_without_steps(deck_opened):
    deck = deck_opened("shipped", viewport={"width": 360, "height": 640})
    for number in EVERY:
        deck.slide(number)
        assert deck.page.evaluate("document.documentElement.scrollWidth") <= 360, number
        assert deck.page.locator("section.present .away").count() == 0, number


def test_pictures_are_dark_in_the_dark_and_never_on_paper(deck_opened):
    filters = "getComputedStyle(document.querySelector('section.present figure svg')).filter"
    for scheme, press, inverted in (("light", "", False), ("dark", "", True), ("dark", "d", False)):
        deck = deck_opened("shipped", "#/6", color_scheme=scheme)
        if press:
            deck.page.keyboard.press(press)
        assert ("invert" in deck.page.evaluate(filters)) == inverted
        deck.page.emulate_media(media="print")
        assert deck.page.evaluate(filters) == "none"
