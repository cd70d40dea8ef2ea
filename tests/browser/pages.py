"""Pages in Chromium, watched: a request that goes elsewhere is refused and noted, and so is every error."""

import os
import shutil
import time
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000
HOUR = 3_600_000
VIOLATIONS = (
    "window.violations = [];"
    "document.addEventListener('securitypolicyviolation', e => window.violations.push(e.violatedDirective))"
)


def chromium():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None and os.environ.get("CI"):
        pytest.fail("no Chromium: set CHROMIUM to its path, or install it")
    if path is None:
        pytest.skip("no Chromium here: set CHROMIUM to its path")
    return path


@dataclass
class Watched:
    """A page and everything that went wrong with it."""

    page: object
    address: str
    outside: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    dialogs: list = field(default_factory=list)


def watched(browser, address, hash="", kind=Watched, script="", *, still=False, **context):
    """``address`` in a context of its own. ``kind``: the class of what is returned; ``script`` runs first.

    ``still``: time stands still on the page from before its first script until a test lets its clock run.
    """
    context = {"viewport": {"width": 1280, "height": 900}} | context
    page = browser.new_context(**context).new_page()
    opened = kind(page, address)
    ours = ("file://" if address.startswith("file://") else address.split("/?")[0], "data:", "blob:")

    def only_ours(route):
        if route.request.url.startswith(ours):
            route.continue_()
        else:
            opened.outside.append(route.request.url)
            route.abort()

    page.route("**/*", only_ours)
    page.on("console", lambda said: opened.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("dialog", lambda dialog: (opened.dialogs.append(dialog.message), dialog.dismiss()))
    page.add_init_script(VIOLATIONS + ";" + script)
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    if still:
        page.clock.install(time=0)
        page.clock.pause_at(HOUR)  # this must lie ahead, and until now the clock runs
    page.goto(address + hash)
    return opened


def wait_until(page, holds):
    """Until ``holds()``: what a page did is heard of later, and only while somebody listens."""
    ends = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < ends, "it never came"
        page.wait_for_timeout(20)


def violations_by_night_and_by_day(page):
    faults = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        faults += [(scheme, *fault) for fault in violations(page)]
    return faults


def violations(page, **options):
    """What axe finds: the rule's name, how bad it is, and the first part of the page that breaks it."""
    faults = Axe().run(page, **options).response["violations"]
    return [(fault["id"], fault["impact"], fault["nodes"][0]["html"][:200]) for fault in faults]
