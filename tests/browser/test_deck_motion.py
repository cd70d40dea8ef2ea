"""Drawings move for those who like it; with reduced motion they show their end at once. The clock is ours."""

from deck import NUMBERS

HERE = "document.querySelector('section.present')"
KEEP = f"window.before = {HERE}.innerHTML"
MOVED = f"window.before !== {HERE}.innerHTML"
MOVING = f"{HERE}.getAnimations({{subtree: true}}).length > 0"  # what has ended by now counts too


def lively(deck_opened):
    return deck_opened("shipped", still=True, reduced_motion="no-preference")


def calm(deck_opened):
    return deck_opened("shipped", still=True, reduced_motion="reduce")


def moves(deck):
    """Slides of which a step moves by itself: by a timer of ours, or by the style sheet."""
    moving = set()
    for number in NUMBERS:
        deck.slide(number)
        for _ in deck.steps():
            deck.page.evaluate(KEEP)
            by_style = deck.page.evaluate(MOVING)
            deck.page.clock.run_for(3_000)
            if by_style or deck.page.evaluate(MOVED):
                moving.add(number)
    return moving


def test_drawings_move_and_with_reduced_motion_nothing_does(deck_opened):
    assert moves(lively(deck_opened)) >= {3, 6, 7, 8}
    assert moves(calm(deck_opened)) == set()


def blame(deck):
    """How many discs there are when they begin to run, which is after the guess."""
    deck.slide(3)
    discs, picture = (
        deck.page.locator(f"section.present [data-machine=blame] {one}") for one in ("circle", "svg")
    )
    assert deck.page.locator("section.present .guess").is_visible()
    assert set(discs.evaluate_all("all => all.map((one) => one.getAttribute('class'))")) == {"ring"}
    assert "arrives" not in picture.get_attribute("aria-label"), "nor is the answer read out"
    deck.page.keyboard.press("ArrowRight")
    assert "arrives" in picture.get_attribute("aria-label")
    return deck.page.locator("section.present circle.blame").count()


def test_blame_runs_back_letter_by_letter_or_has_arrived(deck_opened):
    arrived, deck = blame(calm(deck_opened)), lively(deck_opened)
    assert blame(deck) == 3, "a circle a side"
    deck.page.clock.run_for(350)
    assert 3 < deck.page.locator("section.present circle.blame").count() < arrived
    deck.page.clock.run_for(3_000)
    assert deck.page.locator("section.present circle.blame").count() == arrived == 60


def played(deck):
    """What is left of the ink when Play was pressed, and when it has ended."""
    deck.slide(2)
    cell = deck.page.locator("[data-machine=cell]").last
    cell.get_by_text("Play").click()
    begun = cell.locator(".share").text_content()
    deck.page.clock.run_for(10_000)
    return begun, cell.locator(".share").text_content()


def test_play_steps_through_the_word_or_shows_its_end(deck_opened):
    assert played(lively(deck_opened)) == ("100%", "1%")
    assert played(calm(deck_opened)) == ("1%", "1%")


def typed(deck):
    """How much of a text is there when it begins to be written, and afterwards."""
    deck.slide(12)
    text = deck.page.locator("section.present .written").first
    deck.page.evaluate(f"tally.type({HERE})")
    begun = len(text.text_content())
    deck.page.clock.run_for(60_000)
    return begun, len(text.text_content())


def test_texts_are_typed_or_there(deck_opened):
    begun, whole = typed(lively(deck_opened))
    assert begun == 0
    assert typed(calm(deck_opened)) == (whole, whole)
    assert whole > 100
