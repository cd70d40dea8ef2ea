"""What the panels are doing: a queue, its worker, one state a panel, and who hears of it.

One job at a time, so that measurements do not slow each other.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from isoloss.errors import Refusal
from isoloss.teach.deck.process import COMMAND, Worker, WorkerDied
from isoloss.teach.panel import Panel

LONGEST_QUEUE = 500
"""Messages that a page may lag behind before it is let go; it comes back and gets the whole picture."""

ACTIVE = ("queued", "running")


@dataclass
class JobState:
    """A panel's job. ``html`` and ``result``: the newest whole output, kept until a newer one comes.

    ``partial``: of the job under way; it stands in for ``html`` until that job ends, however it ends.
    """

    panel: str
    state: Literal["queued", "running", "done", "failed", "cancelled"] = "queued"
    done: float = 0.0
    text: str = ""
    html: str | None = None
    partial: str | None = None
    result: dict[str, Any] | None = None

    def message(self, *, output: bool) -> dict[str, Any]:
        message = {"panel": self.panel, "state": self.state, "done": self.done, "text": self.text}
        html = self.partial or self.html
        return message | ({"html": html, "result": self.result} if output and html else {})


class Jobs:
    """Use inside one event loop. ``command`` starts a worker, which lives on: it imports torch once."""

    def __init__(self, panels: Sequence[Panel], *, command: Sequence[str] = COMMAND):
        self.panels = {panel.name: panel for panel in panels}
        self.states: dict[str, JobState] = {}
        self._command = command
        self._queue: deque[tuple[str, dict[str, Any]]] = deque()
        self._running: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._starting = asyncio.Lock()
        self._pages: set[asyncio.Queue[dict[str, Any] | None]] = set()

    def run(self, name: str, values: dict[str, Any]) -> None:
        """Queue a panel: one job each, so that the queue is never longer than the deck.

        Raises InputError for settings that the panel does not take, Refusal if it is under way already.
        """
        settings = self.panels[name].settings_from(values).model_dump(mode="json")
        if self.active(name):
            raise Refusal(f"{name} is under way already", mend="wait for it, or cancel it")
        before = self.states.get(name) or JobState(name)
        self.states[name] = JobState(name, html=before.html, result=before.result)
        self._queue.append((name, settings))
        self._notify(name)
        self._start_next()

    def run_all(self) -> None:
        for name in self.panels:
            if not self.active(name):
                self.run(name, {})

    def active(self, name: str) -> bool:
        return name in self.states and self.states[name].state in ACTIVE

    def cancel(self, name: str) -> None:
        """End a job; nothing happens if there is none, or if it is ending: its process must be seen off."""
        if not self.active(name):
            return
        if self._running is not None and self._running.get_name() == name:
            if not self._running.cancelling():
                self._running.cancel()
        else:
            self._queue = deque(order for order in self._queue if order[0] != name)
            self._end(name, "cancelled", "cancelled before it began")

    async def stop(self, name: str) -> None:
        """Let a job that runs end with what it has measured. Raises Refusal where half is not told."""
        if not self.panels[name].stops:
            raise Refusal(f"{name} is told whole or not at all", mend="cancel it")
        if self._worker is not None and self.active(name) and self.states[name].state == "running":
            await self._worker.stop()

    def cancel_all(self) -> None:
        for name in list(self.states):
            self.cancel(name)

    async def close(self) -> None:
        """End everything: no process outlives the server."""
        self.cancel_all()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        await self._end_worker()

    def join(self) -> "asyncio.Queue[dict[str, Any] | None]":
        """A page: its queue begins with how things stand. None means that it lagged too far behind."""
        page: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        for state in self.states.values():
            page.put_nowait(state.message(output=True))
        self._pages.add(page)
        return page

    def leave(self, page: "asyncio.Queue[dict[str, Any] | None]") -> None:
        self._pages.discard(page)

    @property
    def watched(self) -> bool:
        return bool(self._pages)

    def _notify(self, name: str, *, output: bool = False) -> None:
        for page in list(self._pages):
            if page.qsize() >= LONGEST_QUEUE:
                self.leave(page)
                page.put_nowait(None)
            else:
                page.put_nowait(self.states[name].message(output=output))

    def _start_next(self) -> None:
        if self._running is None and self._queue:
            name, settings = self._queue.popleft()
            self._running = asyncio.create_task(self._work(name, settings), name=name)
            self._running.add_done_callback(self._left)

    async def _work(self, name: str, settings: dict[str, Any]) -> None:
        self.states[name].state, self.states[name].text = "running", "starting"
        self._notify(name)
        cap, whole = self.panels[name].cap_seconds, False
        try:
            async with asyncio.timeout(cap):
                worker = await self._living_worker()
                async for event in worker.measure(name, settings):
                    self._handle(name, event)
            whole = True
        except TimeoutError:
            self._end(name, "failed", f"it took more than its cap of {cap:.0f} seconds")
        except (WorkerDied, OSError) as error:
            self._end(name, "failed", f"its process ended early. Its last words: {error}")
        finally:
            if not whole:
                await self._end_worker()

    def _left(self, task: asyncio.Task[None]) -> None:
        """A task that was cancelled may not even have begun, so this is where every job ends."""
        self._running = None
        if task.cancelled():
            self._end(task.get_name(), "cancelled", "cancelled")
        elif error := task.exception():
            self._end(task.get_name(), "failed", f"{type(error).__name__}: {error}")
        self._start_next()

    async def warm(self) -> None:
        """Start the worker before anybody asks for it: it imports torch while the first slide is told."""
        with suppress(OSError):
            await self._living_worker()

    async def _living_worker(self) -> Worker:
        async with self._starting:
            if self._worker is not None and not self._worker.alive:
                await self._end_worker()
            if self._worker is None:
                self._worker = await Worker.start(self._command)
            return self._worker

    async def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.kill()

    def _handle(self, name: str, event: dict[str, Any]) -> None:
        state = self.states[name]
        match event["event"]:
            case "progress":
                state.done, state.text = event["done"], event["text"]
                self._notify(name)
            case "partial":
                state.partial = event["html"]
                self._notify(name, output=True)
            case "result":
                state.html, state.result = event["html"], event["result"]
                self._end(name, "done", "done")
            case "failed":
                self._end(name, "failed", event["message"])

    def _end(self, name: str, how: Literal["done", "failed", "cancelled"], text: str) -> None:
        state = self.states[name]
        state.state, state.text, state.done, state.partial = how, text, float(how == "done"), None
        self._notify(name, output=True)
