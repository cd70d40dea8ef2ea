"""Where and in what precision to compute, and what to say about it in the record."""

import contextlib
import ctypes
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch

from isoloss import cpu
from isoloss.errors import InputError
from isoloss.records.schema import Environment
from isoloss.version import __version__

CPU_BYTES = 16 * 2.0**30
"""Counted on for the logits of a run on a CPU, whatever it has."""


LARGE_BLOCK = 1 << 25
"""Bytes from which a block is returned to the kernel once freed: the most that every glibc takes."""


@dataclass(frozen=True)
class Device:
    device: torch.device
    autocast: bool

    @property
    def dtype(self) -> str:
        return "bfloat16 autocast" if self.autocast else "float32"

    def precision(self) -> contextlib.AbstractContextManager[object]:
        if self.autocast:
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()


def find(wanted: str) -> torch.device:
    """CUDA, then MPS, then CPU, or the one wanted. Raises InputError if it is not there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    kind = wanted.split(":")[0]
    if wanted == "auto":
        return torch.device(next(name for name, present in there.items() if present))
    if not there.get(kind, False):
        have = ", ".join(name for name, present in there.items() if present)
        raise InputError(f"there is no device {wanted!r} here", mend=f"use one of {have}, or auto")
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise InputError(f"{wanted!r} is not a device", mend="write cpu, cuda, cuda:1, mps or auto") from None
    if kind == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        raise InputError(f"there is no device {wanted!r} here", mend=f"use one of cuda:0 to cuda:{count - 1}")
    return device


def choose(wanted: str, family: str) -> Device:
    """The device to train on (``find``): float32, but bf16 on GPUs that have it.

    On a CPU every size is float32, so that no comparison of sizes is one of precisions: bf16 halves the speed
    of some processors that have it. LSTMs are float32 everywhere: autocast would send cuDNN's recurrent
    kernels to fp16 without loss scaling, whatever type was asked for.
    """
    device = find(wanted)
    bf16 = device.type == "cuda" and family != "lstm"
    return Device(device, bf16 and torch.cuda.is_bf16_supported(including_emulation=False))


def prepare_gpu(device: torch.device) -> None:
    """Make it this process's current one, on which graphs are captured; float32 there is float32.

    cuDNN by itself rounds float32 to TF32's ten bits, of which no record would tell.
    """
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False
        if device.index is not None:
            torch.cuda.set_device(device)


def memory_of(device: torch.device) -> float:
    """Bytes: of a GPU what it has; elsewhere a fixed amount, so that no machine's rounding differs by it."""
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    return CPU_BYTES


def prepare_cpu() -> None:
    """Make this process fast on its processor: denormal numbers count as 0, and freed memory is kept.

    Adam's second moments and the tails of a softmax fade below 1.2e-38, where some processors are many times
    slower for each number, and training up to several times.

    glibc would return blocks from 128 KB on to the kernel after every step; logits are megabytes, so each
    step would fault them in again: up to a fifth of the time of a small model. Blocks of ``LARGE_BLOCK`` are
    returned: kept, they leave holes into which the next ones do not fit.
    """
    torch.set_flush_denormal(True)
    if (libc := glibc()) is not None:
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(mmap_threshold, LARGE_BLOCK)
        libc.mallopt(trim_threshold, (1 << 31) - 1)


def return_freed() -> None:
    """Give the kernel what is freed and kept, so that what is done next does not add to it. It costs
    milliseconds, too many for each update.
    """
    if (libc := glibc()) is not None:
        libc.malloc_trim(0)


@cache
def glibc() -> ctypes.CDLL | None:
    """The C library, where it is glibc; the memory of others is left as it is."""
    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return None
    return ctypes.CDLL(None)


def one_core(device: str) -> None:
    """One process a core, one thread each: threads waiting for a taken core cost more than they give.

    Not where ``device`` is a GPU, whose cores have nothing else to do.
    """
    if device == "cpu" or not torch.cuda.is_available():
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"
    prepare_cpu()


def environment_of(device: Device, cohort_size: int, *, compiled: bool = False) -> Environment:
    commit, dirty = code_version()
    return Environment(
        isoloss=__version__,
        commit=commit,
        dirty=dirty,
        python=platform.python_version(),
        torch=str(torch.__version__),
        numpy=np.__version__,
        platform=f"{platform.system()} {platform.machine()}",
        device=device.device.type,
        device_name=device_name(device.device),
        threads=torch.get_num_threads(),
        dtype=device.dtype,
        compiled=compiled,
        cohort_size=cohort_size,
    )


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return cpu.name() if device.type == "cpu" else platform.processor() or platform.machine()


def code_version() -> tuple[str | None, bool | None]:
    """Commit of the checkout this package runs from, and whether it has changes; None if installed."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None, None

    def git(*arguments: str) -> str:
        return subprocess.run(  # noqa: S603 - fixed program and arguments
            ["git", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None, None
