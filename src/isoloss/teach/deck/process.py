"""A worker process as the server sees it: orders in, events out, killed when told to."""

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

COMMAND = (sys.executable, "-m", "isoloss.teach.deck.worker")

LONGEST_LINE = 2**26
LAST_WORDS = 6
ENDING = ("result", "failed")


class WorkerDied(Exception):
    """The process ended, or spoke nonsense, in the middle of a job. The message holds its last words."""


def ended(code: int) -> str:
    """How a process ended that said nothing."""
    if code >= 0:
        return f"it left with code {code}"
    hint = ": often the memory of the machine was full" if -code == signal.SIGKILL else ""
    return f"it was killed by {signal.Signals(-code).name}{hint}"


class Worker:
    """One process. Its threads are bounded by each panel's own number, not by the libraries' guess."""

    def __init__(self, process: asyncio.subprocess.Process):
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("a worker needs its three pipes")
        self._process = process
        self._orders, self._events, self._errors = process.stdin, process.stdout, process.stderr
        self._stderr: deque[str] = deque(maxlen=LAST_WORDS)
        self._hearing = asyncio.create_task(self._hear_errors())

    @classmethod
    async def start(cls, command: Sequence[str] = COMMAND) -> "Worker":
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=LONGEST_LINE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for the server, which then ends its workers
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def measure(self, panel: str, settings: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The events of one job, the last of which is its result or its failure. Raises WorkerDied."""
        try:
            with suppress(OSError):  # of a process that has left, what it said last is read below
                await self._order({"panel": panel, "settings": settings})
            while line := await self._events.readline():
                event = json.loads(line)
                yield event
                if event["event"] in ENDING:
                    return
        except (OSError, ValueError) as error:
            raise WorkerDied(f"{type(error).__name__}: {error}") from error
        await self._process.wait()
        await self._hearing
        raise WorkerDied("\n".join(self._stderr) or ended(self._process.returncode or 0))

    async def stop(self) -> None:
        """The job under way ends with what it has, at its next report."""
        with suppress(OSError):  # a dead process is the job's to tell
            await self._order({"stop": True})

    async def _order(self, order: dict[str, Any]) -> None:
        self._orders.write(json.dumps(order).encode() + b"\n")
        await self._orders.drain()

    async def kill(self) -> None:
        """End it and everything that it started."""
        if self.alive:
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._orders.close()
        await self._events.read()  # the pipes close once they are empty
        await self._process.wait()
        await self._hearing

    async def _hear_errors(self) -> None:
        while line := await self._errors.readline():
            self._stderr.append(line.decode("utf-8", "replace").rstrip()[:500])
