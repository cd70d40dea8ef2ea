"""The rules of a race: what fits the budget, rounds in random order, and rows of what was timed.

Everything is timed once a round, in an order drawn anew each round: whatever else the machine does in that
time falls on all alike. No clock is read here; ``timed`` brings its readings, so that tests can bring theirs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from isoloss.teach.race.counts import ALONE, BLOCK, BY_NAME, FUSED, LSTM, NAIVE, RUNNERS
from isoloss.teach.race.ratios import FEWEST, paired
from isoloss.teach.result import Row
from isoloss.text import plural

FORWARD, BOTH = "forward", "forward + backward"
MODES = (FORWARD, BOTH)
OVERRUN = 4 / 3
PAIRS = ((BLOCK, LSTM), (ALONE, LSTM), (NAIVE, LSTM), (NAIVE, FUSED), (NAIVE, ALONE))


@dataclass(frozen=True, order=True)
class Setup:
    """Where: a device and, on the CPU, a number of threads."""

    device: str
    threads: int

    @property
    def name(self) -> str:
        if self.device != "cpu":
            return "GPU"
        return plural(self.threads, "CPU thread")

    @property
    def clock(self) -> str:
        """CPU time leaves out what other programs take, but only means duration on one thread."""
        return "CPU time" if self.device == "cpu" and self.threads == 1 else "wall time"

    def cost(self, cpu: float, wall: float) -> float:
        """What a run takes from the budget: CPU time, or wall time on a GPU, which no CPU clock sees."""
        return cpu if self.device == "cpu" else wall


@dataclass(frozen=True)
class Job:
    setup: Setup
    length: int
    mode: str
    runner: str


@dataclass(frozen=True)
class Sample:
    """A job timed once, in milliseconds."""

    job: Job
    round: int
    cpu: float
    wall: float

    @property
    def value(self) -> float:
        return self.cpu if self.job.setup.clock == "CPU time" else self.wall


@dataclass
class Race:
    """What was timed so far, and what was left out with the seconds that all its runs would take."""

    samples: list[Sample]
    left_out: dict[Job, float]


def within_budget(seconds: dict[Job, float], budget: float) -> list[Job]:
    """Jobs that fit the budget: layers on one thread or a GPU first, loops on several threads last.

    Within these groups the cheapest first, so that what is left out is what costs most.
    """

    def order(job: Job) -> tuple[int, float]:
        several = job.setup.device == "cpu" and job.setup.threads > 1
        return BY_NAME[job.runner].python_loop + several, seconds[job]

    spent = 0.0
    chosen: list[Job] = []
    for job in sorted(seconds, key=order):
        if spent + seconds[job] <= budget:
            chosen.append(job)
            spent += seconds[job]
    return chosen


def run(
    predicted: dict[Job, float],
    repeats: int,
    budget: float,
    *,
    enter: Callable[[Setup], None],
    timed: Callable[[Job], tuple[float, float]],
    seen: Callable[[Race], None],
) -> Race:
    """Rounds over all jobs whose predicted seconds (one run each) fit; round 0 warms up and is dropped.

    Each round first looks at what the rounds before really took: what no longer fits the budget and a third
    is left out, samples and all. What was spent on it is not charged to the others: threads that collapse on
    a busy machine must not cost the others their race. ``enter`` is told of each change of set-up, ``seen``
    of each round.
    """
    race, rng = Race([], {}), np.random.default_rng(0)
    took: dict[Job, list[float]] = {job: [] for job in predicted}
    for number in range(repeats + 1):
        cost = {job: (repeats + 1) * float(np.mean(took[job] or [predicted[job]])) for job in took}
        for job in set(took) - set(within_budget(cost, budget if number == 0 else budget * OVERRUN)):
            race.left_out[job] = cost[job]
            del took[job]
        race.samples = [sample for sample in race.samples if sample.job in took]
        for job in random_order(list(took), rng, enter):
            cpu, wall = timed(job)
            took[job].append(job.setup.cost(cpu, wall) / 1e3)
            if number > 0:
                race.samples.append(Sample(job, number, cpu, wall))
        seen(race)
    return race


def random_order(
    jobs: Sequence[Job], rng: np.random.Generator, enter: Callable[[Setup], None]
) -> Iterable[Job]:
    """Set-up by set-up in random order, and the jobs of each in random order."""
    setups = sorted({job.setup for job in jobs})
    for index in rng.permutation(len(setups)):
        enter(setups[index])
        here = [job for job in jobs if job.setup == setups[index]]
        yield from (here[i] for i in rng.permutation(len(here)))


def time_rows(samples: Sequence[Sample]) -> list[Row]:
    """Median milliseconds with the smallest and the largest."""
    rows: list[Row] = []
    for job, repeats in _by_job(samples).items():
        value, wall = (spread([getattr(sample, clock) for sample in repeats]) for clock in ("value", "wall"))
        walls = {"wall": wall["value"], "wall_low": wall["low"], "wall_high": wall["high"]}
        rows.append({**_columns(job), "runner": job.runner, **value, **walls})
    return rows


def spread(values: Sequence[float]) -> dict[str, float | int]:
    """Median, smallest, largest, n."""
    return {"value": float(np.median(values)), "low": min(values), "high": max(values), "n": len(values)}


def ratio_rows(samples: Sequence[Sample]) -> list[Row]:
    """``value``: how many times as long ``a`` takes as ``b`` where both ran."""
    timed = _by_job(samples)
    rows: list[Row] = []
    for job in timed:
        for a, b in PAIRS:
            other = Job(job.setup, job.length, job.mode, b.name)
            if job.runner == a.name and other in timed and len(timed[other]) >= FEWEST:
                ratio = paired([s.value for s in timed[job]], [s.value for s in timed[other]])
                rows.append({**_columns(job), "a": a.name, "b": b.name, **ratio.row()})
    return rows


def gain_rows(samples: Sequence[Sample]) -> list[Row]:
    """``value``: how many times as long a runner's wall time is on one CPU thread as in another set-up."""
    timed = _by_job(samples)
    rows: list[Row] = []
    for job in timed:
        single = Job(Setup("cpu", 1), job.length, job.mode, job.runner)
        if job.setup != single.setup and single in timed and len(timed[single]) >= FEWEST:
            ratio = paired([s.wall for s in timed[single]], [s.wall for s in timed[job]])
            rows.append({**_columns(job), "clock": "wall time", "runner": job.runner, **ratio.row()})
    return rows


def _by_job(samples: Sequence[Sample]) -> dict[Job, list[Sample]]:
    """By set-up, mode, length and runner; the samples of each by round."""
    names = [runner.name for runner in RUNNERS]
    by_job: dict[Job, list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.round):
        by_job.setdefault(sample.job, []).append(sample)
    order = {job: (job.setup, MODES.index(job.mode), job.length, names.index(job.runner)) for job in by_job}
    return {job: by_job[job] for job in sorted(by_job, key=order.__getitem__)}


def _columns(job: Job) -> Row:
    return {
        "setup": job.setup.name,
        "device": job.setup.device,
        "threads": job.setup.threads,
        "clock": job.setup.clock,
        "length": job.length,
        "mode": job.mode,
    }
