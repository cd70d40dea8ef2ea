"""A server on the loopback in a thread of the test, and what speaks to it as a browser would."""

import http.client
import json
import threading
import time
from contextlib import contextmanager

import uvicorn

from isoloss import loopback

TOKEN = "a-token-of-this-test"  # noqa: S105
PATIENCE = 60.0


@contextmanager
def served(make):
    """The port of ``make(ending)``, an application; ``ending`` tells it that the server goes."""
    ear = loopback.listen(0)
    app = make(lambda: running.should_exit)
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", server_header=False))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [ear]}, daemon=True)
    thread.start()
    try:
        yield ear.getsockname()[1]
    finally:
        running.should_exit = True
        thread.join(20)
        ear.close()
        assert not thread.is_alive()


def ask(port, method, path, *, body=None, **headers):
    """Status, headers and text. Header names are written with underscores."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body=body, headers={"Host": f"127.0.0.1:{port}"} | sent)
    answer = line.getresponse()
    reply = answer.status, dict(answer.getheaders()), answer.read().decode()
    line.close()
    return reply


@contextmanager
def hearing(port, path, **headers):
    """An open stream of events: a function that waits for the next message that fits; gives its id and it."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = line.getresponse()
    assert answer.getheader("content-type").startswith("text/event-stream")
    assert answer.readline() == b"retry: 1000\n"

    def heard(fits=lambda message: True):
        ident, end = None, time.monotonic() + PATIENCE
        while text := answer.readline():
            assert time.monotonic() < end
            if text.startswith(b"id: "):
                ident = int(text[4:])
            if text.startswith(b"data: ") and fits(message := json.loads(text[6:])):
                return ident, message
        raise AssertionError("the stream ended")

    try:
        yield heard
    finally:
        answer.close()
        line.close()
