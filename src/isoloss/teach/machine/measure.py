"""How fast this machine multiplies matrices: one thread, then all."""

import os
import time

import torch

from isoloss.teach.machine.settings import MachineSettings
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables


def measure(settings: MachineSettings, report: Report) -> Tables:
    """Table ``rates``: GFLOP/s of C = A B in float32, 2 size^3 operations, by threads."""
    before = torch.get_num_threads()
    rows: list[Row] = []
    every = sorted({1, os.cpu_count() or 1})
    for done, threads in enumerate(every):
        report(
            done / len(every), f"multiplying {settings.size} x {settings.size} matrices, {threads} thread(s)"
        )
        torch.set_num_threads(threads)
        rows.append({"threads": threads, "n": settings.repeats, **rate(settings)})
    torch.set_num_threads(before)
    return {"rates": rows}


def rate(settings: MachineSettings) -> dict[str, float]:
    """Median, lowest and highest GFLOP/s over the repeats; each repeat is long enough for the clock."""
    a, b = torch.rand(2, settings.size, settings.size)
    products = max(1, round(2e8 / settings.size**3))
    rates: list[float] = []
    a @ b
    for _ in range(settings.repeats):
        started = time.perf_counter()
        for _ in range(products):
            a @ b
        rates.append(2e-9 * products * settings.size**3 / (time.perf_counter() - started))
    rates.sort()
    return {"gflops": rates[len(rates) // 2], "low": rates[0], "high": rates[-1]}
