"""One core: the loop beside a plain GPT, torch's LSTM and a matmul; and how its cost grows."""

import itertools
import math
import time
from collections.abc import Iterator

import torch

from isoloss.bench.loops import Design, loop, task_of
from isoloss.bench.peers import lstm_alone, matmul, plain_gpt
from isoloss.bench.rows import Row, over_first, rates
from isoloss.bench.runs import COUNTS, more_runs
from isoloss.models import shape_of
from isoloss.studies.estimate import (
    HALF_SPEED_WIDTH,
    LAYER_SECONDS,
    MachineRate,
    layers_of,
    update_floats,
    width_of,
)
from isoloss.studies.estimate import seconds as estimated
from isoloss.training.device import Device
from isoloss.training.setup import set_up

CPU = Device(torch.device("cpu"), autocast=False)
VOCAB, SIZE = 1024, (4, 128)
GPTS = [(2, 24, 1), (3, 64, 2), (4, 128, 4), (6, 256, 8)]
SIZES = [SIZE, (32, 128)]
LSTMS = [(1, 40), (1, 160), (2, 128)]
MATMUL = 512


def time_cpu(seconds: float) -> Iterator[Row]:
    """CPU seconds; ``seconds`` is about what each turn of each side takes."""
    yield from against_peers(seconds)
    yield from longer(seconds)
    yield from growth(seconds / 2)
    yield from more_runs(COUNTS, seconds / 2)


def against_peers(seconds: float) -> Iterator[Row]:
    bound = matmul(MATMUL, torch.float32, CPU.device)
    for size, shape in itertools.product(SIZES, GPTS):
        design = transformer(*shape, size=size)
        peer = plain_gpt(shape, VOCAB, size, CPU, compiled=False)
        ours, theirs, peak = rates([loop(design, "cpu"), peer, bound], seconds, time.process_time)
        what = f"{design.label}, {math.prod(size):,} tokens"
        yield Row(what, ours, "tokens/s", "a plain GPT", theirs)
        yield Row(what, ours, "tokens/s", "the estimate", expected(design, peak))
        yield Row(what, ours * design.flops_per_token() / 1e9, "GFLOP/s", "a large matmul", peak / 1e9)
    for n_layer, d_model in LSTMS:
        design = Design("lstm", {"n_layer": n_layer, "d_model": d_model}, VOCAB, SIZE)
        alone = lstm_alone(n_layer, d_model, SIZE, CPU.device)
        ours, theirs, peak = rates([loop(design, "cpu"), alone, bound], seconds, time.process_time)
        yield Row(design.label, ours, "tokens/s", "torch's LSTM alone", theirs)
        yield Row(design.label, ours, "tokens/s", "the estimate", expected(design, peak))


def growth(seconds: float) -> Iterator[Row]:
    """Time and memory of each design over those of the first in its line, beside FLOPs and the estimate."""
    lines = {
        "N": [transformer(2, d, d // 16) for d in (32, 64, 128, 192)],
        "B": [transformer(2, 64, 2, size=(batch, 128)) for batch in (2, 4, 8, 16)],
        "T": [transformer(2, 64, 2, size=(1024 // context, context)) for context in (64, 128, 256, 512)],
        "T_m": [looped(recurrence) for recurrence in (1, 2, 4, 8)],
    }
    for symbol, designs in lines.items():
        tokens = [float(design.size[0] * design.size[1]) for design in designs]
        speeds = rates([loop(design, "cpu") for design in designs], seconds, time.process_time)
        times = over_first([count / speed for count, speed in zip(tokens, speeds, strict=True)])
        flops = [count * one.flops_per_token() for count, one in zip(tokens, designs, strict=True)]
        memory, expected = (over_first([*map(of, designs)]) for of in (held_bytes, estimated_bytes))
        for number, work in list(enumerate(over_first(flops)))[1:]:
            design = designs[number]
            what = f"{symbol}: {design.label}, {design.size[0]} x {design.size[1]}"
            yield Row(what, times[number], "x time", "its FLOPs", work)
            yield Row(what, memory[number], "x memory", "the estimate", expected[number])


def expected(design: Design, matmul_rate: float) -> float:
    """Tokens a second on which ``--dry-run`` counts, from that matmul."""
    machine, shape = MachineRate(matmul_rate, HALF_SPEED_WIDTH, ""), shape_of(design.family, design.shape)
    tokens = float(design.size[0] * design.size[1])
    return tokens / (estimated(design.count(), tokens, shape, machine) + LAYER_SECONDS * layers_of(shape))


def longer(seconds: float) -> Iterator[Row]:
    """Time of more and more updates: D grows, and nothing may grow with it."""
    some = loop(GROWING, "cpu")
    some()
    counts = [max(2, round(seconds * 100)) * factor for factor in (1, 2, 4)]
    times: list[float] = []
    for count in counts:
        begin = time.process_time()
        for _ in range(count):
            some()
        times.append(time.process_time() - begin)
    for count, taken in zip(counts[1:], over_first(times)[1:], strict=True):
        yield Row(f"D: {count} updates over {counts[0]}", taken, "x time", "their number", count / counts[0])


def transformer(n_layer: int, d_model: int, n_head: int, size: tuple[int, int] = SIZE) -> Design:
    return Design("transformer", {"n_layer": n_layer, "d_model": d_model, "n_head": n_head}, VOCAB, size)


GROWING = transformer(2, 64, 2)


def looped(recurrence: int) -> Design:
    shape = {"n_layer": 1, "d_model": 64, "n_head": 2, "recurrence": recurrence}
    return Design("looped", shape, VOCAB, SIZE)


def held_bytes(design: Design) -> float:
    """Bytes before an update's backward pass: weights, gradients, moments, and what autograd keeps."""
    setup = set_up(task_of(design, 1, "cpu"))
    state, saved = setup.first_state(), dict[int, int]()

    def note(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = setup.options.forward(state.model, *setup.batch(0))
    for p in state.model.parameters():
        saved.pop(p.untyped_storage().data_ptr(), None)
    del loss
    return 16.0 * design.count().params_total + sum(saved.values())


def estimated_bytes(design: Design) -> float:
    """Bytes that ``--dry-run`` counts for an update, without the process and a trunk kept beside a branch."""
    shape = shape_of(design.family, design.shape)
    logits = getattr(shape, "n_exit", 1) * design.vocab
    tokens = design.size[0] * design.size[1]
    stacked = design.family != "lstm"
    floats = update_floats(width_of(shape), layers_of(shape), tokens, tokens * logits, stacked=stacked)
    return 16.0 * design.count().params_total + 4.0 * floats
