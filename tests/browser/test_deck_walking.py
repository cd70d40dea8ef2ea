"""Walking through the deck in a real browser: keys, addresses, overview, notes, touch."""

import re

from playwright.sync_api import expect


def test_keys_walk_all_slides_and_back_with_focus_title_and_address(deck_opened, either):
    deck = deck_opened(either)
    press = deck.page.keyboard.press

    def stands_at(number):
        expect(deck.page.locator(".counter")).to_have_text(f"{number} / 13")
        if number > 1:  # the first has none before it is left
            expect(deck.page).to_have_url(re.compile(f"#/{number}$"))
        assert deck.focused() == f"Slide {number}: words & more"
        assert deck.page.title() == f"Slide {number}: words & more · {number} / 13 · The Great Shift"
        seen = deck.page.locator(".slides > section:visible")
        expect(seen).to_have_count(1)
        hidden = deck.page.evaluate(
            "[...document.querySelectorAll('.slides > section')].filter(s => s.hidden && s.inert).length"
        )
        assert hidden == 13

    stands_at(1)
    for number in range(2, 14):
        deck.turn(["ArrowRight", "Space", "PageDown"][number % 3])
        stands_at(number)
    deck.turn("ArrowRight")  # the appendix is reached by the overview
    stands_at(13)
    for number in range(12, 0, -1):
        deck.turn(["ArrowLeft", "PageUp"][number % 2])
        stands_at(number)
    press("End")
    stands_at(13)
    press("Home")
    stands_at(1)


def test_an_address_leads_to_its_slide_and_back_goes_back(deck_opened, either):
    deck = deck_opened(either, "#/7")
    assert deck.focused() == "Slide 7: words & more"
    deck.page.keyboard.press("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("8 / 13")
    deck.page.go_back()
    expect(deck.page.locator(".counter")).to_have_text("7 / 13")
    assert deck.focused() == "Slide 7: words & more"


def test_the_overview_lists_all_slides_and_goes_to_one(deck_opened, either):
    deck = deck_opened(either, "#/3")
    deck.page.keyboard.press("o")
    overview = deck.page.locator("#overview")
    expect(overview).to_be_visible()
    expect(overview.locator("a")).to_have_count(14)
    expect(overview.locator("[aria-current]")).to_have_text("3 Slide 3: words & more")
    deck.page.keyboard.press("ArrowRight")  # keys act on the dialog, not on the slides behind it
    expect(deck.page.locator(".counter")).to_have_text("3 / 13")
    deck.page.keyboard.press("Escape")
    expect(overview).to_be_hidden()
    deck.page.click("[data-do=overview]")
    overview.locator("a").nth(10).click()
    expect(overview).to_be_hidden()
    expect(deck.page.locator(".counter")).to_have_text("11 / 13")
    assert deck.focused() == "Slide 11: words & more"


def test_g_with_a_number_goes_there(deck_opened):
    deck = deck_opened("built")
    for key in ("g", "1", "2", "Enter"):
        deck.page.keyboard.press(key)
    expect(deck.page.locator(".counter")).to_have_text("12 / 13")
    deck.page.keyboard.press("g")
    deck.page.keyboard.press("Escape")
    expect(deck.page.locator(".counter")).to_have_text("12 / 13")


def test_notes_help_and_tables_open_and_close(deck_opened):
    deck = deck_opened("built", "#/3")
    note = deck.page.locator("section.present .notes")
    for key, part in (("p", note), ("?", deck.page.locator("#help"))):
        expect(part).to_be_hidden()
        deck.page.keyboard.press(key)
        expect(part).to_be_visible()
        deck.page.keyboard.press("Escape")
        expect(part).to_be_hidden()
    table = deck.panel("quick").locator("table")
    deck.page.keyboard.press("t")
    expect(table).to_be_visible()
    assert table.locator("thead th").all_inner_texts() == ["x", "value", "low", "high", "n"]
    deck.page.keyboard.press("t")
    expect(table).to_be_hidden()


def test_no_key_acts_in_a_field_or_with_a_modifier(deck_opened):
    deck = deck_opened("served", "#/3")
    deck.set("quick", prompt="")
    deck.show()
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


def test_letters_can_be_switched_off_and_stay_off(deck_opened):
    deck = deck_opened("built")
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


def test_tab_never_reaches_another_slide(deck_opened):
    deck = deck_opened("served", "#/4")
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


def test_a_swipe_turns_the_page(deck_opened):
    deck = deck_opened("built", has_touch=True, viewport={"width": 360, "height": 640})
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


def test_the_appendix_is_reached_by_the_overview_and_left_by_its_keys(deck_opened):
    deck = deck_opened("built", "#/13")
    deck.page.keyboard.press("o")
    deck.page.locator("#overview a").last.click()
    expect(deck.page.locator(".counter")).to_have_text("A1")
    deck.turn("ArrowLeft")
    expect(deck.page.locator(".counter")).to_have_text("13 / 13")
    deck.page.keyboard.press("End")
    expect(deck.page.locator(".counter")).to_have_text("13 / 13")


def test_steps_bring_guess_picture_verdict_and_doubt_in_turn(deck_opened):
    deck = deck_opened("built", "#/3")
    parts = {name: deck.panel("quick").locator(f"[data-part={name}]") for name in ("guess", "show")}
    parts |= {name: deck.panel("quick").locator(f"[data-part={name}]") for name in ("headline", "beware")}
    seen = [["guess"], ["guess", "show"], ["show", "headline"], ["show", "headline", "beware"]]
    for names in seen:
        assert [name for name, part in parts.items() if part.is_visible()] == names
        deck.page.keyboard.press("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("4 / 13")
    deck.page.keyboard.press("ArrowLeft")
    expect(parts["beware"]).to_be_visible()
    deck.page.keyboard.press("ArrowLeft")
    expect(parts["beware"]).to_be_hidden()


def test_a_clicker_turns_the_page_from_a_slider_and_escape_leaves_it(deck_opened):
    deck = deck_opened("built", "#/7")
    slider = deck.page.get_by_label("Temperature")
    slider.focus()
    before = slider.input_value()
    deck.page.keyboard.press("PageDown")
    expect(deck.page.locator(".counter")).to_have_text("8 / 13")
    assert slider.input_value() == before
    deck.page.keyboard.press("PageUp")
    slider.focus()
    deck.page.keyboard.press("Escape")
    assert deck.page.evaluate("document.activeElement === document.body")
    deck.page.keyboard.press("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("8 / 13")
