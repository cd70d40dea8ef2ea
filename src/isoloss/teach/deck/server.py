"""The live deck's server: this machine only, a token, seven routes, no file of anybody's.

GET  /         the page
GET  /file     the deck as one file, with what was measured here
GET  /events   server-sent events: how every panel stands, then what changes
POST /run      {"panel": name, "settings": {...}}
POST /cancel   {"panel": name}
POST /stop     {"panel": name}   what was measured so far is the result
POST /run-all
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from isoloss import loopback
from isoloss.errors import InputError, IsolossError, Refusal
from isoloss.loopback import Guard, event_stream, events
from isoloss.strict import Strict, validate
from isoloss.teach.deck.jobs import Jobs
from isoloss.teach.deck.process import COMMAND
from isoloss.teach.panel import Panel
from isoloss.teach.panels import PANELS
from isoloss.teach.result import Result

LARGEST_BODY = 200_000
GRACE_SECONDS = 5.0
"""A reload takes a moment; a page that stays away this long has been closed, and its jobs end."""


Save = Callable[[list[Result]], str]
"""The deck as one file with these results."""


class Order(Strict):
    panel: str
    settings: dict[str, Any] = Field(default_factory=dict)


def serve(
    html: str,
    port: int = 0,
    open_browser: bool = True,
    *,
    save: Save,
    panels: Sequence[Panel] = PANELS,
    command: Sequence[str] = COMMAND,
) -> None:
    """Show the live page ``html`` until Ctrl-C. Raises InputError if the port is taken."""
    jobs = Jobs(panels, command=command)
    loopback.serve(
        lambda token, ending: application(html, jobs, token=token, save=save, ending=ending),
        port,
        name="The deck",
        last_words=", and every measurement with it",
        open_browser=open_browser,
    )


def application(
    html: str,
    jobs: Jobs,
    *,
    token: str,
    save: Save,
    ending: Callable[[], bool] = lambda: False,
    grace: float = GRACE_SECONDS,
) -> Guard:
    """The guarded application. ``ending``: streams end when it says so."""
    routes = Routes(html, jobs, save, ending, grace)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        warming = asyncio.create_task(jobs.warm())
        yield
        warming.cancel()
        await jobs.close()

    app = Starlette(
        lifespan=lifespan,
        routes=[
            Route("/", routes.page, methods=["GET"]),
            Route("/file", routes.file, methods=["GET"]),
            Route("/events", routes.events, methods=["GET"]),
            Route("/run", routes.run, methods=["POST"]),
            Route("/cancel", routes.cancel, methods=["POST"]),
            Route("/stop", routes.stop, methods=["POST"]),
            Route("/run-all", routes.run_all, methods=["POST"]),
        ],
        exception_handlers={IsolossError: refusal},
    )
    app.router.redirect_slashes = False
    return Guard(app, token=token)


async def refusal(request: Request, error: Exception) -> Response:
    status = 422 if isinstance(error, InputError) else 409
    return JSONResponse({"error": str(error)}, status_code=status)


class Routes:
    def __init__(self, html: str, jobs: Jobs, save: Save, ending: Callable[[], bool], grace: float):
        self.html, self.jobs, self.save, self.ending, self.grace = html, jobs, save, ending, grace

    async def page(self, request: Request) -> Response:
        return HTMLResponse(self.html)

    async def file(self, request: Request) -> Response:
        held = (state.result for state in self.jobs.states.values())
        measured = [Result.model_validate(result) for result in held if result]
        return HTMLResponse(await asyncio.to_thread(self.save, measured))

    async def run(self, request: Request) -> Response:
        order = await self._order(request)
        self._must_be_watched()
        self.jobs.run(order.panel, order.settings)
        return Response(status_code=202)

    async def cancel(self, request: Request) -> Response:
        order = await self._order(request)
        self.jobs.cancel(order.panel)
        return Response(status_code=202)

    async def stop(self, request: Request) -> Response:
        order = await self._order(request)
        await self.jobs.stop(order.panel)
        return Response(status_code=202)

    async def run_all(self, request: Request) -> Response:
        self._must_be_watched()
        self.jobs.run_all()
        return Response(status_code=202)

    async def events(self, request: Request) -> Response:
        return event_stream(self._stream())

    async def _order(self, request: Request) -> Order:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                raise InputError(f"an order has at most {LARGEST_BODY:,} bytes")
        order = validate(Order, bytes(body), where="", whole="the order")
        if order.panel not in self.jobs.panels:
            raise InputError(f"there is no panel {order.panel!r}")
        return order

    def _must_be_watched(self) -> None:
        """A job lives as long as a page looks at it."""
        if not self.jobs.watched:
            raise Refusal("no page of the deck is open")

    async def _stream(self) -> AsyncIterator[str]:
        view = self.jobs.join()

        async def hear() -> str | None:
            message = await view.get()
            return None if message is None else f"data: {json.dumps(message)}"

        try:
            async for line in events(hear, self.ending):
                yield line
        finally:
            self.jobs.leave(view)
            asyncio.get_running_loop().call_later(self.grace, self._end_if_alone)

    def _end_if_alone(self) -> None:
        if not self.jobs.watched:
            self.jobs.cancel_all()
