"""Contrast of what is written in pictures, measured on the screen: axe does not look into them.

A screenshot with the letters and one without: the pixel that differs most has a letter's full colour, and the
colour behind it, after opacity, filters and blending, whoever drew the picture.
"""

import io

import numpy as np
import pytest
from deck import EVERY
from PIL import Image

LARGE, SMALL = 3.0, 4.5
"""WCAG 2.1, 1.4.3: from 24 pixels on, or 18.66 in bold, letters need a ratio of 3, below it 4.5."""

LETTERS = """() => [...document.querySelectorAll('section.present svg text')].flatMap((part) => {
  const box = part.getBoundingClientRect(), style = getComputedStyle(part), to = part.getScreenCTM();
  if (!part.textContent.trim() || box.width === 0) return [];
  if (!part.checkVisibility({visibilityProperty: true, opacityProperty: true})) return [];
  const size = parseFloat(style.fontSize) * Math.hypot(to.a, to.b);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  return [[part.textContent.trim(), large, [box.left, box.top, box.right, box.bottom].map(Math.round)]];
})"""
HIDE = "on => document.documentElement.classList.toggle('no-letters', on)"
STYLE = ".no-letters svg text { visibility: hidden !important; }"


def luminance(page):
    """Relative luminance of each pixel of the screen, by WCAG's formula."""
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    level = np.arange(256) / 255
    linear = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    return linear[np.asarray(picture)] @ [0.2126, 0.7152, 0.0722]


def pale(page):
    """Letters of the slide's pictures whose contrast is too low, with their ratio; how many were measured."""
    letters = page.evaluate(LETTERS)
    if not letters:
        return {}, 0
    written = luminance(page)
    page.evaluate(HIDE, True)
    bare = luminance(page)
    page.evaluate(HIDE, False)
    ratio = (np.maximum(written, bare) + 0.05) / (np.minimum(written, bare) + 0.05)
    best = {}
    for label, large, (left, top, right, bottom) in letters:
        contrasts = ratio[max(top, 0) : bottom + 1, max(left, 0) : right + 1]
        if contrasts.size:
            best[label] = min(best.get(label, np.inf), contrasts.max() / (LARGE if large else SMALL))
    return {label: round(float(share), 2) for label, share in best.items() if share < 1}, len(best)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_in_pictures_stand_out(deck_opened, scheme):
    deck = deck_opened("shipped", color_scheme=scheme)
    deck.page.add_style_tag(content=STYLE)
    faults, measured = {}, 0
    for number in EVERY:
        deck.slide(number)
        seen = set()
        for step in deck.steps():
            labels = str([one[0] for one in deck.page.evaluate(LETTERS)])
            if labels in seen:
                continue
            seen.add(labels)
            pale_letters, count = pale(deck.page)
            faults |= {(number, step): pale_letters} if pale_letters else {}
            measured += count
    assert faults == {}
    assert measured > 200


def test_a_pale_letter_is_seen(deck_opened):
    """Negative control: by its own colour, by its opacity, by what lies behind it."""
    deck = deck_opened("shipped", "#/5")
    deck.page.add_style_tag(content=STYLE)
    drawn = {"river", "feed-forward"}
    assert any(drawn <= {one[0] for one in deck.page.evaluate(LETTERS)} for _ in deck.steps())
    assert pale(deck.page)[0] == {}
    deck.page.evaluate(
        """() => {
            const [the, river] = document.querySelectorAll('section.present svg text');
            the.style.fill = '#aaa';
            river.style.opacity = 0.4;
            document.querySelectorAll('section.present .box').forEach(box => { box.style.fill = '#333'; });
        }"""
    )
    assert set(pale(deck.page)[0]) == {"the", "river", "attention", "feed-forward"}
