"""What the calibration says."""

import tomllib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from isoloss.figures.figure import Figure
from isoloss.teach.machine.settings import MachineSettings
from isoloss.teach.prose import say
from isoloss.teach.result import Row, Sentence, Tables, sentence

BUSY = 2.0
"""Slowest over fastest repeat of one product: more than this is not noise of an idle machine."""


def count(settings: MachineSettings, tables: Tables) -> int:
    return settings.repeats


def sentences(settings: MachineSettings, tables: Tables) -> list[Sentence]:
    single, *more = tables["rates"]
    text = f"One thread multiplies matrices at {_rate(single)}."
    if more:
        text += f" {more[-1]['threads']} threads: {_rate(more[-1])}."
    if single["high"] > BUSY * single["low"]:
        text += " The repeats are far apart: something else is running, and the estimate may be off as far."
    budget = recorded_budget()
    total = sum(budget["cpu_seconds"].values())
    here = total * budget["gflops"] / single["gflops"]
    cost = say("machine", "cost", total=total, here=here, **budget)
    short = f"Everything here takes about {minutes(here)} on this machine."
    return [sentence("rate", text), sentence("run-all", cost, short)]


def minutes(seconds: float) -> str:
    """Of one core, for the room."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def recorded_budget() -> dict[str, Any]:
    """What the panels cost at the deck's live sizes: measured by ``benchmarks/teaching.py``, and shipped."""
    return tomllib.loads(resources.files("isoloss.teach").joinpath("budget.toml").read_text("utf-8"))


def _rate(row: Row) -> str:
    return f"{row['gflops']:.0f} GFLOP/s ({row['low']:.0f} to {row['high']:.0f}, {row['n']} repeats)"


def figures(settings: MachineSettings, tables: Tables) -> Sequence[Figure]:
    return []
