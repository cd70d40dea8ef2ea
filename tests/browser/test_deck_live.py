"""The live deck in a real browser: panels that run, fail and are cancelled; what the page computes."""

import json
import re
from itertools import pairwise
from math import cos, exp, radians, sqrt
from pathlib import Path

import fake_panels
from deck import SAID
from pages import wait_until
from playwright.sync_api import expect


def test_a_job_streams_to_every_page_and_any_of_them_cancels_it(deck_opened):
    deck = deck_opened("served", "#/3")
    panel = deck.panel("quick")
    deck.set("quick", seconds=500)
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("r")
    other = deck_opened("served", "#/3")
    for reloaded in (False, True):
        if reloaded:
            deck.page.reload()
        for page in (deck, other):
            expect(page.panel("quick").locator(".state")).to_contain_text("% done: step")
            expect(page.panel("quick").locator(".output .so-far")).to_contain_text("So far")
            expect(page.panel("quick").locator(".run")).to_be_disabled()
    other.page.keyboard.press("x")
    expect(panel.locator(".state")).to_have_text("cancelled")
    # What was recorded is back, and not twice.
    expect(panel.locator(".told .badge").first).to_have_text("RECORDED")
    expect(panel.locator(".recording")).to_have_count(1)
    expect(panel.locator(".before")).to_be_hidden()


def test_a_panel_finishes_and_other_slides_quote_it(deck_opened):
    deck, other = deck_opened("served", "#/3"), deck_opened("served", "#/3")
    panel = deck.panel("quick")
    expect(panel.locator(".told .badge").first).to_have_text("RECORDED")
    deck.set("quick", prompt=fake_panels.HOSTILE[:40], seconds=2, first_seed=5)
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("r")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    expect(panel.locator(".output .told")).to_contain_text("From <script>alert(1)</script>")
    deck.show()
    expect(panel.locator(".output figure")).to_be_visible()
    expect(panel.locator(".output .headline")).to_be_visible()
    before = panel.locator(".before")  # what was recorded stays, folded, for comparison
    expect(before.locator("summary").first).to_have_text("Recorded before, for comparison")
    expect(before.locator(".badge").first).to_be_hidden()
    expect(other.panel("quick").locator(".told .badge").first).to_have_text("LIVE")
    expect(panel.locator(".cancel")).to_be_disabled()
    deck.page.reload()
    deck.page.wait_for_selector("html.ready")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    deck.slide(13)
    quoted = deck.page.locator("[data-verdict=quick]")
    expect(quoted.locator(".badge")).to_have_text("LIVE")
    expect(quoted).to_contain_text("n = 2000 unseen strings · 3 seeds · Wilson interval")


def test_progress_is_read_aloud_once_in_five_seconds(deck_opened):
    """The newest each time. The clock of the page is ours, the progress is the server's."""
    deck = deck_opened("served", "#/3", still=True)
    panel, page = deck.panel("quick"), deck.page
    page.locator("#live").evaluate(SAID)
    deck.set("quick", seconds=500)
    panel.locator(".run").click()

    def step_of(text):
        return int(re.search(r"% done: step (\d+) of", text)[1])

    def news():
        """The step that the panel is at, once that is another than before."""
        state = panel.locator(".state")
        expect(state).not_to_have_text(state.text_content())
        expect(state).to_contain_text("% done: step")
        return step_of(state.text_content())

    announcements = []
    for _ in range(10):
        newest, before = news(), len(announcements)
        page.clock.run_for(1_700)
        announcements = page.evaluate("window.said")
        assert all(step_of(one["text"]) >= newest for one in announcements[before:])
    gaps = [round(later["at"] - one["at"]) for one, later in pairwise(announcements)]
    assert len(gaps) > 1
    assert gaps == [5_000] * len(gaps)
    panel.locator(".cancel").click()
    expect(panel.locator(".state")).to_have_text("cancelled")


def test_the_next_seeds_follow_the_last(deck_opened):
    deck = deck_opened("served", "#/4")
    deck.panel("second").locator(".run").focus()  # with the focus in a panel, keys act on that one
    deck.page.keyboard.press("s")
    expect(deck.panel("second").locator(".told .badge").first).to_have_text("LIVE")
    expect(deck.panel("second").locator("[name=first_seed]")).to_have_value("3")
    expect(deck.panel("second").locator(".numbers")).to_contain_text("first seed 3")
    expect(deck.panel("timed").locator(".output")).to_contain_text("Not measured yet")


def test_a_panel_can_be_cancelled(deck_opened):
    deck = deck_opened("served", "#/3")
    deck.set("quick", seconds=500)
    deck.panel("quick").locator(".run").click()
    expect(deck.panel("quick").locator(".state")).to_contain_text("% done")
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("x")
    expect(deck.panel("quick").locator(".state")).to_have_text("cancelled")
    expect(deck.panel("quick").locator(".run")).to_be_enabled()


def test_the_key_that_began_a_run_does_not_end_it(deck_opened):
    """A space right after Run turns the page; after the run the focus is where it was."""
    deck = deck_opened("served", "#/3")
    panel, asked = deck.panel("quick"), []
    deck.page.on("request", lambda one: asked.append(one.url.rsplit("/")[-1]))
    deck.set("quick", seconds=500)
    panel.locator(".run").focus()
    deck.page.keyboard.press("Space")
    expect(panel.locator(".run")).to_be_disabled()
    deck.page.keyboard.press("Space")
    expect(panel.locator(".output .so-far")).to_be_attached()
    assert asked == ["run"]
    assert "Slide 3" in deck.focused()
    deck.page.keyboard.press("x")
    expect(panel.locator(".state")).to_have_text("cancelled")
    assert "Slide 3" in deck.focused()
    deck.set("quick", seconds=0)
    panel.locator(".run").focus()
    deck.page.keyboard.press("Space")
    expect(panel.locator(".state")).to_have_text("done")
    assert "Slide 3" in deck.focused()


def test_a_cancelled_run_gives_back_what_was_measured(deck_opened):
    deck = deck_opened("served", "#/4")
    panel = deck.panel("second")
    deck.set("second", prompt="kept")
    panel.locator(".run").click()
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    deck.set("second", seconds=500)
    panel.locator(".run").click()
    expect(panel.locator(".so-far")).to_be_attached()
    panel.locator(".cancel").click()
    expect(panel.locator(".state")).to_have_text("cancelled")
    expect(panel.locator(".told")).to_contain_text("From kept")
    expect(panel.locator(".so-far")).to_have_count(0)
    deck.page.reload()
    deck.page.wait_for_selector("html.ready")
    expect(panel.locator(".told")).to_contain_text("From kept")
    timed = deck.panel("timed")  # never measured before: it says so again
    deck.behind()
    deck.set("timed", seconds=500)
    timed.locator(".run").click()
    expect(timed.locator(".so-far")).to_be_attached()
    timed.locator(".cancel").click()
    expect(timed.locator(".output")).to_contain_text("Not measured yet")


def test_a_dead_worker_shows_an_error_and_the_deck_lives_on(deck_opened):
    deck = deck_opened("served", "#/3")
    problem = deck.panel("quick").locator(".problem")
    deck.set("quick", end="die")
    deck.panel("quick").locator(".run").click()
    expect(problem).to_contain_text("out of memory, says the kernel")
    deck.page.focus("section.present h2")
    deck.turn("ArrowRight")
    expect(deck.page.locator(".counter")).to_have_text("4 / 13")
    deck.page.keyboard.press("ArrowLeft")
    deck.set("quick", end="well")
    deck.panel("quick").locator(".run").click()
    expect(problem).to_be_hidden()
    expect(deck.panel("quick").locator(".state")).to_have_text("done")


def test_a_job_over_its_cap_says_so(deck_opened):
    deck = deck_opened("served", "#/5")
    deck.set("capped", seconds=500)
    deck.panel("capped").locator(".run").click()
    expect(deck.panel("capped").locator(".problem")).to_contain_text("more than its cap of 1 seconds")


def test_settings_out_of_bounds_are_not_sent_and_those_only_the_server_sees_are_told(deck_opened):
    deck = deck_opened("served", "#/3")
    deck.set("quick", points=51)
    deck.panel("quick").locator(".run").click()
    assert deck.page.evaluate("document.activeElement.name") == "points"
    deck.page.keyboard.press("Escape")
    deck.page.keyboard.press("Escape")
    expect(deck.panel("quick").locator(".problem")).to_be_hidden()
    deck.set("quick", points=4, rates="0.1, x")
    deck.panel("quick").locator(".run").click()
    expect(deck.panel("quick").locator(".problem")).to_contain_text("rates")
    wait_until(deck.page, lambda: deck.errors)
    assert deck.errors.pop().startswith("Failed to load resource")  # the browser's own line about status 422


def test_run_all_runs_and_results_are_exported(deck_opened):
    deck = deck_opened("served", "#/13")
    deck.page.click("[data-do=run-all]")
    # The capped panel's second goes by while its worker starts: it need not finish.
    for name in ("quick", "second", "timed", "taste"):
        expect(deck.panel(name).locator(".state")).to_have_text("done")
    with deck.page.expect_download() as download:
        deck.page.click("[data-do=export]")
    made = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert download.value.suggested_filename == "results.json"
    assert {"quick", "second", "timed", "taste"} <= {one["panel"] for one in made["results"]}


def test_a_vote_comes_before_the_reveal(deck_opened):
    deck = deck_opened("served", "#/12")
    taste = deck.panel("taste")
    deck.set("taste", prompt="blind")
    taste.locator(".run").click()
    expect(taste.locator(".told")).to_contain_text("From blind")
    headline = taste.locator(".headline")
    expect(taste.locator("[data-vote]")).to_have_count(2)
    expect(headline).to_be_hidden()
    taste.locator("[data-vote=B]").click()
    expect(headline).to_be_visible()
    expect(taste.locator("[data-vote=B]")).to_have_attribute("aria-pressed", "true")
    expect(taste.locator("[data-vote=A]")).to_be_disabled()  # a vote is cast once
    expect(deck.page.locator("#live")).to_contain_text("Your vote: Text 2")


def test_the_cell_is_stepped_by_the_arrow_and_its_ink_is_exact(deck_opened):
    deck = deck_opened("built", "#/2")
    cell = deck.page.locator("[data-machine=cell]")
    expect(cell.locator(".sentence")).to_contain_text("Half is gone after 1 letter.")
    expect(cell.locator(".share")).to_have_text("100%")
    for left in ("50%", "25%", "13%", "6%"):  # 0.5 ** t
        deck.page.keyboard.press("ArrowRight")
        expect(cell.locator(".share")).to_have_text(left)
    cell.get_by_label("Forget").fill("0.95")
    expect(cell.locator(".sentence")).to_contain_text("Half is gone after 14 letters.")
    expect(cell.locator(".share")).to_have_text("81%")  # 0.95 ** 4
    cell.get_by_label("Your word").fill("a much longer word of thirty!!")
    expect(cell.locator(".share")).to_have_text("23%")  # 0.95 ** 29
    assert cell.locator("circle.ink").count() == 30
    expect(cell.locator("svg")).to_have_attribute("aria-label", re.compile("23% of the ink of “a” is left"))
    cell.get_by_text("Play").click()  # with reduced motion at once
    expect(cell.locator(".share")).to_have_text("23%")


def test_the_dictionary_is_exact(deck_opened):
    deck = deck_opened("built", "#/7")
    dictionary = deck.page.locator("[data-machine=dictionary]")
    dictionary.get_by_role("slider", name="Query").fill("60")
    dictionary.get_by_label("Temperature").fill("1")
    # softmax of 4 cos(0, 105, 155 degrees) / sqrt 2
    for share in ("97%", "3%", "<1%"):
        expect(dictionary.locator("svg")).to_contain_text(share)
    dictionary.get_by_label("Temperature").fill("0.1")
    expect(dictionary.locator("svg")).to_contain_text("100%")
    dictionary.get_by_role("slider", name="Query").fill("170")
    expect(dictionary.locator(".sentence")).to_contain_text("“money”")
    # Where the query looks at nothing much, no key gives most of the answer.
    dictionary.get_by_role("slider", name="Query").fill("110")
    dictionary.get_by_label("Temperature").fill("4")
    shares = [exp(4 * cos(radians(at - 110)) / sqrt(2) / 4) for at in (60, 165, 215)]
    share = round(100 * max(shares) / sum(shares))
    assert share < 50
    expect(dictionary.locator(".sentence")).to_have_text(f"“river” gives {share}% of the answer. EXACT")


def test_the_web_follows_the_focus_and_shows_real_weights(deck_opened):
    deck = deck_opened("shipped", "#/9")
    web = deck.panel("trained").locator("[data-machine=web]")
    arrays = json.loads(web.get_attribute("data-arrays"))
    web.get_by_role("group", name="Layer", exact=True).get_by_text("1").click()
    web.get_by_role("group", name="Head").get_by_text("2").click()
    web.locator(".pill[tabindex]").nth(4).focus()
    weights = arrays["weights"]["trained"][0][1][4]
    best = weights.index(max(weights))
    looks = f"“{arrays['tokens'][4]}” looks most at {arrays['tokens'][best]}"
    expect(web.locator(".sentence")).to_contain_text(looks)
    widths = (
        web.locator("g.row")
        .first.locator("path.arc")
        .evaluate_all("arcs => arcs.map(arc => Number(arc.getAttribute('stroke-width')))")
    )
    assert len(widths) == 5, "backwards only"
    assert sorted(widths) == sorted(max(0.8, 30 * weight) for weight in weights)
    assert "looking" in web.locator(".pill[tabindex]").nth(4).get_attribute("class")
    assert deck.page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    web.get_by_role("group", name="Blur").get_by_text("1").click()
    flat = next(row for row in arrays["next"] if row["flattened"] == 1)
    expect(web.locator(".next")).to_contain_text(flat["likeliest"][0][0])
