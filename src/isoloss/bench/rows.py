"""What a benchmark says: rows of ours beside another's, and the machine that they were measured on."""

import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from isoloss import cpu
from isoloss.training.device import device_name
from isoloss.version import __version__

ROUNDS = 3
"""Turns that each side gets: a median of pairs favours neither on a machine that drifts."""


@dataclass(frozen=True)
class Row:
    """``value`` of ours and ``other`` of the peer or bound ``beside``, both in ``unit``."""

    what: str
    value: float
    unit: str
    beside: str
    other: float

    @property
    def ratio(self) -> float:
        return self.value / self.other

    def line(self) -> str:
        ours, theirs = (
            f"{number:,.4g}" if number < 100 else f"{number:,.0f}" for number in (self.value, self.other)
        )
        return f"{self.what:<44} {ours:>12} {self.unit:<14} {self.ratio:>7.3g} x  {self.beside} ({theirs})"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def document(bench: str, device: torch.device, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The JSON of a benchmark: where it was measured, with what, beside which load, and its rows."""
    return {
        "bench": bench,
        "machine": device_name(device),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "threads": torch.get_num_threads(),
        "isoloss": __version__,
        "versions": cpu.with_versions("torch", "numpy", "scipy"),
        "rows": rows,
    }


def rates(sides: list[Callable[[], float]], seconds: float, clock: Callable[[], float]) -> list[float]:
    """Units a second of each side, medians of turns. A side does some units and says how many.

    Each side is warmed up by a turn that does not count.
    """
    turns = [[rate(side, seconds, clock) for side in sides] for _ in range(ROUNDS + 1)][1:]
    return [statistics.median(column) for column in zip(*turns, strict=True)]


def rate(side: Callable[[], float], seconds: float, clock: Callable[[], float]) -> float:
    begin, done = clock(), side()
    while (taken := clock() - begin) < seconds:
        done += side()
    return done / taken


def over_first(values: list[float]) -> list[float]:
    return [value / values[0] for value in values]
