"""The deck at 360 x 640: one column without steps; what is wider scrolls by itself, and can be seen to."""

import io

import numpy as np
import pytest
from deck import EVERY
from PIL import Image
from playwright.sync_api import expect

PHONE = {"width": 360, "height": 640}
BROAD = "part => part.scrollWidth > part.clientWidth + 16 && part.checkVisibility()"
UNSEEN = 0.03
"""A shade that differs from the paper by less of the range from black to white is not counted on."""


def test_a_phone_reads_one_column_without_steps(deck_opened):
    deck = deck_opened("shipped_live", viewport=PHONE)
    small = """() => [...document.querySelectorAll('section.present :not(svg *, .visually-hidden)')].filter(
        (part) => [...part.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim())
            && part.checkVisibility() && parseFloat(getComputedStyle(part).fontSize) < 14
        ).map((part) => part.outerHTML.slice(0, 80))"""
    for number in EVERY:
        deck.slide(number)
        assert deck.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], number
        assert deck.page.locator("section.present .away").count() == 0, number
        assert deck.page.evaluate(small) == [], number


def test_a_phone_sees_the_cell_at_the_end_of_the_word(deck_opened):
    """Without steps nothing would bring the ink along; a slider still does what it does on the stage."""
    deck = deck_opened("built", "#/2", viewport=PHONE)
    cell = deck.page.locator("[data-machine=cell]")
    expect(cell.locator(".share")).to_have_text("6%")  # 0.5 ** 4
    assert cell.locator("circle.ink").count() == 5
    cell.get_by_label("Forget").fill("0.95")
    expect(cell.locator(".share")).to_have_text("81%")
    moved = cell.locator(".scroll").evaluate("part => { part.scrollLeft = 999; return part.scrollLeft; }")
    assert moved > 0
    assert cell.get_by_label("Forget").bounding_box()["x"] >= 0, "its knobs stay where they are"


CURVES = (3, 6, 7, 8, 10, 11, 13)
OFF = """() => [...document.querySelectorAll('section.present figure svg text')]
    .filter((part) => part.checkVisibility({visibilityProperty: true}) && part.getBoundingClientRect().width)
    .filter((part) => part.getBoundingClientRect().right > innerWidth).map((part) => part.textContent)"""


def test_the_names_at_curves_are_on_the_phone(deck_opened):
    deck, control = deck_opened("shipped", viewport=PHONE), deck_opened("shipped", "#/6")
    for number in CURVES:
        deck.slide(number)
        pictures = [
            (one.locator(".narrow svg").is_visible(), one.locator(".scroll").is_visible())
            for one in deck.page.locator("section.present figure").all()
            if not one.evaluate("one => one.closest('.behind')")
        ]
        assert pictures, number
        assert set(pictures) == {(True, False)}, number
        assert deck.page.evaluate(OFF) == [], number
    # Control: the stage has the wide picture, whose names would be off a phone.
    control.show()
    figure = control.page.locator("section.present .panel[data-panel=first-letter] [data-part=show]")
    assert (figure.locator(".narrow").is_visible(), figure.locator(".wide").is_visible()) == (False, True)
    deck.slide(6)
    deck.page.add_style_tag(
        content=".narrow { display: none !important } .wide { display: block !important }"
    )
    assert "nudged LSTM" in deck.page.evaluate(OFF)


def test_a_phone_sees_both_pictures_of_the_first_slide_whole(deck_opened):
    deck, stage = deck_opened("shipped", "#/1", viewport=PHONE), deck_opened("shipped", "#/1")
    parts = ":is(.pill rect, .arc, .ink, .belt, .suitcase, text)"
    for page, upright in ((deck.page, True), (stage.page, False)):
        drawings = page.locator("section.present [data-machine]")
        assert drawings.count() == 2
        for drawing in drawings.all():
            boxes = [part.bounding_box() for part in drawing.locator(f"svg {parts}").all()]
            assert min(box["x"] for box in boxes) >= 0
            assert max(box["x"] + box["width"] for box in boxes) <= page.viewport_size["width"]
            words = drawing.locator("svg text").all()
            tops = [word.bounding_box()["y"] for word in words]
            assert (max(tops) - min(tops) > 200) == upright, "below one another"
            size = words[0].evaluate(
                "one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a"
            )
            assert size > 14


def test_a_phone_has_the_answer_of_the_dictionary_below_its_arrows(deck_opened):
    deck, stage = deck_opened("shipped", "#/4", viewport=PHONE), deck_opened("shipped", "#/4")
    for page, below in ((deck.page, True), (stage.page, False)):
        drawing = page.locator("section.present [data-machine=dictionary]")
        plane, answer = (drawing.locator(one).bounding_box() for one in ("circle.plane", "rect >> nth=-1"))
        assert (answer["y"] > plane["y"] + plane["height"]) == below
        assert answer["x"] + answer["width"] < page.viewport_size["width"]


def shaded(page, box):
    """How much of the right and of the left edge of a box is not paper."""
    grey = np.asarray(Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("L")) / 255
    bar = page.locator(".bar").bounding_box()["y"]
    at = box.bounding_box()
    rows = slice(max(0, round(at["y"]) + 2), min(round(bar), round(at["y"] + at["height"])) - 2)
    paper = grey[2, 2]
    edges = (round(at["x"] + at["width"]) - 2, round(at["x"]) + 1)
    return [float(np.mean(np.abs(grey[rows, column] - paper) > UNSEEN)) for column in edges]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_broader_than_the_phone_is_reached_by_keys_and_shaded_where_it_goes_on(deck_opened, scheme):
    deck = deck_opened("shipped", viewport=PHONE, color_scheme=scheme)
    broad_boxes = 0
    for number in EVERY:
        deck.slide(number)
        for box in deck.page.locator("section.present .scroll").all():
            if not box.evaluate(BROAD):
                continue
            broad_boxes += 1
            name = box.get_attribute("aria-label")
            assert (box.get_attribute("tabindex"), box.get_attribute("role")) == ("0", "region"), name
            box.evaluate("part => part.scrollIntoView({block: 'center'})")
            right, _ = shaded(deck.page, box)
            box.evaluate("part => { part.scrollLeft = 1e5; }")
            gone, left = shaded(deck.page, box)
            assert min(right, left) > 0.7, (number, name, right, left)
            assert gone < right - 0.3, (number, name, "no shade where nothing follows")
    assert broad_boxes > 6, "drawings of whole sentences are broader than a phone"
