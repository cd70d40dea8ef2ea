"""One Chromium for all; the deck live from its server with quick panels, as one file, and as it ships.

Whatever a test opens, nothing outside was asked for and nothing went wrong.
"""

import subprocess
import sys

import fake_panels
import pytest
from deck import open_deck
from fake_panels import PANELS, SLIDES
from pages import ARGUMENTS, chromium
from playwright.sync_api import sync_playwright

from isoloss.teach import result
from isoloss.teach.deck import page as deck_page


@pytest.fixture(scope="module")
def browser():
    """One a file: playwright keeps a loop running in the worker, where other tests start their own."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    result.write(fake_panels.recorded(), folder)
    return folder


@pytest.fixture(scope="module")
def served(recorded, browser):
    """The address of a live deck with quick panels."""
    server = subprocess.Popen(
        [sys.executable, fake_panels.__file__, "serve", str(recorded)], stderr=subprocess.PIPE, text=True
    )
    yield server.stderr.readline().split()[-1]
    server.terminate()
    server.wait(30)
    server.stderr.close()


@pytest.fixture(scope="session")
def built(recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("built") / "deck.html"
    path.write_text(deck_page.build(recorded, panels=PANELS, sources=SLIDES), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="session")
def shipped(once):
    """The deck that ships, with its own words and recordings."""
    return once("deck.html", deck_page.build).as_uri()


@pytest.fixture(scope="session")
def shipped_live(once):
    """The same as its server shows it, with forms; nothing answers them."""
    return once("live.html", lambda: deck_page.build(live=True)).as_uri()


@pytest.fixture
def deck_opened(browser, request):
    """A function that opens a page and closes it; nothing outside was asked for, nothing went wrong."""
    pages = []

    def open_one(name, hash="", **context):
        one = open_deck(browser, request.getfixturevalue(name), hash, **context)
        pages.append(one)
        return one

    yield open_one
    for one in pages:
        one.page.context.close()
    assert [one.outside for one in pages] == [[]] * len(pages)
    assert [one.errors for one in pages] == [[]] * len(pages)


@pytest.fixture(params=["served", "built"])
def either(request):
    return request.param
