"""A process that measures panels, one after another, so that torch is imported once.

JSON lines: an order on stdin {"panel", "settings"}, or {"stop": true} while it runs; on stdout
{"event": "progress" | "partial" | "result" | "failed", ...} with markup that is ready to show. The process
ends when its stdin does, whatever it is doing.
"""

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from isoloss.errors import IsolossError
from isoloss.teach import start
from isoloss.teach.deck import fragment
from isoloss.teach.panel import Panel, Stopped, run
from isoloss.teach.panels import PANELS
from isoloss.teach.panels import panel as panel_named
from isoloss.teach.result import Tables
from isoloss.teach.settings import Settings

Say = Callable[..., None]

PROGRESS_SECONDS = 0.2
PICTURE_SECONDS = 2.0
PICTURE_SHARE = 40
"""Pictures on the way: at most one in so many seconds, and at most a fortieth of the time."""
PACE_SECONDS, FOLLOWED_SECONDS = 0.25, 0.7
"""Of a run that a class may stop: how long a look stays, and how often it is drawn; eyes must follow."""


def main(panels: Sequence[Panel] = PANELS) -> None:
    say = _speaker(_own_stdout())
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    enough = threading.Event()
    threading.Thread(target=_listen, args=(orders, enough), daemon=True).start()
    start.warm()
    while True:
        order = orders.get()
        _obey(panel_named(order["panel"], panels), order["settings"], say, enough)


def _own_stdout() -> TextIO:
    """The pipe to the server; whatever a library prints goes to stderr instead."""
    sys.stdout.flush()
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return pipe


def _speaker(pipe: TextIO) -> Say:
    def say(event: str, **values: Any) -> None:
        print(json.dumps({"event": event, **values}, allow_nan=False), file=pipe, flush=True)

    return say


def _listen(orders: "queue.SimpleQueue[dict[str, Any]]", enough: threading.Event) -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if "stop" in order:
            enough.set()
        else:
            enough.clear()  # of the job before, if it ended by itself
            orders.put(order)
    os._exit(0)  # the server has gone: nobody waits for the rest


def _obey(panel: Panel, values: dict[str, Any], say: Say, enough: threading.Event) -> None:
    """Measure and tell. An error fails the job, not the process."""
    try:
        start.prepare(panel)
        settings = panel.settings_from(values)
        reporter = Reporter(panel, settings, say, enough)
        result = run(panel, settings, reporter)
        costs = {
            "wall_seconds": result.wall_seconds - reporter.wall_seconds,
            "cpu_seconds": result.cpu_seconds - reporter.cpu_seconds,
        }
        result = result.model_copy(update=costs)  # without the pictures drawn on the way
        say("result", html=fragment.output(panel, result, "LIVE"), result=result.model_dump(mode="json"))
    except IsolossError as error:
        say("failed", message=str(error))
    except Exception as error:
        traceback.print_exc()
        say("failed", message=f"{type(error).__name__}: {error}")


class Reporter:
    """Hears a measurement often, passes on what a reader can follow, and knows what that cost.

    ``enough``: set when the class says stop.
    """

    def __init__(self, panel: Panel, settings: Settings, say: Say, enough: threading.Event):
        self.panel, self.settings, self.say, self.enough = panel, settings, say, enough
        self.wall_seconds = self.cpu_seconds = 0.0
        self.next_progress = 0.0
        self.next_picture = time.monotonic() + PICTURE_SECONDS / 2

    def __call__(self, done: float, text: str, tables: Tables | None = None) -> None:
        wall, cpu = time.monotonic(), time.process_time()
        if wall >= self.next_progress:
            self.next_progress = wall + PROGRESS_SECONDS
            self.say("progress", done=min(max(float(done), 0.0), 1.0), text=text)
        if tables is not None and wall >= self.next_picture:
            self.say("partial", html=fragment.partial_output(self.panel, self.settings, tables))
            cost = time.monotonic() - wall
            seldom = FOLLOWED_SECONDS if self.panel.stops else max(PICTURE_SECONDS, PICTURE_SHARE * cost)
            self.next_picture = wall + seldom
        if tables is not None and self.panel.stops:
            self.enough.wait(PACE_SECONDS)
        self.wall_seconds += time.monotonic() - wall
        self.cpu_seconds += time.process_time() - cpu
        if tables is not None and self.enough.is_set():
            raise Stopped(tables)


if __name__ == "__main__":
    main()
