"""The live page's server: this machine only, a token, two routes, no path of anybody's.

GET /         the page as things stand
GET /events   server-sent events: {id: HTML} of what has changed since
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from isoloss import loopback
from isoloss.serve.board import Board
from isoloss.serve.view import View

LOOK_SECONDS = 1.0
LOOK_SHARE = 0.1
"""Of one core that looking may take: a study on a slow disk is looked at less often."""
DRAW_SHARE = 0.1
"""Of one core that drawing may take: what trains needs the rest."""
HEAR_SECONDS = 0.2
DRAW = (sys.executable, "-m", "isoloss.serve.draw")


def serve(folders: Sequence[Path], port: int = 0, *, open_browser: bool = True) -> None:
    """Show these studies until Ctrl-C. Raises InputError if the port is taken."""
    board = Board(folders)
    loopback.serve(
        lambda token, ending: application(board, token=token, ending=ending),
        port,
        name="The live page",
        last_words="; what trains goes on",
        open_browser=open_browser,
    )


def application(
    board: Board,
    *,
    token: str,
    ending: Callable[[], bool] = lambda: False,
    draw: Sequence[str] = DRAW,
) -> loopback.Guard:
    """The guarded application. ``draw``: the command that draws a study's figures."""
    live = Live(board, ending, draw)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(live.look_on()), asyncio.create_task(live.draw_on())]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    routes = [Route("/", live.page, methods=["GET"]), Route("/events", live.events, methods=["GET"])]
    app = Starlette(lifespan=lifespan, routes=routes)
    app.router.redirect_slashes = False
    return loopback.Guard(app, token=token)


class Live:
    """Looks and draws while a page is open, and does nothing else."""

    def __init__(self, board: Board, ending: Callable[[], bool], draw: Sequence[str]):
        self.board, self.ending, self.draw = board, ending, draw
        self.pages = 0
        self._looking = asyncio.Lock()
        self._drawn: dict[str, object] = {}
        self._rested: dict[str, float] = {}

    async def page(self, request: Request) -> Response:
        await self.look()
        return HTMLResponse(self.board.page())

    async def events(self, request: Request) -> Response:
        """From the version that the page has; one that there never was gets everything."""
        seen = request.headers.get("last-event-id") or request.query_params.get("since", "")
        version = int(seen) if re.fullmatch("[0-9]{1,12}", seen) else 0
        return loopback.event_stream(self._stream(version if version <= self.board.version else 0))

    async def _stream(self, version: int) -> AsyncIterator[str]:
        async def hear() -> str:
            nonlocal version
            while self.board.version <= version:
                await asyncio.sleep(HEAR_SECONDS)
            changed, version = self.board.since(version), self.board.version
            return f"id: {version}\ndata: {json.dumps(changed)}"

        self.pages += 1
        try:
            async for line in loopback.events(hear, self.ending):
                yield line
        finally:
            self.pages -= 1

    async def look(self) -> None:
        async with self._looking:
            self.board.put(await asyncio.to_thread(self.board.look))

    async def look_on(self) -> None:
        while True:
            begin = time.monotonic()
            if self.pages:
                await self.look()
            await asyncio.sleep(max(LOOK_SECONDS, (time.monotonic() - begin) / LOOK_SHARE))

    async def draw_on(self) -> None:
        """One study's figures at a time, whenever its records changed and it has rested since."""
        while True:
            for view in self.board.views:
                recorded = view.watch.recorded
                rested = time.monotonic() >= self._rested.get(view.id, 0.0)
                if self.pages and recorded[1] and rested and self._drawn.get(view.id) != recorded:
                    begin = time.monotonic()
                    await self._draw(view)
                    self._drawn[view.id] = recorded
                    self._rested[view.id] = begin + (time.monotonic() - begin) / DRAW_SHARE
            await asyncio.sleep(LOOK_SECONDS)

    async def _draw(self, view: View) -> None:
        """Figures from a process that may die or be killed without harm; the old ones stay where it fails."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.draw,
            str(view.watch.folder),
            view.id,
            stdout=pipe,
            stderr=pipe,
            env=os.environ | {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for the server, which then ends it
        )
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        try:
            answer: dict[str, Any] = json.loads(out)
        except ValueError:
            last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
            answer = {"trouble": (*last, f"the process ended with code {process.returncode}")[0], "parts": {}}
        view.drawing_trouble = answer["trouble"]
        view.figures = answer["parts"] or view.figures
