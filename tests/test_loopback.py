"""Who may speak to a page of this machine: each rule by itself, without a server; and where it listens."""

import asyncio

import pytest

from isoloss.errors import InputError
from isoloss.loopback import HEADERS, Guard, listen

TOKEN = "right-täken"  # noqa: S105 - made up, and not all ASCII
PORT = 4711


def ask(method="GET", query=f"token={TOKEN}", headers=(), kind="http", host=f"127.0.0.1:{PORT}"):
    """Status, headers and body that a request gets; the application behind the guard answers 'inside'."""
    named = [(b"host", host.encode())] if host else []
    named += [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {
        "type": kind,
        "method": method,
        "path": "/",
        "query_string": query.encode(),
        "headers": named,
    }
    sent = []

    async def inside(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inside"})

    async def send(message):
        sent.append(message)

    asyncio.run(Guard(inside, token=TOKEN)(scope, None, send))
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"].decode()


def url(token):
    from urllib.parse import quote

    return f"token={quote(token, encoding='utf-8')}"


def test_the_page_of_this_machine_with_the_token_gets_in():
    status, headers, body = ask(query=url(TOKEN))
    assert (status, body) == (200, "inside")
    assert {name.decode(): value.decode() for name, value in headers.items()} == {
        name.lower(): value for name, value in HEADERS.items()
    }
    assert ask(query=url(TOKEN), host=f"localhost:{PORT}")[0] == 200
    own = [("Origin", f"http://127.0.0.1:{PORT}"), ("Sec-Fetch-Site", "same-origin")]
    assert ask(query=url(TOKEN), headers=own)[0] == 200


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8080", f"127.0.0.1:{PORT + 1}"])
def test_a_forwarded_port_of_loopback_gets_in_under_its_own_name_alone(host):
    own = [("Origin", f"http://{host}")]
    assert ask(query=url(TOKEN), host=host, headers=own)[0] == 200
    assert ask(query="token=wrong", host=host, headers=own)[0] == 403
    other = [("Origin", f"http://127.0.0.1:{PORT}")]
    assert ask(query=url(TOKEN), host=host, headers=other)[0] == 403


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"host": f"evil.example:{PORT}"}, "an address that is not this machine's"),
        ({"host": f"localhost.evil.example:{PORT}"}, "an address that is not this machine's"),
        ({"host": f"10.0.0.1:{PORT}"}, "an address that is not this machine's"),
        ({"host": ""}, "an address that is not this machine's"),
        ({"headers": [("Origin", "http://evil.example")]}, "a page from elsewhere asks"),
        ({"headers": [("Origin", "null")]}, "a page from elsewhere asks"),
        ({"headers": [("Origin", f"https://127.0.0.1:{PORT}")]}, "a page from elsewhere asks"),
        ({"headers": [("Sec-Fetch-Site", "cross-site")]}, "a page from elsewhere asks"),
        ({"headers": [("Sec-Fetch-Site", "same-site")]}, "a page from elsewhere asks"),
        ({"query": ""}, "the token is missing or wrong"),
        ({"query": "token="}, "the token is missing or wrong"),
        ({"query": "token=wrong"}, "the token is missing or wrong"),
        ({"query": "token=wrong&" + url(TOKEN)}, "the token is missing or wrong"),
        ({"query": "token=%ff%00"}, "the token is missing or wrong"),
        ({"query": "", "headers": [("X-Isoloss-Token", TOKEN)]}, "the token is missing or wrong"),
    ],
)
def test_everyone_else_is_refused_with_the_reason_and_the_same_headers(change, reason):
    status, headers, body = ask(**{"query": url(TOKEN)} | change)
    assert status == 403
    assert body.startswith(f"Refused: {reason}")
    assert {name.lower().encode() for name in HEADERS} <= headers.keys()
    assert TOKEN not in body


def test_what_acts_needs_the_token_where_only_the_page_can_put_it():
    """A form or an image elsewhere can ask for any address, but cannot set a header."""
    assert ask("POST", query=url(TOKEN))[0] == 403
    ascii_only = TOKEN.encode().decode("latin-1")
    assert ask("POST", headers=[("X-Isoloss-Token", "wrong")])[0] == 403
    assert ask("DELETE", query=url(TOKEN))[0] == 403
    assert ask("HEAD", query=url(TOKEN))[0] == 200
    assert ask("POST", headers=[("X-Isoloss-Token", ascii_only)])[0] == 403, "another text than the token"


def test_what_is_no_request_passes_through():
    status, headers, _ = ask(kind="lifespan", query="", host="")
    assert (status, headers) == (200, {})


def test_it_listens_on_this_machine_only_and_says_that_a_port_is_taken():
    with listen(0) as ear:
        assert ear.getsockname()[0] == "127.0.0.1"
        with pytest.raises(InputError, match="is taken"):
            listen(ear.getsockname()[1])
