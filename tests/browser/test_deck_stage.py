"""The stage: nothing overflows at any step, letters are large enough for the last row, words are few."""

import pytest
from deck import EVERY, NUMBERS

SIZES = [(1280, 720), (1920, 1080), (3840, 2160)]
MOST_WORDS = 40
PICTURES = {1: 2}
"""How many pictures a slide may show at once: the title's is two halves side by side. Elsewhere one."""

AT = "[...document.querySelectorAll('.slides > section')].findIndex(one => one.matches('.present')) + 1"

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
    // Words are what is read out: not numbers and badges, nor a picture's and its key's, nor a model's.
    if (!part.closest('svg, .answers, .scoreboard, .key, .badge, q, .given, .written'))
      words += (said.match(/\\p{L}[\\p{L}’'-]*/gu) || []).length;
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
  const drawn = 'figure, .hero, .machine, .drawing, .answers, .scoreboard';
  const pictures = [...slide.querySelectorAll(drawn)].filter((part) =>
    seen(part) && part.getBoundingClientRect().height > 0 && !part.parentElement.closest(drawn)).length;
  return {faults, words, pictures};
}"""

STATE = """() => {
  const slide = document.querySelector('section.present');
  const drawn = [...slide.querySelectorAll('[data-machine] svg')].filter((svg) =>
    svg.checkVisibility({visibilityProperty: true}));
  return slide.innerText + drawn.map((svg) => svg.innerHTML).join();
}"""
"""What a room sees of a slide, as text; pictures without words have a step with some."""

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


def measured(deck):
    return deck.page.evaluate(MEASURE)


def test_at_every_step_all_fits_is_large_enough_and_few_words_stand_by_one_picture(deck_opened):
    """The live page, whose forms take room that the file has to spare; colours move nothing."""
    deck = deck_opened("shipped_live")
    faults_by_step, most = {}, {}
    for width, height in SIZES:
        deck.page.set_viewport_size({"width": width, "height": height})
        for number in EVERY:
            deck.slide(number)
            before = ""
            for step in deck.steps():
                seen, state = measured(deck), deck.page.evaluate(STATE)
                faults = seen["faults"] + deck.page.evaluate(OVERLAP)
                faults += ["nothing changes"] if state == before else []
                before = state
                most[number] = max(most.get(number, 0), seen["words"])
                if seen["pictures"] > PICTURES.get(number, 1):
                    faults.append(f"{seen['pictures']} pictures")
                if number in NUMBERS and seen["words"] > MOST_WORDS:
                    faults.append(f"{seen['words']} words")
                if faults:
                    faults_by_step[number, step, height] = faults[:3]
            deck.page.keyboard.press("PageDown")
            last = number in (NUMBERS[-1], EVERY[-1])
            assert deck.page.evaluate(AT) == number + (not last), "one more press leaves the slide"
    assert faults_by_step == {}
    assert min(most.values()) > 3, "words are counted"


LONG = """() => {
  const slide = document.querySelector('section.present');
  const fill = (name, text) => slide.querySelectorAll(name).forEach((part) => { part.textContent = text; });
  fill('.given', 'It was a dark and '.repeat(28).slice(0, 500));
  fill('.written', ' stormy night'.repeat(40));
}"""


@pytest.mark.parametrize("long", [False, True])
def test_after_a_vote_the_coins_line_can_be_read_whatever_was_written(deck_opened, long):
    """Texts of 120 tokens after a prompt of 500 characters scroll in their own place."""
    deck = deck_opened("shipped_live", "#/12")
    if long:
        deck.page.evaluate(LONG)
    deck.page.keyboard.press("1")
    assert "a coin would do as well" in deck.page.locator("section.present .tally").inner_text()
    texts = deck.page.locator("section.present .texts")
    texts.evaluate("part => { part.scrollTop = part.scrollHeight; }")
    assert (texts.evaluate("part => part.scrollTop") > 0) == long
    frame, last = texts.bounding_box(), texts.locator(".written").last.bounding_box()
    assert last["y"] + last["height"] <= frame["y"] + frame["height"] + 2, "the end can be reached"
    if long:  # what is scrolled away is outside of its frame
        texts.evaluate("part => { part.style.visibility = 'hidden'; }")
    small, shown = deck.page.locator("section.present .headline p").last, []
    for step in deck.steps():
        seen = measured(deck)
        assert seen["faults"] + deck.page.evaluate(OVERLAP) == []
        assert seen["words"] <= MOST_WORDS, step
        shown.append(small.is_visible())
    assert shown == [False, False, True], "of other models than those that were voted on: with the doubt"


def test_a_gpu_has_its_row_on_the_last_slide_where_one_was_measured(deck_opened):
    deck = deck_opened("shipped", "#/13")
    deck.page.keyboard.press("ArrowRight")
    row = deck.page.locator("section.present .scoreboard [data-key=whole-gpu]")
    assert not row.is_visible()
    row.evaluate("row => { row.className = ''; row.dataset.ahead = 'Transformer'; }")
    assert row.is_visible()
    for _ in range(2):
        assert measured(deck)["faults"] + deck.page.evaluate(OVERLAP) == []
        deck.page.keyboard.press("ArrowRight")


def test_the_measure_sees_small_letters_what_sticks_out_words_and_pictures(deck_opened):
    """Negative control."""
    deck = deck_opened("shipped_live")
    before, state = measured(deck), deck.page.evaluate(STATE)
    assert before["pictures"] == 2
    assert deck.page.evaluate(STATE) == state
    deck.page.evaluate(
        "document.querySelector('section.present h2').style.fontSize = '12px';"
        "document.querySelector('section.present .lead').style.marginLeft = '60rem';"
    )
    deck.page.evaluate(
        """() => document.querySelector('section.present .said').insertAdjacentHTML('afterend',
            '<p class="said">five more words than before 1 2 3</p><figure><svg></svg></figure>')"""
    )
    after = measured(deck)
    assert (after["words"] - before["words"], after["pictures"]) == (5, 3)
    assert deck.page.evaluate(STATE) != state
    faults = after["faults"]
    assert any("th: H2" in fault for fault in faults)
    assert any("outside: P.lead" in fault for fault in faults)


def test_pictures_are_dark_in_the_dark_and_never_on_paper(deck_opened):
    filters = "getComputedStyle(document.querySelector('section.present figure svg')).filter"
    for scheme, press, inverted in (("light", "", False), ("dark", "", True), ("dark", "d", False)):
        deck = deck_opened("shipped_live", "#/6", color_scheme=scheme)
        if press:
            deck.page.keyboard.press(press)
        assert ("invert" in deck.page.evaluate(filters)) == inverted
        deck.page.emulate_media(media="print")
        assert deck.page.evaluate(filters) == "none"
