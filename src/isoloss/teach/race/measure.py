"""Time the five runners at several lengths, forward and with backward, on one thread, on all, on a GPU."""

import os
import time

import torch

from isoloss.teach.panel import Report
from isoloss.teach.race import counts, timing
from isoloss.teach.race.runners import Entry, entries
from isoloss.teach.race.settings import RaceSettings
from isoloss.teach.race.timing import BOTH, MODES, Job, Race, Setup
from isoloss.teach.result import Row, Tables

LOOP_TRIAL, LAYER_TRIAL = 8, 128
"""Tokens of the trials from which longer runs are predicted, in proportion to FLOPs."""


def measure(settings: RaceSettings, report: Report) -> Tables:
    before = torch.get_num_threads()
    try:
        return _measure(settings, report)
    finally:
        torch.set_num_threads(before)


def _measure(settings: RaceSettings, report: Report) -> Tables:
    setups = setups_of(settings, os.cpu_count() or 1, gpu=torch.cuda.is_available())
    predicted: dict[Job, float] = {}
    started = time.process_time()
    for setup in setups:
        predicted |= predictions(settings, setup, report)
    # Trials are part of the bill, but on a machine that is busy elsewhere they must not eat all of it.
    budget = max(0.5 * settings.budget_seconds, settings.budget_seconds - time.process_time() + started)
    track = Track(settings, report, len(predicted) * (settings.repeats + 1))
    return track.tables(
        timing.run(predicted, settings.repeats, budget, enter=enter, timed=track.time, seen=track.show)
    )


class Track:
    """Times jobs, counts the ``runs`` of ``planned`` ones, and reports."""

    def __init__(self, settings: RaceSettings, report: Report, planned: int):
        self.clock, self.report, self.planned, self.runs = Stopwatch(settings), report, planned, 0
        self.exact = counts.exact_rows(settings.lengths, settings.d_model, settings.batch)

    def time(self, job: Job) -> tuple[float, float]:
        self.runs += 1
        what = f"T = {job.length:,}, {job.mode}: {job.runner}, {job.setup.name}"
        self.report(self.runs / self.planned, what)
        return self.clock.time(job)

    def show(self, race: Race) -> None:
        self.report(self.runs / self.planned, f"{len(race.samples):,} runs timed", self.tables(race))

    def tables(self, race: Race) -> Tables:
        return {
            "times": timing.time_rows(race.samples),
            "ratios": timing.ratio_rows(race.samples),
            "gains": timing.gain_rows(race.samples),
            "not_run": [not_run(job, seconds) for job, seconds in race.left_out.items()],
            "exact": self.exact,
        }


def setups_of(settings: RaceSettings, cores: int, *, gpu: bool) -> list[Setup]:
    """At most as many threads as there are cores: more would only queue."""
    threads = sorted({min(count or cores, cores) for count in settings.threads})
    cpu = [Setup("cpu", count) for count in threads]
    return [*cpu, Setup("cuda", 1)] if gpu and settings.gpu else cpu


def enter(setup: Setup) -> None:
    """Change the thread count, and let the new threads start and the old ones stop before a clock runs."""
    torch.set_num_threads(setup.threads)
    square = torch.ones(256, 256, device=setup.device)
    for _ in range(3):
        square = square @ square * 0.0
    _wait(setup)


def predictions(settings: RaceSettings, setup: Setup, report: Report) -> dict[Job, float]:
    """Seconds of one run of every job of a set-up, from a short trial."""
    enter(setup)
    clock, shape = Stopwatch(settings), (settings.d_model, settings.batch)
    seconds: dict[Job, float] = {}
    for runner in counts.RUNNERS:
        trial = LOOP_TRIAL if runner.python_loop else LAYER_TRIAL
        for mode in MODES:
            report(0.0, f"trial of {runner.name}, {mode}, {setup.name}")
            ms = min(setup.cost(*clock.time(Job(setup, trial, mode, runner.name))) for _ in range(2))
            for length in settings.lengths:
                more = counts.flops(runner, length, *shape) / counts.flops(runner, trial, *shape)
                seconds[Job(setup, length, mode, runner.name)] = ms / 1e3 * more
    return seconds


def not_run(job: Job, seconds: float) -> Row:
    return {
        "setup": job.setup.name,
        "length": job.length,
        "mode": job.mode,
        "runner": job.runner,
        "predicted_seconds": seconds,
    }


class Stopwatch:
    """Runs a job once; the runners of a device and length are made when first asked for."""

    def __init__(self, settings: RaceSettings):
        self.d_model, self.batch = settings.d_model, settings.batch
        self.entries: dict[tuple[str, int], dict[str, Entry]] = {}

    def time(self, job: Job) -> tuple[float, float]:
        """Milliseconds of the process's CPU time and of wall time."""
        key = (job.setup.device, job.length)
        if key not in self.entries:
            self.entries[key] = entries(job.length, self.d_model, self.batch, job.setup.device)
        entry = self.entries[key][job.runner]
        x = torch.randn(entry.shape, device=job.setup.device, requires_grad=job.mode == BOTH)
        gradient = torch.randn_like(x)
        for weight in entry.weights:
            weight.grad = None
        _wait(job.setup)
        cpu, wall = time.process_time(), time.perf_counter()
        if job.mode == BOTH:
            entry.forward(x).backward(gradient)
        else:
            with torch.no_grad():
                entry.forward(x)
        _wait(job.setup)
        return 1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)


def _wait(setup: Setup) -> None:
    if setup.device == "cuda":
        torch.cuda.synchronize()
