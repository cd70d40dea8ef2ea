"""Who may speak to the deck: this machine, this page, with the token. Everyone else gets 403."""

import re
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
