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

ENOUGH_FLOPS = {"cpu": 3e13, "cuda": 2.4e16}
"""About ten minutes of one core, where compiling takes up to a minute and a step is then 1.1 to 1.3 times as
fast; and a minute of a GPU, on which narrow models count as more (computed, not measured)."""

GPU_HALF_SPEED_WIDTH = 1000
"""d_model at which a GPU reaches half its speed: small models wait for launches (from measured 0.3% to 46%
of peak)."""

MOST_SHAPES = 4096
"""Shapes that one process may compile; torch by itself stops at 8 and runs plainly, without a word."""


def compiled(function: Callable[P, R], backend: str = "inductor") -> Callable[P, R]:
    """On a CPU by this process alone: other cores have runs of their own. Raises beyond ``MOST_SHAPES``."""
    from torch import _dynamo  # slow to import, and most runs compile nothing

    if not torch.cuda.is_available():
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    _dynamo.config.recompile_limit = _dynamo.config.accumulated_recompile_limit = MOST_SHAPES
    _dynamo.config.fail_on_recompile_limit_hit = True
    return torch.compile(function, dynamic=False, backend=backend)


def pays(settings: RunSettings, shape: Shape, device: str, members: int) -> bool:
    """Whether to compile this cohort: a function of it and the machine, the same when resumed.

    Recurrent kernels are not compiled, so families that are not stacked gain nothing.
    """
    kind = family(settings.family)
    if device not in ENOUGH_FLOPS or not kind.stacked:
        return False
    if device == "cpu" and shutil.which(os.environ.get("CXX", "g++")) is None:
        return False
    counts = count(kind, shape, settings.vocab, settings.context)
    work = members * counts.flops_exact(updates(settings) * settings.batch_tokens)
    if device == "cuda":
        work *= 1.0 + GPU_HALF_SPEED_WIDTH / getattr(shape, "d_model", GPU_HALF_SPEED_WIDTH)
    return work >= ENOUGH_FLOPS[device]
