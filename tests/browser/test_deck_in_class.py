"""What a teacher uses in class: hands and votes counted, the second window, the file to take home."""

import re
from pathlib import Path

from playwright.sync_api import expect


def run(deck):
    """The tasting, measured once more to its end."""
    taste = deck.panel("taste")
    taste.locator(".run").click()
    seed = taste.locator("[name=seed]").input_value()
    expect(taste.locator(".numbers")).to_contain_text(re.compile(rf"[^t] seed {seed}\b"))
    return taste


def tasted(deck, hands=None, key=None):
    """Run the tasting, let the room vote, and say what the rounds come to."""
    taste = run(deck)
    expect(taste.locator(".tally")).to_be_hidden()
    for text, number in (hands or {}).items():
        taste.locator(f"[data-hands={text}]").fill(str(number))
    if hands:
        taste.locator("[data-count]").click()
    else:
        deck.page.focus("section.present h2")
        deck.page.keyboard.press(key)
    expect(taste.locator("[data-count]")).to_be_disabled()
    return taste.locator(".tally").inner_text()


def test_votes_are_counted_by_rounds_with_an_interval_and_the_coins_line(deck_opened):
    deck = deck_opened("served", "#/12")
    # A is the LSTM. Twelve hands on one pair of texts are one round.
    first = tasted(deck, hands={"A": 12, "B": 3})
    assert first.startswith("1 round: Transformer 0, LSTM 1, same 0.")
    assert "n = 1: a coin would do as well." in first
    assert tasted(deck, key="2").startswith("2 rounds: Transformer 1, LSTM 1, same 0.")
    assert tasted(deck, hands={"A": 4, "B": 4}).startswith("3 rounds: Transformer 1, LSTM 1, same 1.")
    for _ in range(6):
        last = tasted(deck, key="2")
    assert last == "9 rounds: Transformer 7, LSTM 1, same 1. Transformer 53 to 98% of n = 8: no coin."
    deck.page.reload()
    deck.page.wait_for_selector("html.ready")
    expect(deck.panel("taste").locator("[data-count]")).to_be_disabled()
    expect(deck.panel("taste").locator(".tally")).to_have_text(last)
    assert tasted(deck, key="2").startswith("10 rounds: Transformer 8, LSTM 1, same 1.")


def test_a_pair_is_voted_on_once_whether_or_not_the_page_is_loaded_again(deck_opened):
    deck = deck_opened("shipped", "#/12")
    panel, tallies = deck.panel("showdown"), []
    forget = "sessionStorage.setItem('isoloss-hands', JSON.stringify({rounds: ['LSTM']}))"
    for before in (None, None, forget):  # control: with the pair forgotten it is voted on once more
        if before:
            deck.page.evaluate(before)
        deck.page.reload()
        deck.page.wait_for_selector("html.ready")
        deck.page.keyboard.press("2")
        tallies.append(panel.locator(".tally").inner_text().split(":")[0])
        expect(panel.locator("[data-vote=B]")).to_have_attribute("aria-pressed", "true")
        expect(panel.locator(".identity").first).to_be_visible()
    assert tallies == ["1 round", "1 round", "2 rounds"]


def test_a_room_that_mostly_sees_no_difference_votes_for_none(deck_opened):
    for a, b, same, came_to in [(1, 0, 20, 1), (5, 0, 5, 1), (6, 1, 5, 0)]:
        panel = deck_opened("shipped", "#/12").panel("showdown")
        for name, hands in (("A", a), ("B", b), ("same", same)):
            panel.locator(f"[data-hands={name}]").fill(str(hands))
        panel.locator("[data-count]").click()
        tally = panel.locator(".tally").inner_text()
        assert tally.startswith("1 round: ")
        assert f"same {came_to}." in tally


def test_nobodys_hands_reveal_nothing(deck_opened):
    deck = deck_opened("served", "#/12")
    taste = run(deck)
    taste.locator("[data-count]").click()
    expect(deck.page.locator("#live")).to_contain_text("enter how many")
    expect(taste.locator(".tally")).to_be_hidden()


def test_each_run_draws_a_seed_unless_somebody_chose_one(deck_opened):
    deck = deck_opened("served", "#/12")
    taste, seeds = deck.panel("taste"), []
    for _ in range(2):
        tasted(deck, key="1")
        seeds.append(taste.locator("[name=seed]").input_value())
    assert len({"0", *seeds}) == 3
    deck.set("taste", seed=41)
    tasted(deck, key="1")
    expect(taste.locator("[name=seed]")).to_have_value("41")
    expect(taste.locator(".numbers")).to_contain_text("seed 41")


def test_guesses_are_counted_and_stand_beside_the_verdict(deck_opened):
    deck = deck_opened("built", "#/3")
    quick = deck.panel("quick")
    for key in ("1", "1", "2"):
        deck.page.keyboard.press(key)
    quick.locator("[data-hands=low]").fill("9")
    room = quick.locator(".room")
    deck.page.focus("section.present h2")
    expect(room).to_be_hidden()
    deck.show()
    expect(room).to_have_text("The room: high 2, low 9.")
    deck.page.reload()
    deck.page.wait_for_selector("html.ready")
    expect(room).to_have_text("The room: high 2, low 9.")
    expect(quick.locator("[data-hands=low]")).to_have_value("9")
    # Control: where nobody guessed, nothing is said of the room.
    expect(deck.panel("second").locator(".room")).to_have_text("")


def test_the_presenters_window_has_notes_and_turns_the_page(deck_opened):
    deck = deck_opened("built", "#/3")
    with deck.page.expect_popup() as popup:
        deck.page.keyboard.press("w")
    window = popup.value
    expect(window.locator("h1")).to_have_text("3 · Slide 3: words & more")
    expect(window.locator("main")).to_have_text("Say 3 first.")
    expect(window.locator(".next")).to_have_text("Next: Slide 4: words & more – Lead.")
    expect(window.locator("header")).to_contain_text(re.compile(r"00:00:\d\d.*step 0 of 3"))
    window.get_by_role("button", name="Next").click()
    expect(window.locator("header")).to_contain_text("step 1 of 3")
    window.locator("h1").click()
    for _ in range(3):  # a clicker whose keys go to the other window
        window.keyboard.press("PageDown")
    expect(window.locator("h1")).to_have_text("4 · Slide 4: words & more")
    expect(deck.page.locator(".counter")).to_have_text("4 / 13")
    assert window.get_by_role("button", name="Run").count() == 0, "a file measures nothing"


def test_the_presenters_window_shows_what_one_more_press_brings(deck_opened):
    deck = deck_opened("built", "#/2")
    with deck.page.expect_popup() as popup:
        deck.page.keyboard.press("w")
    ahead = popup.value.frame_locator("iframe")
    expect(ahead.locator(".share")).to_have_text("50%")  # the cell, a step further than on the screen
    expect(deck.page.locator("section.present .share")).to_have_text("100%")
    deck.slide(3)
    for shown, hidden in (("show", "headline"), ("headline", "beware"), ("beware", "guess")):
        expect(ahead.locator(f"[data-part={shown}]").first).to_be_visible()
        expect(ahead.locator(f"[data-part={hidden}]").first).to_be_hidden()
        deck.page.keyboard.press("PageDown")
    expect(ahead.locator("h2")).to_have_text("Slide 4: words & more")
    letters = "part => parseFloat(getComputedStyle(part).fontSize) / innerHeight"
    preview, stage = ahead.locator("h2").evaluate(letters), deck.page.locator("h2").nth(2).evaluate(letters)
    assert abs(preview - stage) < 0.002, "the same stage, made small"
    assert ahead.locator("section").evaluate("part => part.inert")
    deck.page.keyboard.press("End")
    expect(popup.value.locator("iframe")).to_be_hidden()
    expect(popup.value.locator(".next")).to_have_text("Next: the end")


def test_the_presenters_window_runs_what_the_slide_shows(deck_opened):
    deck = deck_opened("served", "#/3")
    with deck.page.expect_popup() as popup:
        deck.page.keyboard.press("w")
    popup.value.get_by_role("button", name="Run").click()
    expect(popup.value.locator("header ~ p span")).to_have_text("done")


def test_a_run_brings_its_picture_and_a_page_opened_after_it_begins_at_the_first_step(deck_opened):
    at = "stage.reached.get(document.querySelector('section.present'))"
    deck = deck_opened("served", "#/3")
    deck.panel("quick").locator(".run").click()
    expect(deck.panel("quick").locator("[data-part=show]").first).to_be_visible()
    assert deck.page.evaluate(at) == 1
    expect(deck.panel("quick").locator(".state")).to_have_text("done")  # while it runs it would bring steps
    later = deck_opened("served", "#/3")
    expect(later.panel("quick").locator(".told .badge").first).to_have_text("LIVE")
    assert later.page.evaluate(at) == 0


def test_a_clicker_turns_wherever_the_focus_is(deck_opened):
    deck = deck_opened("served", "#/3")
    at = "stage.reached.get(document.querySelector('section.present'))"
    for place in ("h2", "[data-guess]", "[data-hands]", "[name=prompt]", ".run"):
        for key, step in (("PageDown", 1), ("PageUp", 0)):
            deck.page.locator(f"section.present {place}").first.focus()
            deck.page.keyboard.press(key)
            assert deck.page.evaluate(at) == step, (place, key)
    expect(deck.panel("quick").locator("[name=prompt]")).to_have_value("We propose a")
    deck.page.locator("section.present [data-guess]").first.focus()
    deck.page.keyboard.press("ArrowRight")
    assert deck.page.evaluate(at) == 1, "arrows, from a button"


def test_a_slider_leaves_a_clickers_other_keys_alone(deck_opened):
    """Nothing is typed into it: of the keys that a clicker may have only the arrows are its own."""
    deck = deck_opened("built", "#/7")
    slider = deck.page.get_by_label("Temperature")
    slider.focus()
    for dark in (True, False):
        deck.page.keyboard.press("b")
        assert (deck.page.locator("html.blank").count() == 1) == dark
    deck.page.keyboard.press("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("7 / 13")
    expect(slider).to_have_value("1.1")
    deck.page.keyboard.press("Space")
    expect(deck.page.locator(".counter")).to_have_text("8 / 13")


def test_a_clicker_works_with_a_dialog_open_and_can_darken_the_screen(deck_opened):
    deck = deck_opened("built", "#/7")
    deck.page.keyboard.press("o")
    deck.page.keyboard.press("PageDown")
    expect(deck.page.locator("#overview")).to_be_hidden()
    expect(deck.page.locator(".counter")).to_have_text("8 / 13")
    dark = "getComputedStyle(document.documentElement, '::after').backgroundColor"
    assert deck.page.evaluate(dark) != "rgb(0, 0, 0)"
    deck.page.keyboard.press(".")
    assert deck.page.evaluate(dark) == "rgb(0, 0, 0)"
    deck.page.keyboard.press("b")
    assert deck.page.evaluate(dark) != "rgb(0, 0, 0)"


def test_what_the_class_measured_is_saved_as_one_file(deck_opened, browser, tmp_path):
    deck = deck_opened("served", "#/4")
    deck.set("second", prompt="what we did")
    deck.panel("second").locator(".run").click()
    expect(deck.panel("second").locator(".told .badge").first).to_have_text("LIVE")
    with deck.page.expect_download() as download:
        deck.page.click("[data-do=save]")
    assert download.value.suggested_filename == "the-great-shift.html"
    saved = Path(download.value.path()).read_text("utf-8")
    assert "From what we did: the highest of the points" in saved
    assert "data-live" not in saved.split(">")[1]
    page = browser.new_page()
    (tmp_path / "saved.html").write_text(saved, "utf-8")
    page.goto((tmp_path / "saved.html").as_uri() + "#/4")
    page.wait_for_selector("html.ready")
    expect(page.locator(".panel[data-panel=second] .told .badge").first).to_have_text("RECORDED")
    page.close()
