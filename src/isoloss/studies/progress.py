"""Progress for people: live where there is a terminal, plain lines now and then where there is none."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from isoloss import text
from isoloss.training.task import Progress

PLAIN_SECONDS = 15.0
BARS = "▁▂▃▄▅▆▇█"


class Board:
    """Knows each cohort's estimated seconds; shows how much is done, time left and the running members."""

    def __init__(self, console: Console, weights: Mapping[str, float], done: float, total: float):
        self.console, self.weights = console, weights
        self.done, self.total, self.begun_with = done, total, done
        self.running: dict[str, Progress] = {}
        self.losses: dict[str, deque[float]] = {}
        self.begin, self.last_line, self.ended = time.monotonic(), 0.0, 0
        # In a notebook rich draws anew by ipywidgets alone; without them lines are printed.
        redraws = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
        self.live = Live(console=console, refresh_per_second=4, transient=True) if redraws else None

    def __enter__(self) -> "Board":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def update(self, progress: Progress) -> None:
        self.running[progress.run_id] = progress
        if progress.loss is not None:
            self.losses.setdefault(progress.run_id, deque(maxlen=400)).append(progress.loss)
        if self.live:
            self.live.update(self.picture())
        elif time.monotonic() - self.last_line >= PLAIN_SECONDS:
            self.last_line = time.monotonic()
            self.say(self.line())

    def end(self, run_id: str, sentence: str, outcome: str = "done") -> None:
        """A stopped run is not done, and a failed one is no longer waited for."""
        self.running.pop(run_id, None)
        self.losses.pop(run_id, None)
        if outcome == "failed":
            self.total -= self.weights[run_id]
        elif outcome != "stopped":
            self.done += self.weights[run_id]
        self.ended += 1
        self.say(sentence)
        if self.live:
            self.live.update(self.picture())

    def say(self, sentence: str) -> None:
        self.console.print(sentence, highlight=False, soft_wrap=True, markup=False)

    def share(self) -> float:
        partial = sum(self.weights[p.run_id] * p.done / p.updates for p in self.running.values())
        return min(1.0, (self.done + partial) / self.total) if self.total else 1.0

    def seconds_left(self) -> float | None:
        """From the speed of this session, in units of estimated seconds."""
        elapsed, made = time.monotonic() - self.begin, self.share() * self.total - self.begun_with
        if elapsed < 5 or made <= 0:
            return None
        return elapsed * (self.total - self.share() * self.total) / made

    def headline(self) -> str:
        left = self.seconds_left()
        words = "estimating" if left is None else f"about {text.duration(left)} left"
        return f"{self.share():4.0%} done, {words}"

    def line(self) -> str:
        members = "; ".join(
            f"{p.label} step {p.done}/{p.updates}, {rate(p)}, loss {loss(p)}" for p in self.running.values()
        )
        return f"{self.headline()} | {members}"

    def picture(self) -> Group:
        members = Table.grid(padding=(0, 2))
        for p in self.running.values():
            who = p.label + (f" x{p.members}" if p.members > 1 else "")
            trouble = f" {p.diverged} diverged" if p.diverged else ""
            members.add_row(
                who,
                f"{p.done}/{p.updates}",
                rate(p),
                f"loss {loss(p)}{trouble}",
                sparkline(self.losses.get(p.run_id, ())),
            )
        head = Table.grid(padding=(0, 2))
        head.add_row(ProgressBar(total=1.0, completed=self.share(), width=30), self.headline())
        return Group(head, members)


def facts(p: Progress) -> str:
    """Of one cohort: 'step 65 of 602, loss 5.123, about 1.3 min left'."""
    words = [f"step {p.done} of {p.updates}"] + ([] if p.loss is None else [f"loss {p.loss:.3f}"])
    if p.done and p.tokens_per_second > 0:
        seconds = (p.updates - p.done) * p.tokens / p.done * p.members / p.tokens_per_second
        words.append(f"about {text.duration(seconds)} left")
    return ", ".join(words)


def rate(progress: Progress) -> str:
    return f"{progress.tokens_per_second / 1e3:.1f}K tokens/s"


def loss(progress: Progress) -> str:
    return "none" if progress.loss is None else f"{progress.loss:.3f}"


def sparkline(values: Iterable[float], width: int = 24) -> str:
    """The values' course in block characters, mean per column, highest and lowest of the window as range."""
    values = list(values)
    if len(values) < 2:
        return ""
    columns = min(width, len(values))
    means = [float(chunk.mean()) for chunk in np.array_split(np.array(values), columns)]
    low, high = min(means), max(means)
    if high == low:
        return BARS[0] * columns
    return "".join(BARS[int((mean - low) / (high - low) * (len(BARS) - 1))] for mean in means)
