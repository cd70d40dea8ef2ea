"""The live page in a real browser while its studies change: by keyboard, on a phone, without its server."""

import signal
import subprocess
import sys

import pytest
from halfway import HOSTILE, halfway
from pages import violations, watched
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    place = tmp_path_factory.mktemp("live")
    with halfway(place / "one", ended=-4) as one, halfway(place / "two", "reference/shape", ended=4) as two:
        yield one, two


@pytest.fixture(scope="module")
def server(studies):
    folders = [str(study.folder) for study in studies]
    command = [sys.executable, "-m", "isoloss.cli", "serve", *folders, "--no-open"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield started
    started.terminate()
    started.wait(30)
    started.stderr.close()


@pytest.fixture(scope="module")
def served(server):
    return server.stderr.readline().split()[-1]


@pytest.fixture(scope="module")
def opened(browser, served):
    watch = watched(browser, served, color_scheme="dark")
    expect(watch.page.locator("#s0-params svg").first).to_be_visible()
    expect(watch.page.locator("#s1-missing")).to_be_attached()  # with its figures the section comes anew
    return watch


def row(page, run_id, place="s0"):
    return page.locator(f"#{place}-run-{run_id}")


def test_it_shows_the_law_and_its_band_beside_the_other_study(opened, studies):
    page = opened.page
    expect(page.locator("#link")).to_have_text("Live")
    expect(page.locator("#s0-params")).to_contain_text("law")
    assert page.locator("#s0-params .wide .mark-area path").count() > 0
    left, right = (page.locator(f"#{name}").bounding_box() for name in ("s0", "s1"))
    assert left["x"] + left["width"] <= right["x"]
    assert page.locator("#s0 .plot polyline").count() == len(studies[0].runs)


def test_what_changes_is_put_in_place_and_the_rest_is_left_alone(opened, studies):
    page, (one, _) = opened.page, studies
    page.evaluate("document.querySelectorAll('tr, section, polyline').forEach(part => { part.kept = true; })")
    one.go_on(one.running[0], 300)
    expect(row(page, one.running[0])).to_contain_text(f"step 300 of {one.updates(one.running[0]):,}")
    kept = page.evaluate("[...document.querySelectorAll('#s0 tr')].filter(part => part.kept).length")
    assert kept == len(one.runs), "the table's head and every run but one"
    assert page.evaluate("document.getElementById('s0').kept")


def test_a_worker_that_dies_leaves_its_runs_waiting(opened, studies):
    page, (_, two) = opened.page, studies
    expect(row(page, two.running[0], "s1").locator(".state")).to_have_text("running")
    two.die()
    expect(row(page, two.running[0], "s1").locator(".state")).to_have_text("waiting")


def test_what_would_show_nothing_is_no_choice_but_where_it_was_chosen(opened):
    def offered(place):
        return opened.page.locator(f"#{place} .runs label:visible").all_inner_texts()

    everything = ["all", "running", "waiting", "ended", "failed"]
    assert [word.strip() for word in offered("s0")] == everything
    # Chosen for so many runs while some of them ran: their workers have died since.
    assert opened.page.is_checked("input[name=s1-shown][value=running]")
    assert [word.strip() for word in offered("s1")] == everything, "what is chosen stays in sight"
    opened.page.check("input[name=s1-shown][value=all]")
    assert [word.strip() for word in offered("s1")] == ["all", "waiting", "ended", "failed"]


def test_by_keyboard_the_runs_shown_are_chosen_and_stay_chosen(opened, studies):
    page, (one, _) = opened.page, studies
    page.locator("input[name=s0-shown][value=all]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#s0 tbody tr:visible")).to_have_count(2)
    one.go_on(one.running[0], 310)
    expect(row(page, one.running[0])).to_contain_text(f"step 310 of {one.updates(one.running[0]):,}")
    assert page.evaluate("document.activeElement.value") == "running"
    expect(page.locator("#s0 tbody tr:visible")).to_have_count(2)
    page.keyboard.press("ArrowLeft")
    page.locator("#s0 .runs .scroll").focus()
    assert page.evaluate("document.activeElement.className") == "scroll"


def test_a_reload_has_everything(opened, studies):
    page, (one, _) = opened.page, studies
    page.reload()
    expect(page.locator("#s0-params svg").first).to_be_visible()
    expect(row(page, one.failed)).to_contain_text(HOSTILE)
    expect(page.locator("#link")).to_have_text("Live")


def test_axe_finds_nothing_and_nothing_outside_was_asked_for(opened):
    assert violations(opened.page) == []
    assert opened.outside == []
    assert opened.errors == []
    assert opened.dialogs == []
    assert opened.page.evaluate("window.violations") == []


def test_a_phone_is_not_scrolled_sideways(browser, served):
    phone = watched(browser, served, viewport={"width": 360, "height": 740}).page
    expect(phone.locator("#s0-params .narrow svg")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    boxes = [tick.bounding_box() for tick in phone.locator(".axes .x").all()]
    assert boxes
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 360 for box in boxes)
    phone.context.close()


def test_it_says_that_the_line_is_lost(opened, server):
    server.send_signal(signal.SIGINT)
    expect(opened.page.locator("#link")).to_have_text("Connection lost, trying again")
    assert server.wait(30) == 0
    assert "has ended" in server.stderr.read()
