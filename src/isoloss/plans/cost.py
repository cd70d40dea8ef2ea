"""What compute costs: FLOPs by rule, accelerator hours at a stated utilisation, money at a stated price."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from isoloss.errors import InputError
from isoloss.files import shipped_toml

PF_DAY = 1e15 * 86_400
"""One petaFLOP/s-day in FLOPs, 8.64e19."""

FORWARD_SHARE = 1 / 3
"""A forward pass is a third of a training step: backward costs two forwards."""


@dataclass(frozen=True)
class Rates:
    """FLOPs per parameter and token: ``train`` = k in C = k N D, ``serve`` = k / 3.

    Both are multiplied by ``passes``, executed over stored parameters, which is 1 but for looped models.
    """

    flops_per_token: float
    passes: float = 1.0

    @property
    def train(self) -> float:
        return self.flops_per_token * self.passes

    @property
    def serve(self) -> float:
        return self.train * FORWARD_SHARE


@dataclass(frozen=True)
class Hardware:
    """One accelerator: dense bf16 peak in FLOP/s, and the share of it that training reaches."""

    gpu: str
    peak_flops: float
    mfu: float
    source: str

    def hours(self, flops: float) -> float:
        """Hours of one accelerator: FLOPs / (peak x MFU) / 3600."""
        return flops / (self.peak_flops * self.mfu) / 3600


@cache
def _peaks() -> dict[str, dict[str, Any]]:
    return shipped_toml("isoloss.plans", "hardware.toml")


def gpus() -> tuple[str, ...]:
    """The accelerators whose peak is known."""
    return tuple(sorted(_peaks()))


def memories(gpu: str) -> tuple[float, ...]:
    """Bytes of each size that a known accelerator is sold with, the smallest first."""
    return tuple(1e9 * size for size in _peaks()[gpu]["memory_gb"])


def hardware(gpu: str, mfu: float) -> Hardware:
    """Raises InputError for an unknown accelerator, listing the known, or an MFU outside (0, 1]."""
    peaks = _peaks()
    if gpu not in peaks:
        others = "hours on another go by its dense bf16 peak beside that of one of these"
        mend = f"choose one of {', '.join(gpus())}; {others}"
        raise InputError(f"no accelerator is named {gpu!r}", mend=mend)
    if not 0 < mfu <= 1:
        raise InputError(
            f"mfu is {mfu}", mend="give the share of the dense bf16 peak that training reaches, such as 0.4"
        )
    return Hardware(gpu, peaks[gpu]["tflops"] * 1e12, mfu, peaks[gpu]["source"])
