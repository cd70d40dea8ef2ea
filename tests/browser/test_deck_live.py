"""The live deck in a real browser: panels that run, fail and are cancelled; what the page computes."""

import json
from pathlib import Path

import fake_panels
from playwright.sync_api import expect


def test_a_panel_runs_streams_and_finishes_and_other_slides_quote_it(deck_opened):
    deck = deck_opened("served", "#/3")
    panel = deck.panel("quick")
    expect(panel.locator(".told .badge").first).to_have_text("RECORDED")
    deck.set("quick", prompt=fake_panels.HOSTILE[:40], seconds=4, first_seed=5)
    deck.page.evaluate(
        "window.said = []; const live = document.querySelector('#live');"
        "new MutationObserver(() => window.said.push(live.textContent)).observe(live, {childList: true});"
    )
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("r")
    expect(panel.locator(".state")).to_contain_text("% done: step")
    expect(panel.locator(".output figcaption")).to_contain_text("So far")
    expect(panel.locator(".run")).to_be_disabled()
    # A second page, and a reload, see the same job.
    other = deck_opened("served", "#/3")
    expect(other.panel("quick").locator(".state")).to_contain_text("% done: step")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    expect(panel.locator(".output .told")).to_contain_text("From <script>alert(1)</script>")
    before = panel.locator(".before")  # what was recorded stays, folded, for comparison
    expect(before.locator("summary").first).to_have_text("Recorded before, for comparison")
    expect(before.locator(".badge").first).to_be_hidden()
    expect(other.panel("quick").locator(".told .badge").first).to_have_text("LIVE")
    expect(panel.locator(".cancel")).to_be_disabled()
    assert len(deck.page.evaluate("window.said")) <= 3  # at most one in five seconds
    deck.page.reload()
    deck.page.wait_for_selector("html.ready")
    expect(panel.locator(".told .badge").first).to_have_text("LIVE")
    deck.slide(13)
    quoted = deck.page.locator("[data-verdict=quick]")
    expect(quoted.locator(".badge")).to_have_text("LIVE")
    expect(quoted).to_contain_text("n = 2000 unseen strings · 3 seeds · Wilson interval")


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


def test_a_dead_worker_shows_an_error_and_the_deck_lives_on(deck_opened):
    deck = deck_opened("served", "#/3")
    problem = deck.panel("quick").locator(".problem")
    deck.set("quick", end="die")
    deck.panel("quick").locator(".run").click()
    expect(problem).to_contain_text("out of memory, says the kernel")
    deck.page.focus("section.present h2")
    deck.page.keyboard.press("ArrowRight")
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
    expect(deck.panel("quick").locator(".problem")).to_be_hidden()
    deck.set("quick", points=4, rates="0.1, x")
    deck.panel("quick").locator(".run").click()
    expect(deck.panel("quick").locator(".problem")).to_contain_text("rates")
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
    taste.locator(".run").click()
    expect(taste).to_have_attribute("data-state", "running")
    expect(taste).to_have_attribute("data-state", "done")
    told = taste.locator(".told")
    expect(taste.locator("[data-vote]")).to_have_count(2)
    expect(told).to_be_hidden()
    taste.locator("[data-vote=b]").click()
    expect(told).to_be_visible()
    expect(taste.locator("[data-vote=b]")).to_have_attribute("aria-pressed", "true")
    expect(deck.page.locator("#live")).to_contain_text("Your vote: Text 2")


def test_what_is_computed_in_the_page_is_right(deck_opened):
    deck = deck_opened("built", "#/2")
    valves = deck.page.locator("[data-interactive=valves]")
    expect(valves).to_contain_text("= 1.0 letter.")
    valves.get_by_label("Forget gate f").fill("0.95")
    expect(valves).to_contain_text("ln ½ / ln f = 13.5 letters")
    valves.get_by_text("Next letter").click()
    valves.get_by_text("Next letter").click()
    assert valves.locator("tbody tr").count() == 3
    expect(valves.locator("tbody tr").nth(2)).to_contain_text("90.3%")  # 0.95 ** 2
    deck.slide(7)
    dictionary = deck.page.locator("[data-interactive=dictionary]")
    for weight in ("76.8%", "18.7%", "4.5%"):  # softmax of (2, 0, -2) / sqrt 2
        expect(dictionary).to_contain_text(weight)
    dictionary.get_by_label("Temperature").fill("0.1")
    expect(dictionary).to_contain_text("100.0%")
    dictionary.get_by_label("Query, number 1").fill("0")
    expect(dictionary.locator("tbody tr").nth(0)).to_contain_text("33.3%")
