"""A page for this machine alone: its address carries a token, and only who has it may speak to the server."""

import asyncio
import re
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from urllib.parse import parse_qs

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from isoloss.errors import InputError

HOST = "127.0.0.1"
HEARTBEAT_SECONDS = 10.0
LOOK_SECONDS = 0.5

TOKEN_HEADER = "x-isoloss-token"  # noqa: S105 - a name, not a secret
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")


def serve(
    make: Callable[[str, Callable[[], bool]], ASGIApp],
    port: int,
    *,
    name: str,
    last_words: str,
    open_browser: bool,
) -> None:
    """Answer until Ctrl-C with what ``make(token, ending)`` gives; streams end when ``ending()`` says so.

    Raises InputError if the port is taken.
    """
    with listen(port) as ear:
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{ear.getsockname()[1]}/?token={token}"
        print(f"{name} is at {address}\nCtrl-C ends it{last_words}.", file=sys.stderr)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server = uvicorn.Server(
            uvicorn.Config(
                make(token, lambda: server.should_exit),
                log_level="critical",
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=2,
            )
        )
        with suppress(KeyboardInterrupt):  # uvicorn raises it again when all has ended, which is no error
            server.run(sockets=[ear])
    print(f"{name} has ended.", file=sys.stderr)


def listen(port: int) -> socket.socket:
    """A socket of this machine alone. Raises InputError if the port is taken."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise InputError(
            f"port {port} is taken", where=HOST, mend="leave --port out for a free one"
        ) from error


def event_stream(lines: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Connection": "close"})


async def events(hear: Callable[[], Awaitable[str | None]], ending: Callable[[], bool]) -> AsyncIterator[str]:
    """Server-sent events: each that ``hear`` gives, until None or ``ending``; now and then a sign of life."""
    yield "retry: 1000\n\n"
    quiet = 0.0
    while not ending():
        try:
            event = await asyncio.wait_for(hear(), LOOK_SECONDS)
        except TimeoutError:
            quiet += LOOK_SECONDS
            if quiet >= HEARTBEAT_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"
            continue
        if event is None:
            return
        yield f"{event}\n\n"


class Guard:
    """ASGI middleware. A page elsewhere can make a browser send requests here, but not with our Host and
    token, and not without naming its own origin."""

    def __init__(self, app: ASGIApp, *, token: str):
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if reason := self.objection(scope):
            refusal = PlainTextResponse(f"Refused: {reason}.\n", status_code=403)
            await refusal(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)

    def objection(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        # A forwarded port has another number here, and the names of loopback cannot be pointed elsewhere.
        if not _LOOPBACK.fullmatch(host):
            return "an address that is not this machine's"
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return "a page from elsewhere asks"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "a page from elsewhere asks"
        if not secrets.compare_digest(self._token(scope, headers).encode(), self.token.encode()):
            return "the token is missing or wrong: use the address that the command printed"
        return None

    def _token(self, scope: Scope, headers: Headers) -> str:
        """In the address where a browser can send nothing else, in a header where a page acts."""
        if scope["method"] in ("GET", "HEAD"):
            return parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return headers.get(TOKEN_HEADER, "")
