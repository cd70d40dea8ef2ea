"""The deck's server over loopback: who may speak to it, what it refuses, and what ends with the page."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass

import fake_panels
import pytest
import speaking
from fake_panels import LIGHT, UNCAPPED, recorded
from speaking import TOKEN

from isoloss.teach.deck import server
from isoloss.teach.deck.jobs import Jobs, JobState

PAGE = "<!doctype html><title>The page</title>"
LONG = {"seconds": 500.0}


@dataclass
class Deck:
    port: int
    jobs: Jobs

    def ask(self, method, path, *, token=TOKEN, body=None, **headers):
        """Status, headers and text."""
        if method == "GET" and token:
            path += f"?token={token}"
        if method == "POST" and token:
            headers = {"X_Isoloss_Token": token} | headers
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        return speaking.ask(self.port, method, path, body=data, **headers)

    def status(self, *args, **values):
        return self.ask(*args, **values)[0]

    @contextmanager
    def page(self):
        """An open page: yields a function that waits for the next message that fits."""
        with speaking.hearing(self.port, f"/events?token={TOKEN}") as heard:
            yield lambda fits: heard(fits)[1]


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def saved(measured):
    return f"<p>{len(measured)} results</p>"


@contextmanager
def served(*, grace):
    jobs = Jobs(UNCAPPED, command=LIGHT)

    def make(ending):
        return server.application(PAGE, jobs, token=TOKEN, save=saved, ending=ending, grace=grace)

    with speaking.served(make) as port:
        yield Deck(port, jobs)


@pytest.fixture(scope="module")
def deck():
    with served(grace=0.1) as deck:
        yield deck


def test_the_page_is_served_with_headers_that_keep_it_to_itself(deck):
    status, headers, text = deck.ask("GET", "/")
    assert (status, text) == (200, PAGE)
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert deck.status("GET", "/", Host=f"localhost:{deck.port}") == 200


@pytest.mark.parametrize("path", ["/", "/events", "/run", "/nothing", "/../etc/passwd"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x"])
def test_nothing_is_served_without_the_token(deck, path, token):
    status, _, text = deck.ask("GET", path, token=token)
    assert status == 403
    assert "The page" not in text
    assert TOKEN not in text


def test_a_post_needs_the_token_in_its_header(deck):
    with deck.page():
        for path in ("/run", "/cancel", "/stop", "/run-all"):
            assert deck.status("POST", path, token=None, body={"panel": "quick"}) == 403
            assert deck.status("POST", f"{path}?token={TOKEN}", token=None, body={"panel": "quick"}) == 403
        assert deck.jobs.states.get("quick") is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "deck.example.org"},
        {"Host": "127.0.0.1.example.org"},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_what_comes_from_elsewhere_is_refused(deck, headers):
    for method, path in (("GET", "/"), ("GET", "/events"), ("POST", "/run"), ("POST", "/run-all")):
        assert deck.status(method, path, body={"panel": "quick"}, **headers) == 403
    # The control: the same from the page itself.
    own = {"Origin": f"http://127.0.0.1:{deck.port}", "Sec_Fetch_Site": "same-origin"}
    assert deck.status("GET", "/", **own) == 200


@pytest.mark.parametrize(
    "path", ["/nothing", "/run/../../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/static/x"]
)
def test_no_other_path_answers(deck, path):
    assert deck.status("GET", path) == 404


def test_each_route_takes_its_own_method_only(deck):
    assert deck.status("GET", "/run") == 405
    assert deck.status("POST", "/") == 405
    assert deck.status("DELETE", "/", token=TOKEN) == 403


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"panel": "quick", "settings": {"points": 10**9}},
            "How many points (points) takes at most 50, got 1000000000",
        ),
        ({"panel": "quick", "settings": {"poker": 1}}, "poker"),
        ({"panel": "quick", "settings": {"prompt": "x" * 41}}, "prompt"),
        ({"panel": "../../etc/passwd"}, "no panel"),
        ({"panel": 3}, "panel"),
        ({"panel": "quick", "settings": [], "more": 1}, "settings"),
        (b"{", "JSON"),
        (b"\xff\xfe", ""),
        (b'{"panel": "quick", "settings": {"seconds": NaN}}', ""),
    ],
)
def test_a_bad_order_is_refused_and_says_why(deck, body, words):
    with deck.page():
        status, _, text = deck.ask("POST", "/run", body=body)
    assert status == 422
    assert words in json.loads(text)["error"]
    assert "quick" not in deck.jobs.states


def test_a_huge_order_is_refused(deck):
    with deck.page():
        body = {"panel": "quick", "settings": {"prompt": "x" * server.LARGEST_BODY}}
        status, _, text = deck.ask("POST", "/run", body=body)
    assert status == 422
    assert "at most" in text


def test_a_page_runs_cancels_and_hears_of_it_and_a_second_page_sees_the_same(deck):
    with deck.page() as heard:
        assert deck.status("POST", "/run", body={"panel": "quick", "settings": LONG}) == 202
        assert deck.status("POST", "/run", body={"panel": "quick", "settings": {}}) == 409
        running = heard(lambda message: message.get("html") == "<p>so far</p>")
        assert running["state"] == "running"
        with deck.page() as heard_too:
            first = heard_too(lambda message: True)
            assert (first["panel"], first["state"], first["html"]) == ("quick", "running", "<p>so far</p>")
            assert deck.status("POST", "/cancel", body={"panel": "quick"}) == 202
            assert heard(lambda message: message["state"] == "cancelled")
            assert heard_too(lambda message: message["state"] == "cancelled")
        assert deck.status("POST", "/cancel", body={"panel": "quick"}) == 202  # twice does no harm
        assert deck.status("POST", "/run-all") == 202
        for _ in UNCAPPED:
            heard(lambda message: message["state"] == "done")


def test_a_page_stops_what_can_be_told_by_half_and_nothing_else(deck):
    with deck.page() as heard:
        for name in ("timed", "second"):
            deck.status("POST", "/run", body={"panel": name, "settings": LONG})
        heard(lambda message: message.get("html") == "<p>so far</p>")
        assert deck.status("POST", "/stop", body={"panel": "second"}) == 409
        assert deck.status("POST", "/stop", body={"panel": "timed"}) == 202
        assert heard(lambda message: message["state"] == "done")["panel"] == "timed"
        deck.status("POST", "/cancel", body={"panel": "second"})
        heard(lambda message: message["state"] == "cancelled")


def start_second(deck, heard):
    deck.status("POST", "/run", body={"panel": "second", "settings": LONG})
    heard(lambda message: message["panel"] == "second" and "half way" in message["text"])


def test_closing_the_last_page_ends_its_jobs(deck):
    with deck.page() as heard:
        start_second(deck, heard)
        with deck.page() as heard_too:
            heard_too(lambda message: True)
        until(lambda: len(deck.jobs._pages) == 1)
        time.sleep(0.3)  # more than the grace
        assert deck.jobs.states["second"].state == "running"
    until(lambda: deck.jobs.states["second"].state == "cancelled")
    assert deck.jobs._running is None


def test_a_reload_within_the_grace_ends_nothing():
    with served(grace=600.0) as deck:
        with deck.page() as heard:
            start_second(deck, heard)
        until(lambda: not deck.jobs.watched)
        assert deck.jobs.states["second"].state == "running"
        with deck.page() as heard:
            assert heard(lambda message: True)["state"] == "running"


def test_nothing_runs_while_no_page_is_open(deck):
    until(lambda: not deck.jobs.watched)
    assert deck.status("POST", "/run", body={"panel": "quick"}) == 409
    assert deck.status("POST", "/run-all") == 409


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_prints_the_address_and_ctrl_c_ends_it_and_its_workers():
    started = subprocess.Popen(
        [sys.executable, fake_panels.__file__, "serve"],
        stderr=subprocess.PIPE,
        text=True,
        # Without this a shell's background job would ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        address = started.stderr.readline().split()[-1]
        port, token = int(address.split(":")[2].split("/")[0]), address.split("token=")[1]
        deck = Deck(port, None)
        line = socket.create_connection(("127.0.0.1", port), timeout=30)
        line.sendall(f"GET /events?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        body = {"panel": "quick", "settings": LONG}
        assert b"200 OK" in line.recv(100)
        assert deck.status("POST", "/run", token=token, body=body) == 202
        heard = b""
        while b"step 1 of" not in heard:
            heard += line.recv(10_000)
        workers = children(started.pid)
        assert workers
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == 0
        assert "has ended" in started.stderr.read()
        until(lambda: not any(is_there(pid) for pid in workers))
        line.close()
    finally:
        started.kill()
        started.wait()
        started.stderr.close()


def children(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(line) for line in listed.stdout.split()]


def is_there(pid):
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip() not in ("", "Z", "Zs")


def test_the_file_holds_what_was_measured(deck, monkeypatch):
    held = JobState("quick", state="done", result=recorded().model_dump(mode="json"))
    monkeypatch.setattr(deck.jobs, "states", {"quick": held, "second": JobState("second")})
    assert deck.ask("GET", "/file")[::2] == (200, "<p>1 results</p>")
    assert deck.status("GET", "/file", token="wrong") == 403  # noqa: S106
