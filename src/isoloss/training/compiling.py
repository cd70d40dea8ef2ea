"""When to compile the training step: a C++ compiler is there, and the run is long beside the compilation."""

import os
import shutil
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

from isoloss.models import Shape, count, family
from isoloss.training.schedule import updates
from isoloss.training.settings import RunSettings

P = ParamSpec("P")
R = TypeVar("R")

ENOUGH_FLOPS = 3e13
"""About ten minutes of one core. Compiling takes up to a minute; a step is then 1.1 to 1.3 times as fast."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """By this process alone: the other cores have runs of their own."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.compiler.reset()  # else the eighth shape of a process would be left uncompiled, without a word
    return torch.compile(function, dynamic=False)


def pays(settings: RunSettings, shape: Shape, device: str) -> bool:
    """Whether to compile this run on a CPU: a function of the run and the machine, the same when resumed.

    Recurrent kernels are not compiled, so families that are not stacked gain nothing.
    """
    kind = family(settings.family)
    if device != "cpu" or not kind.stacked or shutil.which(os.environ.get("CXX", "g++")) is None:
        return False
    counts = count(kind, shape, settings.vocab, settings.context)
    return counts.flops_exact(updates(settings) * settings.batch_tokens) >= ENOUGH_FLOPS
