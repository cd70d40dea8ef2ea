"""The drawings that move, the last slide's evidence, and a live run that moves nothing."""

import json
import re

from deck import SAID
from playwright.sync_api import expect
from test_deck_stage import MEASURE

BOXES = """() => Object.fromEntries(['h2', '.lead', '.panel .run', '.panel .foot', '.panel .beware',
    '.panel .state', '.panel [data-part=show] svg'].map((selector) => {
    const box = document.querySelector('section.present ' + selector).getBoundingClientRect();
    return [selector, [box.x, box.y, box.width].map(Math.round)];
}))"""


def counts(race):
    return race.locator("text.count").all_text_contents()


# What the race shows is kept each time it changes, while the clock runs through all of its rounds.
WATCH = """() => {
    const race = document.querySelector('section.present [data-machine=race]');
    const laps = (family) => race.querySelectorAll('rect.lap.' + family).length;
    const texts = (part) => [...race.querySelectorAll(part)].map((one) => one.textContent);
    window.seen = [];
    new MutationObserver(() => window.seen.push({
        done: laps('lstm'), boxes: laps('transformer'),
        count: texts('text.count')[1], sentence: texts('.sentence').join(' '),
    })).observe(race, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


def words(boxes, rounds):
    return f"{boxes} box{'es' * (boxes != 1)}, {rounds} round{'s' * (rounds != 1)}"


def played(page, race, start):
    """What the race showed, round by round, from `start()` to its end."""
    page.evaluate(WATCH)
    start()
    assert counts(race) == [words(0, 0)] * 2, "it begins with empty boxes"
    page.clock.run_for(60_000)
    return [look for look in page.evaluate("window.seen") if look["done"]]


def test_the_race_fills_a_row_box_by_box_and_a_triangle_at_once(deck_opened):
    deck = deck_opened("shipped", "#/11", still=True, reduced_motion="no-preference")
    race = deck.page.locator("section.present [data-machine=race]")
    assert counts(race) == ["0 boxes, 0 rounds", "0 boxes, 0 rounds"]
    seen = played(deck.page, race, lambda: deck.page.keyboard.press("ArrowRight"))
    assert [look["done"] for look in seen] == list(range(1, 9))
    assert {(look["boxes"], look["count"]) for look in seen} == {(36, "36 boxes, 1 round")}
    assert all("rounds" not in look["sentence"] for look in seen if look["done"] < 8)
    assert counts(race) == ["8 boxes, 8 rounds", "36 boxes, 1 round"]
    expect(race.locator(".sentence")).to_have_text("More boxes, fewer rounds. EXACT")


def test_the_race_is_at_its_end_at_once_where_motion_is_not_wanted_and_is_read_aloud(deck_opened):
    deck = deck_opened("shipped", "#/11")
    race = deck.page.locator("section.present [data-machine=race]")
    name = race.locator("svg").first
    expect(name).to_have_attribute(
        "aria-label", "Empty boxes: a row of 8 for the LSTM, a triangle of 36 for attention."
    )
    deck.page.keyboard.press("ArrowRight")
    assert counts(race) == ["8 boxes, 8 rounds", "36 boxes, 1 round"]
    race.get_by_role("slider", name="Words").fill("16")
    assert counts(race) == ["16 boxes, 16 rounds", "136 boxes, 1 round"]
    description = name.get_attribute("aria-label")
    assert "fills 16 of 16 boxes in as many rounds" in description
    assert "136 boxes, all in the first round" in description


def test_attention_needs_as_many_rounds_as_its_boxes_at_once_allow(deck_opened):
    deck = deck_opened("shipped", "#/11")
    race = deck.page.locator("section.present [data-machine=race]")
    deck.page.keyboard.press("ArrowRight")
    at_once = race.get_by_role("group", name="Boxes at once")
    for words, k, rounds in ((8, 1, 36), (8, 2, 18), (5, 2, 8), (16, 1, 136), (16, 136, 1)):
        race.get_by_role("slider", name="Words").fill(str(words))
        at_once.get_by_text("all" if k > 2 else str(k), exact=True).click()
        boxes, more = words * (words + 1) // 2, "fewer" if rounds < words else "more"
        attention_count = f"{boxes} boxes, {rounds} round{'s' * (rounds > 1)}"
        assert counts(race) == [f"{words} boxes, {words} rounds", attention_count]
        expect(race.locator(".sentence")).to_have_text(f"More boxes, {more} rounds. EXACT")


def test_the_triangle_fills_two_boxes_a_round(deck_opened):
    deck = deck_opened("shipped", "#/11", still=True, reduced_motion="no-preference")
    race = deck.page.locator("section.present [data-machine=race]")
    two = race.get_by_role("group", name="Boxes at once").get_by_text("2", exact=True)
    seen = [(look["done"], look["boxes"], look["count"]) for look in played(deck.page, race, two.click)]
    assert seen == [(min(n, 8), 2 * n, words(2 * n, n)) for n in range(1, 19)]


PILLS = "[...document.querySelectorAll('section.present .pill')]"
WIDER = f"""{PILLS}.map((pill) => ['text', 'rect'].map((one) =>
    pill.querySelector(one).getBoundingClientRect().width).reduce((text, rect) => text - rect))"""


CUT = f"""{PILLS}.filter((pill) => {{
    const [rect, svg] = [pill.querySelector('rect'), pill.closest('svg')].map((one) =>
        one.getBoundingClientRect());
    return rect.left < svg.left || rect.right > svg.right;
}}).map((pill) => pill.textContent)"""


def test_the_longest_sentence_stands_in_its_pills(deck_opened):
    deck = deck_opened("shipped", "#/9")
    web = deck.panel("trained").locator("[data-machine=web]").first
    arrays = json.loads(web.get_attribute("data-arrays"))
    assert deck.page.evaluate(CUT) == [], "as it ships"
    count = 25
    rows = [[0.3, 0.7, *[0.0] * (t - 1)][: t + 1] for t in range(count)]
    heads = [[rows] * len(layer) for layer in arrays["weights"]["trained"]]
    arrays |= {"tokens": ["extraordinary", "in", "Mississippi"] * 8 + ["whom"]}
    arrays["weights"] = {"trained": heads, "random": heads}
    web.evaluate("(place, arrays) => window.machines.feed(place, arrays)", json.dumps(arrays))
    wider = deck.page.evaluate(WIDER)
    assert len(wider) == 2 * count, "in both rows"
    assert max(wider) <= 0
    assert deck.page.evaluate(MEASURE)["faults"] == []
    # Control: as they come, long tokens stand out of their pills.
    deck.page.evaluate(f"{PILLS}.forEach((pill) => pill.lastChild.removeAttribute('textLength'))")
    assert max(deck.page.evaluate(WIDER)) > 0


def test_one_column_shows_how_every_drawing_ends(deck_opened):
    deck = deck_opened("shipped", "#/11", viewport={"width": 360, "height": 640})
    race = deck.page.locator("section.present [data-machine=race]")
    assert counts(race) == ["8 boxes, 8 rounds", "36 boxes, 1 round"]
    deck.slide(8)
    web = deck.page.locator("section.present [data-machine=web]").first
    last = json.loads(web.get_attribute("data-arrays"))["tokens"][-1]
    expect(web.locator(".sentence")).to_contain_text(f"“{last}” looks most")


def test_paper_has_the_scoreboard_and_the_results_of_panels(deck_opened):
    deck = deck_opened("shipped", "#/13")
    deck.page.emulate_media(media="print")
    deck.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    visible = "one => document.querySelector(one).checkVisibility({visibilityProperty: true})"
    parts = [".scoreboard", ".answer", ".proof", ".alone", ".panel[data-panel=binding] .output figure"]
    parts += [".block .said[data-at='3']", ".block .said[data-at='1']"]
    seen = [deck.page.evaluate(visible, part) for part in parts]
    assert seen == [True, True, False, False, True, True, False]
    # The race, whose steps end before its slide's, is on the handout.
    race = [f".panel[data-panel=race] .output {part}" for part in ("figure", ".headline p")]
    for handout in (False, True):
        assert [deck.page.evaluate(visible, part) for part in race] == [handout] * 2
        deck.page.keyboard.press("p")


def test_the_arrow_key_asks_card_by_card_and_play_reads_on(deck_opened):
    deck = deck_opened("shipped", "#/8")
    web = deck.page.locator("section.present [data-machine=web]").first
    arrays = json.loads(web.get_attribute("data-arrays"))
    last, tokens = len(arrays["tokens"]) - 1, arrays["tokens"]
    while web.is_hidden():
        deck.page.keyboard.press("ArrowRight")
    for place in range(last - 3, last + 1):
        weights = max(
            (head for layer in arrays["weights"]["trained"] for head in layer),
            key=lambda rows: max(rows[last][:last]),
        )[place]
        best = weights.index(max(weights))
        expect(web.locator(".sentence")).to_contain_text(f"“{tokens[place]}” looks most at {tokens[best]}")
        painted = "one => getComputedStyle(one)[one.matches('circle') ? 'fill' : 'backgroundColor']"
        asked, dot = web.locator(".pill.best circle"), web.locator(".sentence .dot")
        assert dot.evaluate(painted) == asked.evaluate(painted), "a colour was asked for"
        deck.page.keyboard.press("ArrowRight")
    deck.page.keyboard.press("ArrowLeft")
    assert deck.page.inner_text(".counter").startswith("8 /")
    web.locator(".pill[tabindex]").nth(1).focus()
    expect(web.locator(".sentence")).to_contain_text(f"“{tokens[1]}” looks most")
    web.get_by_text("Play").click()  # with reduced motion it ends at once
    expect(web.locator(".sentence")).to_contain_text(f"“{tokens[last]}” looks most")


def test_the_picture_of_a_trained_head_is_of_the_head_that_the_headline_names(deck_opened):
    deck = deck_opened("shipped", "#/9")
    panel, words = deck.panel("trained"), ("first", "second", "third", "fourth")
    pressed = panel.locator(".choice [aria-pressed=true]").all_inner_texts()[:2]
    layer, head = (words[int(number) - 1] for number in pressed)
    deck.show()
    headline = panel.locator(".headline p").first
    expect(headline).to_contain_text(
        f"{layer.capitalize()} layer, {head} head, picked from 16: looks mostly at"
    )
    best = panel.locator(".pill.best text").first.text_content()
    expect(headline).to_contain_text(f"“{best}”")


def test_each_tap_of_the_belt_has_its_name(deck_opened):
    deck = deck_opened("shipped", "#/2")
    names = deck.page.locator("section.present [data-machine=cell] text.gate")
    assert names.all_text_contents() == ["output", "input"], "nothing has passed a forget tap"
    deck.page.keyboard.press("ArrowRight")
    assert names.all_text_contents() == ["forget", "output", "input"]


def test_after_the_block_a_real_head_is_asked_word_by_word(deck_opened):
    deck = deck_opened("shipped", "#/5")
    block, web = (deck.page.locator(f"section.present {one}") for one in (".block", "[data-machine=web]"))
    seen = []
    for step in deck.steps():
        seen.append((block.is_visible(), web.is_visible(), web.locator(".pill.looking").count()))
        shown = deck.page.locator("section.present")  # what is announced says the same words
        real, guess = (
            shown.get_by_text(words) for words in ("A trained head, picked", "Guess the next word.")
        )
        assert (real.is_visible(), guess.is_visible()) == (step > 3, step == 3)
        assert deck.page.evaluate(MEASURE)["faults"] == [], step
    assert seen == [(True, False, 1)] * 4 + [(False, True, 1)] * 3
    last = json.loads(web.get_attribute("data-arrays"))["tokens"][-1]
    expect(web.locator(".sentence")).to_contain_text(f"“{last}” looks most at")
    expect(web.get_by_role("group")).to_have_count(1)  # the drawing: no heads to pick yet, no layer to blur


def test_play_goes_from_token_to_token(deck_opened):
    deck = deck_opened("shipped", "#/9", still=True, reduced_motion="no-preference")
    web = deck.panel("trained").locator("[data-machine=web]").first
    tokens = json.loads(web.get_attribute("data-arrays"))["tokens"]
    web.locator(".sentence").evaluate(SAID)
    for stopped, read in ((False, tokens), (True, tokens[:1])):
        web.get_by_text("Play").click()
        if stopped:
            web.get_by_text("Stop").click()
        deck.page.clock.run_for(60_000)
        announcements = [
            one["text"].split(" looks most")[0] for one in deck.page.evaluate("window.said.splice(0)")
        ]
        assert announcements == [f"RECORDED “{token}”" for token in read]
        expect(web.get_by_text("Play")).to_be_visible()


def test_what_blurring_a_layer_does_is_said_beside_the_list_that_it_changes(deck_opened):
    deck = deck_opened("shipped", "#/9")
    panel = deck.panel("trained")
    web = panel.locator("[data-machine=web]").first
    rows = json.loads(web.get_attribute("data-arrays"))["next"]
    before = web.locator(".next").inner_text()
    deck.show()
    place = web.get_by_role("group", name="Blur").bounding_box()
    for row in (row for row in rows if row["flattened"]):
        web.get_by_role("group", name="Blur").get_by_text(str(row["flattened"])).click()
        expect(web.locator(".sentence")).to_contain_text(row["sentence"])
        assert web.locator(".next").inner_text() != before
        assert web.get_by_role("group", name="Blur").bounding_box() == place, "nothing moves"
    web.get_by_role("group", name="Blur").get_by_text("none").click()
    expect(web.locator(".sentence")).to_contain_text("looks most")
    expect(panel.locator(".headline p")).to_have_count(2)
    expect(panel.locator(".headline p").last).to_be_visible()


def test_the_last_slide_shows_one_picture_then_the_answer_then_its_own_evidence(deck_opened):
    deck = deck_opened("shipped", "#/13")
    score = deck.page.locator("section.present .scoreboard")
    proofs, answer = deck.page.locator("section.present .proof"), deck.page.locator(".answer")
    seen = []
    for _ in range(5):
        proof = [proofs.nth(number).is_visible() for number in range(2)]
        seen.append((score.is_visible(), answer.is_visible(), *proof))
        deck.page.keyboard.press("ArrowRight")
    assert seen == [
        (False, False, False, False),
        (True, False, False, False),
        (True, True, False, False),
        (False, True, True, False),
        (False, True, False, True),
    ]
    expect(answer.locator(".badge")).to_have_text("CITED")
    expect(proofs.locator(".badge")).to_have_text(["RECORDED", "RECORDED"])
    expect(proofs.locator("figure .scroll svg")).to_have_count(2)
    for row in score.locator("tbody tr").all():
        sides = {name: row.locator(f".side.{name.lower()} span") for name in ("LSTM", "Transformer")}
        shown = [name for name, bar in sides.items() if bar.evaluate("bar => bar.checkVisibility()")]
        assert shown == [name for name in sides if name == row.get_attribute("data-ahead")]
        assert all(re.search(r"\d", sides[name].text_content()) for name in shown), "by how much"
    expect(deck.page.locator("section.present .quoted")).to_contain_text("one seed, no verdict")


def test_a_live_run_moves_nothing_while_it_streams(deck_opened):
    deck = deck_opened("served", "#/3")
    deck.show()
    before = deck.page.evaluate(BOXES)
    deck.set("quick", seconds=500)
    panel = deck.panel("quick")
    panel.locator(".run").click()
    expect(panel.locator(".so-far")).to_be_attached()
    assert deck.page.evaluate(BOXES) == before
    panel.locator(".cancel").click()
    expect(panel.locator(".state")).to_have_text("cancelled")
    assert deck.page.evaluate(BOXES) == before
    # Control: the boxes do see what moves.
    deck.page.evaluate("document.querySelector('section.present .lead').style.marginBottom = '40px'")
    assert deck.page.evaluate(BOXES) != before


def test_the_class_stops_a_run_and_keeps_what_was_measured(deck_opened):
    deck = deck_opened("served", "#/4")
    panel = deck.panel("timed")
    deck.set("timed", seconds=500)
    expect(panel.locator(".stop")).to_be_hidden()
    expect(deck.panel("second").locator(".stop")).to_have_count(0)
    panel.locator(".run").focus()
    deck.page.keyboard.press("Enter")
    expect(panel.locator(".so-far")).to_be_attached()
    deck.page.keyboard.press("e")
    expect(panel.locator(".state")).to_have_text("done")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    points = int(panel.locator(".told .sentence").nth(1).inner_text().split()[3])
    assert 0 < points < 10_000, "less than the whole run"
