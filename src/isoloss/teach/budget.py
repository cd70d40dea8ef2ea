"""What the panels cost at the deck's live sizes: measured once, by ``benchmarks/teaching.py``."""

import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Budget:
    """CPU seconds by panel, the machine that took them and its matrix rate on one thread."""

    seconds: dict[str, float]
    gflops: float
    machine: str
    made: str

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def recorded() -> Budget | None:
    """The shipped measurement, or None in a checkout that has none yet."""
    file = resources.files("isoloss.teach").joinpath("budget.toml")
    if not file.is_file():
        return None
    held = tomllib.loads(file.read_text("utf-8"))
    return Budget(held["cpu_seconds"], held["gflops"], held["machine"], held["made"])
