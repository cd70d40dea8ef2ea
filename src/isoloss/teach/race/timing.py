"""The rules of a race: what fits the budget, rounds in random order, and rows of what was timed.

Everything is timed once a round, in an order drawn anew each round: whatever else the machine does in that
time falls on all alike. No clock is read here: ``time`` brings its readings, so that tests can bring theirs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from isoloss.stats import Interval
from isoloss.teach.race.counts import ALONE, BLOCK, BY_NAME, FUSED, LSTM, NAIVE
from isoloss.teach.race.ratios import FEWEST, ratio_of
from isoloss.teach.result import Row
from isoloss.text import plural

FORWARD, BOTH = "forward", "forward + backward"
MODES = (FORWARD, BOTH)
OVERRUN = 4 / 3
PAIRS = ((BLOCK, LSTM), (ALONE, LSTM), (NAIVE, LSTM), (NAIVE, FUSED), (NAIVE, ALONE))

T = TypeVar("T")


class Times(NamedTuple):
    """Milliseconds of one run: CPU time of the process, and wall time."""

    cpu: float
    wall: float


@dataclass(frozen=True, order=True)
class Processor:
    """Where: a device and, on the CPU, a number of threads."""

    device: str
    threads: int

    @property
    def name(self) -> str:
        return plural(self.threads, "CPU thread") if self.device == "cpu" else "GPU"

    @property
    def clock(self) -> str:
        """CPU time leaves out what other programs take, but only means duration on one thread."""
        return "CPU time" if self == SINGLE else "wall time"

    def cost(self, times: Times) -> float:
        """What a run takes from the budget: CPU time, or wall time on a GPU, which no CPU clock sees."""
        return times.cpu if self.device == "cpu" else times.wall


SINGLE = Processor("cpu", 1)


@dataclass(frozen=True)
class Job:
    processor: Processor
    length: int
    mode: str
    runner: str

    def columns(self) -> Row:
        return {
            "setup": self.processor.name,
            "device": self.processor.device,
            "threads": self.processor.threads,
            "clock": self.processor.clock,
            "length": self.length,
            "mode": self.mode,
        }


Timed = dict[Job, list[Times]]
"""The repeats of every job, by round."""


def within_budget(seconds: dict[Job, float], budget: float) -> set[Job]:
    """Jobs that fit the budget: layers on one thread or a GPU first, loops on several threads last.

    Within these groups the cheapest first, so that what is left out is what costs most.
    """

    def order(job: Job) -> tuple[int, float]:
        several = job.processor.device == "cpu" and job.processor.threads > 1
        return BY_NAME[job.runner].python_loop + several, seconds[job]

    spent = 0.0
    fitting: set[Job] = set()
    for job in sorted(seconds, key=order):
        if spent + seconds[job] <= budget:
            fitting.add(job)
            spent += seconds[job]
    return fitting


def rounds(
    predicted: dict[Job, float],
    repeats: int,
    budget: float,
    *,
    enter: Callable[[Processor], None],
    time: Callable[[Job], Times],
) -> Iterator[tuple[Timed, dict[Job, float]]]:
    """After each round what was timed so far, and what was left out with the seconds all its runs would take.

    The jobs are those whose ``predicted`` seconds (one run each) fit; round 0 warms up and is dropped. Each
    round first looks at what the rounds before really took: what no longer fits the budget and a third is
    left out, repeats and all. What was spent on it is not charged to the others: threads that collapse on a
    busy machine must not cost the others their race. ``enter`` is told of each change of processor.
    """
    rng = np.random.default_rng(0)
    timed: Timed = {job: [] for job in predicted}
    left_out: dict[Job, float] = {}
    for number in range(repeats + 1):
        cost: dict[Job, float] = {}
        for job, runs in timed.items():
            seconds = [job.processor.cost(times) / 1e3 for times in runs] or [predicted[job]]
            cost[job] = (repeats + 1) * float(np.mean(seconds))
        fitting = within_budget(cost, budget if number == 0 else budget * OVERRUN)
        left_out |= {job: cost[job] for job in timed if job not in fitting}
        timed = {job: timed[job] for job in timed if job in fitting}
        for processor in shuffle(sorted({job.processor for job in timed}), rng):
            enter(processor)
            for job in shuffle([job for job in timed if job.processor == processor], rng):
                timed[job].append(time(job))
        yield {job: repeats[1:] for job, repeats in timed.items() if number}, left_out


def shuffle(items: Sequence[T], rng: np.random.Generator) -> list[T]:
    return [items[i] for i in rng.permutation(len(items))]


def time_rows(timed: Timed) -> list[Row]:
    """Median milliseconds with the smallest and the largest."""
    rows: list[Row] = []
    for job, repeats in timed.items():
        cpu, wall = (spread(times) for times in zip(*repeats, strict=True))
        walls = {"wall": wall["value"], "wall_low": wall["low"], "wall_high": wall["high"]}
        told = cpu if job.processor.clock == "CPU time" else wall
        rows.append({**job.columns(), "runner": job.runner, **told, **walls})
    return rows


def spread(values: Sequence[float]) -> dict[str, float | int]:
    """Median, smallest, largest, n."""
    return {"value": float(np.median(values)), "low": min(values), "high": max(values), "n": len(values)}


def ratio_rows(timed: Timed) -> list[Row]:
    """``value``: how many times as long ``a`` takes as ``b`` where both ran."""
    return [
        {**job.columns(), "a": a.name, "b": b.name, **ratio.row()}
        for job in timed
        for a, b in PAIRS
        if job.runner == a.name and (ratio := _ratio(timed, job, replace(job, runner=b.name)))
    ]


def gain_rows(timed: Timed) -> list[Row]:
    """``value``: how many times as long a runner's wall time is on one CPU thread as elsewhere."""
    return [
        {**job.columns(), "clock": "wall time", "runner": job.runner, **ratio.row()}
        for job in timed
        if job.processor != SINGLE and (ratio := _ratio(timed, replace(job, processor=SINGLE), job))
    ]


def _ratio(timed: Timed, a: Job, b: Job) -> Interval | None:
    """How many times as long ``a`` takes as ``b``, where both ran often enough."""
    if a not in timed or b not in timed or len(timed[a]) < FEWEST:
        return None
    cpu = a.processor == b.processor == SINGLE  # else there is no clock but the wall's for both
    return ratio_of(*([times.cpu if cpu else times.wall for times in timed[job]] for job in (a, b)))
