"""What a run will cost before it starts: seconds and bytes, from FLOPs and a rate measured on the spot.

A rough guide: it knows matmuls and a width at which kernels reach half their speed, nothing of caches. The
assumption is printed with the estimate.
"""

import os
import time
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import torch

from isoloss.models import Shape, family
from isoloss.models.transformer import BlockShape
from isoloss.training.compiling import GPU_HALF_SPEED_WIDTH
from isoloss.training.device import CPU_BYTES
from isoloss.training.objective import LOGITS_SHARE
from isoloss.training.schedule import trace_steps, updates
from isoloss.training.settings import RunSettings
from isoloss.training.sliding import GROUPS, NEAR
from isoloss.units import Count

HALF_SPEED_WIDTH = 100
"""Width at which the training step reaches half the matmul rate (CPU, measured over widths 24 to 320)."""

FULL_SPEED_HEAD = 90
"""Head dimension from which attention runs at the matmul rate (CPU, measured over 4 to 32)."""

LAYER_SECONDS = 0.8e-3
"""What an update takes of each executed layer whatever its width: operators are called one by one (CPU, over
widths 8 to 64 and one to eight layers of every family)."""

GPU_MFU = 0.4
"""Share of its dense bf16 peak that a GPU is assumed to reach on wide models."""

GPU_PEAK = 989e12
"""Dense bf16 peak in FLOP/s of the GPU assumed where none is here, an H100."""

PROCESS_BYTES = {True: 412e6, False: 428e6}
"""A worker that has trained: Python, torch, what its kernels keep, and the token file's pages; by whether the
family is stacked, as all that follows."""

PARAM_BYTES = 28.0
"""Weights, gradients, two moments, and the trunk's weights and moments while a branch is trained."""

STEP = {True: (22.0, 3.6), False: (18.0, 2.8)}
"""Floats a token that an update keeps, for each of layers x d_model and of exits x vocabulary. Measured on a
CPU: benchmarks/memory.py."""

FORWARD = {True: 20.0, False: 10.0}
"""The same of an evaluation, for d_model; beside it the logits of every exit, and one exit's log-softmax."""

FORWARD_WINDOWS, FORWARD_TOKENS = 32, 8192
"""An evaluation takes so many windows at once, or, where the same targets are slid over, so many tokens."""


@dataclass(frozen=True)
class MachineRate:
    """``rate``: FLOP/s of large matmuls; ``width``: that of half speed; ``basis``: said to the user."""

    rate: float
    width: float
    basis: str
    gpu: bool = False


@cache
def machine_rate(gpu: bool) -> MachineRate:
    if gpu:
        return MachineRate(
            GPU_MFU * GPU_PEAK,
            GPU_HALF_SPEED_WIDTH,
            "assumed: one H100 at 40% of its dense bf16 peak for wide models",
            gpu=True,
        )
    rates = [rate / 1e9 for rate in matmul_rates()]
    best, load = max(rates), os.getloadavg()[0]
    return MachineRate(
        best * 1e9,
        HALF_SPEED_WIDTH,
        f"measured now: {best:.0f} GFLOP/s for large matmuls on one core, the best of {len(rates)} probes "
        f"from {min(rates):.0f}; load {load:.1f}",
    )


def matmul_rates(n: int = 512, seconds: float = 0.03, probes: int = 6) -> list[float]:
    """float32 FLOP/s of an n x n matmul on one core in each of some probes, 2 n^3 / CPU time, their best.

    A pause lies between them: a neighbour of a shared core slows a probe down, and goes.
    """
    a, threads = torch.ones(n, n), torch.get_num_threads()
    found: list[float] = []
    torch.set_num_threads(1)
    try:
        for _ in range(probes):
            best, end = 0.0, time.perf_counter() + seconds
            while time.perf_counter() < end or best == 0.0:
                begin = time.process_time()
                a @ a
                best = max(best, 2 * n**3 / max(1e-6, time.process_time() - begin))
            found.append(best)
            time.sleep(2 * seconds)
    finally:
        torch.set_num_threads(threads)
    return found


def cost(
    settings: RunSettings,
    shape: Shape,
    counts: Count,
    micro_batches: int,
    machine: MachineRate,
    validation: float = inf,
) -> tuple[float, float]:
    """Seconds and bytes of a run; an evaluation is a forward pass, a third of a training step.

    ``validation``: tokens of held-out text, of which none is evaluated twice at once.
    """
    steps = updates(settings)
    tokens = steps * settings.batch_tokens + evaluation_tokens(settings, validation) / 3
    calls = 0.0 if machine.gpu else LAYER_SECONDS * steps * micro_batches * layers_of(shape)
    return calls + seconds(counts, tokens, shape, machine), bytes_of(settings, shape, counts, micro_batches)


def bytes_of(
    settings: RunSettings, shape: Shape, counts: Count, micro_batches: int, memory: float = CPU_BYTES
) -> float:
    """Of one member and its process at their peak, on a device with so much memory."""
    return memory_bytes(
        counts.params_total,
        width_of(shape),
        layers_of(shape),
        getattr(shape, "n_exit", 1),
        settings.vocab,
        settings.batch_tokens // micro_batches,
        settings.context,
        stacked=family(settings.family).stacked,
        memory=memory,
    )


def layers_of(shape: Shape) -> int:
    """Executed ones."""
    return max(1, getattr(shape, "executed_layers", getattr(shape, "n_layer", 1)))


def width_of(shape: Shape) -> float:
    """d_model of usual blocks (d_attn = d_model, d_ff = 4 d_model, no gate) that keep as many activations."""
    if not isinstance(shape, BlockShape):
        return getattr(shape, "d_model", 64)
    d_ff = shape.d_ff * (2.1 if shape.activation == "swiglu" else 1.0)
    return 0.28 * shape.d_model + 0.32 * shape.d_attn + 0.1 * d_ff


def evaluation_tokens(settings: RunSettings, validation: float = inf) -> float:
    """Tokens read for validation losses; windows and targets are as many as the text has at most."""
    context, asked = settings.context, settings.evaluation
    traces, points = len(trace_steps(settings)), len(settings.tokens)
    windows = ((traces, asked.trace_windows), (1, asked.final_windows), (points - 1, asked.windows))
    read = sum(times * min(count, validation / context) for times, count in windows) * context
    targets = sum(
        times * min(count, validation)
        for times, count in ((traces, asked.trace_targets), (points, asked.targets))
    )
    return read + targets * (NEAR + min(context, GROUPS))


def seconds(counts: Count, tokens: float, shape: Shape, machine: MachineRate) -> float:
    """3 tokens [(matmul + head FLOPs) (w + d) / d + attention FLOPs max(1, h / d_head)] / rate, d = d_model.

    w and h are ``machine.width`` and, on a CPU, ``FULL_SPEED_HEAD``: attention of narrow heads is mostly its
    softmax, whatever their width.
    """
    d_model, d_head = getattr(shape, "d_model", 64), getattr(shape, "d_head", None)
    wide = (d_model + machine.width) / d_model
    narrow = max(1.0, FULL_SPEED_HEAD / d_head) if d_head and not machine.gpu else wide
    slowed = replace(
        counts,
        matmul_flops=wide * counts.matmul_flops,
        head_flops=wide * counts.head_flops,
        attention_flops=narrow * counts.attention_flops,
    )
    return slowed.flops_exact(tokens) / machine.rate


def memory_bytes(
    params_total: int,
    width: float,
    layers: int,
    exits: int,
    vocab: int,
    tokens: int,
    context: int,
    *,
    stacked: bool,
    memory: float = CPU_BYTES,
) -> float:
    """The process; what is held of each parameter; and the larger of an update and an evaluation.

    ``layers`` are executed ones, ``tokens`` those of a micro-batch. Of logits that are formed in pieces one
    piece is held, which ``memory`` decides.
    """
    piece = memory / (4.0 * LOGITS_SHARE) if stacked else inf
    at_once = max(FORWARD_WINDOWS * context, FORWARD_TOKENS)
    logits = min(at_once * exits * vocab, piece)
    evaluation = FORWARD[stacked] * at_once * width + logits * (exits + 1) / exits
    update = update_floats(width, layers, tokens, min(tokens * exits * vocab, piece), stacked=stacked)
    return PROCESS_BYTES[stacked] + PARAM_BYTES * params_total + 4.0 * max(update, evaluation)


def update_floats(width: float, layers: int, tokens: int, logits: float, *, stacked: bool) -> float:
    """Activations, and gradients of so many logits, at the peak of an update."""
    per_layer, per_logit = STEP[stacked]
    return per_layer * tokens * layers * width + per_logit * logits
