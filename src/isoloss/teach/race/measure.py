"""Time the five runners at several lengths, forward and with backward, on one thread, on all, on a GPU."""

import os
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import product

import torch

from isoloss.teach.panel import Report
from isoloss.teach.race import counts, timing
from isoloss.teach.race.runners import entries
from isoloss.teach.race.settings import RaceSettings
from isoloss.teach.race.timing import BOTH, MODES, Job, Processor, Timed, Times
from isoloss.teach.result import Tables

LOOP_TRIAL, LAYER_TRIAL = 8, 128
"""Tokens of the trials from which longer runs are predicted, in proportion to FLOPs."""


def measure(settings: RaceSettings, report: Report) -> Tables:
    before = torch.get_num_threads()
    try:
        return _measure(settings, report)
    finally:
        torch.set_num_threads(before)


def _measure(settings: RaceSettings, report: Report) -> Tables:
    time_of, predicted, started = stopwatch(settings), dict[Job, float](), time.process_time()
    for processor in processors_of(settings, os.cpu_count() or 1, gpu=torch.cuda.is_available()):
        predicted |= predictions(settings, processor, time_of, report)
    # Trials are part of the bill, but on a machine that is busy elsewhere they must not eat all of it.
    budget = max(0.5 * settings.budget_seconds, settings.budget_seconds - time.process_time() + started)
    planned, runs, tables = len(predicted) * (settings.repeats + 1), 0, Tables()

    def run(job: Job) -> Times:
        nonlocal runs
        runs += 1
        report(runs / planned, f"T = {job.length:,}, {job.mode}: {job.runner}, {job.processor.name}")
        return time_of(job)

    for timed, left_out in timing.rounds(predicted, settings.repeats, budget, enter=enter, time=run):
        tables = tables_of(settings, timed, left_out)
        report(runs / planned, f"{sum(map(len, timed.values())):,} runs timed", tables)
    return tables


def tables_of(settings: RaceSettings, timed: Timed, left_out: dict[Job, float]) -> Tables:
    return {
        "times": timing.time_rows(timed),
        "ratios": timing.ratio_rows(timed),
        "gains": timing.gain_rows(timed),
        "not_run": [
            {
                "setup": job.processor.name,
                "length": job.length,
                "mode": job.mode,
                "runner": job.runner,
                "predicted_seconds": seconds,
            }
            for job, seconds in left_out.items()
        ],
        "exact": counts.exact_rows(settings.lengths, settings.d_model, settings.batch),
    }


def processors_of(settings: RaceSettings, cores: int, *, gpu: bool) -> list[Processor]:
    """At most as many threads as there are cores: more would only queue."""
    threads = sorted({min(count or cores, cores) for count in settings.threads})
    cpu = [Processor("cpu", count) for count in threads]
    return [*cpu, Processor("cuda", 1)] if gpu and settings.gpu else cpu


def enter(processor: Processor) -> None:
    """Change the thread count, and let the new threads start and the old ones stop before a clock runs."""
    torch.set_num_threads(processor.threads)
    square = torch.ones(256, 256, device=processor.device)
    for _ in range(3):
        square = square @ square * 0.0
    _wait(processor)


def predictions(
    settings: RaceSettings, processor: Processor, time_of: Callable[[Job], Times], report: Report
) -> dict[Job, float]:
    """Seconds of one run of every job on a processor, from a short trial."""
    enter(processor)
    shape = settings.d_model, settings.batch
    per_flop: dict[tuple[str, str], float] = {}
    for mode, runner in product(MODES, counts.RUNNERS):
        report(0.0, f"trial of {runner.name}, {mode}, {processor.name}")
        trial = Job(processor, LOOP_TRIAL if runner.python_loop else LAYER_TRIAL, mode, runner.name)
        ms = min(processor.cost(time_of(trial)) for _ in range(2))
        per_flop[mode, runner.name] = ms / 1e3 / counts.flops(runner, trial.length, *shape)
    return {
        Job(processor, T, mode, runner.name): per_flop[mode, runner.name] * counts.flops(runner, T, *shape)
        for mode, T, runner in product(MODES, sorted(settings.lengths), counts.RUNNERS)
    }


def stopwatch(settings: RaceSettings) -> Callable[[Job], Times]:
    """Runs a job once; the runners of a device and length are made when first asked for."""
    runners = cache(partial(entries, d_model=settings.d_model, batch=settings.batch))

    def time_of(job: Job) -> Times:
        entry = runners(job.length, device=job.processor.device)[job.runner]
        x = torch.randn(entry.shape, device=job.processor.device, requires_grad=job.mode == BOTH)
        gradient = torch.randn_like(x)
        for weight in entry.weights:
            weight.grad = None
        _wait(job.processor)
        cpu, wall = time.process_time(), time.perf_counter()
        if job.mode == BOTH:
            entry.forward(x).backward(gradient)
        else:
            with torch.no_grad():
                entry.forward(x)
        _wait(job.processor)
        return Times(1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall))

    return time_of


def _wait(processor: Processor) -> None:
    if processor.device == "cuda":
        torch.cuda.synchronize()
