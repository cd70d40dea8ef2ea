"""Paper: how large the smallest letters are, on slides printed two a page and on the handout."""

import pytest
from deck import EVERY
from test_deck_stage import OVERLAP

POINT, MILLIMETRE = 96 / 72, 96 / 25.4
SLIDE, HANDOUT = (320, 180), (186, 273)
"""Millimetres, as print.css has them; A4 upright with 5 mm at each side takes two, 200 mm wide."""
TWO_A_PAGE = 200 / SLIDE[0]
LEAST = 7

LETTERS = """() => {
  const slides = document.querySelector('.slides'), parts = [];
  const walker = document.createTreeWalker(slides, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const part = node.parentElement, said = node.textContent.trim();
    if (!said || part.closest('.visually-hidden, desc, title, option')) continue;
    if (!part.checkVisibility({visibilityProperty: true})) continue;
    const to = part.closest('svg') ? part.getScreenCTM() : {a: 1, b: 0};
    const size = parseFloat(getComputedStyle(part).fontSize) * Math.hypot(to.a, to.b);
    const slide = part.closest('section').dataset.label;
    parts.push([size, slide, said.slice(0, 40), part.closest('.notes') !== null]);
  }
  return parts;
}"""


TOUCH = """() => [...document.querySelectorAll('.slides svg')].flatMap((svg) => {
  const upright = (part) => Math.abs(part.getScreenCTM().b) < 1e-6;
  const labels = [...svg.querySelectorAll('text')].filter((part) =>
    part.textContent.trim() && part.checkVisibility({visibilityProperty: true}) && upright(part));
  const boxes = labels.map((part) => [part.textContent, part.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) =>
    p.right > q.left && q.right > p.left && p.bottom > q.top && q.bottom > p.top
  ).map(([b]) => `${svg.closest('section').dataset.label}: ${a} | ${b}`));
})"""
"""Labels of a picture that stand on one another: a box is as high as the highest and the lowest letter."""


def on_paper(deck, *, handout=False):
    """As wide as the page is, which decides about what asks for the width of a screen."""
    if handout:
        deck.page.keyboard.press("p")
    deck.page.emulate_media(media="print")
    deck.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    width, height = HANDOUT if handout else SLIDE
    deck.page.set_viewport_size({"width": round(width * MILLIMETRE), "height": round(height * MILLIMETRE)})


def overlapping(deck):
    """By slide: what stands on something else."""
    overlaps = {}
    for number in EVERY:
        deck.page.evaluate(
            """number => document.querySelectorAll('.slides > section').forEach((one, i) =>
                one.classList.toggle('present', i === number - 1))""",
            number,
        )
        if faults := deck.page.evaluate(OVERLAP):
            overlaps[number] = faults
    return overlaps


def printed(deck, *, handout=False):
    """[size in points, slide, what is said, whether in the notes] of all on paper, smallest first."""
    on_paper(deck, handout=handout)
    return sorted([size / POINT, *rest] for size, *rest in deck.page.evaluate(LETTERS))


@pytest.fixture
def paper(deck_opened):
    return deck_opened("shipped")


def test_two_slides_a_page_have_no_letters_below_seven_points(paper):
    letters = printed(paper)
    assert [one for one in letters if one[0] * TWO_A_PAGE < LEAST] == []
    assert len({slide for _, slide, *_ in letters}) == len(EVERY)
    assert not any(notes for *_, notes in letters)
    broken = "all => all.filter(one => one.scrollHeight > one.clientHeight + 2).map(one => one.dataset.label)"
    assert paper.page.locator(".slides > section").evaluate_all(broken) == []


def test_the_handout_has_notes_and_exercises_that_can_be_read(paper):
    letters = printed(paper, handout=True)
    assert [one for one in letters if one[0] < LEAST] == []
    notes = [one for one in letters if one[3]]
    assert len({slide for _, slide, *_ in notes}) == len(EVERY)
    assert min(notes)[0] > 8
    lie = "[...document.querySelectorAll('.notes')].map(one => getComputedStyle(one).position)"
    assert set(paper.page.evaluate(lie)) == {"static"}, "below their slide, not over another"
    assert sum(text.startswith("Exercise") for _, _, text, _ in notes) >= 12


@pytest.mark.parametrize("handout", [False, True])
def test_on_paper_labels_have_room_and_nothing_stands_on_anything(paper, handout):
    on_paper(paper, handout=handout)
    assert overlapping(paper) == {}
    assert paper.page.evaluate(TOUCH) == []
    # Control: an answer that lies on a picture is seen, and so is a label on another.
    paper.page.add_style_tag(content=".answer { position: relative; top: -8rem; }")
    paper.page.evaluate(
        """() => {
            const [one, other] = document.querySelectorAll('.study .mark-text text');
            other.setAttribute('transform', one.getAttribute('transform'));
        }"""
    )
    assert overlapping(paper).keys() == {13}
    assert len(paper.page.evaluate(TOUCH)) == 1


def test_a_small_letter_on_paper_is_seen(paper):
    """Negative control, in a text and in a picture."""
    paper.page.add_style_tag(content=".lead { font-size: 0.6rem; } .drawing text { font-size: 12px; }")
    small = {text for size, _, text, _ in printed(paper) if size * TWO_A_PAGE < LEAST}
    assert {"Turn the query. Which key answers?", "attention"} <= small
