"""A GPU: first that it computes what it must, then how fast.

Rehearsed on a CPU with tiny designs; the numbers of goals are those of one H100.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from isoloss.bench.loops import Design, loop, task_of
from isoloss.bench.peers import lstm_alone, matmul, plain_gpt
from isoloss.bench.rows import Row, rates
from isoloss.errors import RunError
from isoloss.models import build_cohort, family, shape_of
from isoloss.training.blocks import Blocks
from isoloss.training.device import choose, find
from isoloss.training.loop import single_update
from isoloss.training.setup import set_up

UPDATES, RATE = 6, 5e-3
ALLOWED = {"float32": 2e-4, "bfloat16 autocast": 3e-2}
"""Nats by which losses of a few updates may differ through rounding."""

EXACT = [
    Design("transformer", {"n_layer": 2, "d_model": 64, "n_head": 2}, 1024, (8, 128)),
    Design("lstm", {"n_layer": 2, "d_model": 64}, 1024, (8, 128)),
    Design("looped", {"n_layer": 1, "d_model": 64, "n_head": 2, "recurrence": 3}, 1024, (8, 128)),
]
TINY = [replace(design, size=(2, 16)) for design in EXACT]


def gpt(n_layer: int, d_model: int, n_head: int, vocab: int, size: tuple[int, int]) -> Design:
    return Design("transformer", {"n_layer": n_layer, "d_model": d_model, "n_head": n_head}, vocab, size)


READS_EVERY = 10
"""Steps of the plain GPT, as its kind logs."""

SMALL = [gpt(2, 32, 1, 4096, (32, 512)), gpt(4, 128, 2, 4096, (32, 512)), gpt(6, 256, 4, 4096, (32, 512))]
"""Trained eight together; goals 30, 13 and 6 million tokens a second of all."""

LARGE = [gpt(12, 768, 12, 50304, (32, 1024)), gpt(16, 1024, 16, 50304, (32, 1024))]
"""One at a time and compiled; goals 0.53 million tokens a second, and half the peak."""

LSTMS = [Design("lstm", {"n_layer": n, "d_model": d}, 4096, (256, 512)) for n, d in ((1, 128), (2, 1024))]


def check_exactness(device: str, designs: Sequence[Design]) -> Iterator[Row]:
    """Largest differences of losses beside what rounding may do.

    In the end RunError if one is beyond, or if the weights did not move by more.
    """
    rows, unmoved = list[Row](), list[str]()
    for design in designs:
        allowed = ALLOWED[choose(device, design.family).dtype]
        together_UK, alone_UK = losses(design, device, members=3), losses(design, device)
        others = {
            "alone, in a cohort": together_UK[:, :1],
            "in blocks, one by one": losses(design, device, blocks=False),
            "whole, in two micro-batches": losses(design, device, micro_batches=2),
            "there, on the CPU": losses(design, "cpu"),
            "once, again": losses(design, device),
        }
        for what, other_UK in others.items():
            apart = float((alone_UK - other_UK).abs().max())
            rows.append(Row(f"{design.family}: {what}", apart, "nats", "allowed", allowed))
            yield rows[-1]
        moved = float((together_UK[0] - together_UK[-1]).abs().min())
        what = f"{design.family}: moved by {UPDATES} updates"
        unmoved += [what] * (not moved > allowed)
        yield Row(what, moved, "nats", "allowed apart", allowed)
    yield (number := Row("lstm: an output number", lstm_bytes(device), "bytes", "float32", 4.0))
    beyond = [row.what for row in rows if not row.value <= row.other]
    beyond += [number.what] * (number.value != number.other)
    if unmoved:
        mend = "give the check more updates or a higher rate: weights that stand still all agree"
        raise RunError(f"nothing was learned: {'; '.join(unmoved)}", where=device, mend=mend)
    if beyond:
        mend = "do not train on this device; please report it with the JSON"
        raise RunError(f"differs beyond rounding: {'; '.join(beyond)}", where=device, mend=mend)


def losses(
    design: Design, device: str, *, members: int = 1, micro_batches: int = 1, blocks: bool = True
) -> Tensor:
    """Of the first updates, at a rate that moves them, by member, (U, K)."""
    sizes = {"micro_batches": micro_batches, "updates": 4 * UPDATES, "rate": RATE}
    setup = set_up(task_of(design, members, device, **sizes))
    state, trunk, per_update = setup.first_state(), setup.segments[0], list[Tensor]()
    in_blocks = Blocks(setup, state) if blocks else None
    while len(per_update) < UPDATES:
        for means_KP, _ in in_blocks(trunk) if in_blocks else single_update(setup, state, trunk):
            state.advance(means_KP.numpy())
            per_update.append(means_KP[:, 0])
    return torch.stack(per_update[:UPDATES])


def lstm_bytes(device: str) -> float:
    """Autocast would send cuDNN's recurrent kernels to fp16: 2 bytes."""
    where = choose(device, "lstm")
    model = build_cohort(family("lstm"), shape_of("lstm", {"n_layer": 1, "d_model": 32}), 64, 8, [0])
    with where.precision(), torch.no_grad():
        x_KBT = torch.zeros(1, 2, 8, dtype=torch.long, device=where.device)
        return float(model.to(where.device)(x_KBT).logits[0].element_size())


def time_gpu(
    device: str, seconds: float, small: Sequence[Design], large: Sequence[Design], lstms: Sequence[Design]
) -> Iterator[Row]:
    """Wall time: no CPU clock counts a GPU's work. On a CPU nothing is compiled."""
    place, members, clock = find(device), 8, time.perf_counter
    where, compiles = choose(device, "transformer"), place.type == "cuda"
    dtype = torch.bfloat16 if where.autocast else torch.float32
    (peak,) = rates([matmul(8192 if compiles else 256, dtype, place, times=4)], seconds, clock)

    peer = "a plain GPT" + ", compiled" * compiles

    def peer_of(design: Design) -> Callable[[], float]:
        shape = (design.shape["n_layer"], design.shape["d_model"], design.shape["n_head"])
        return plain_gpt(shape, design.vocab, design.size, where, compiled=compiles, reads_every=READS_EVERY)

    for design in small:
        ours = (loop(design, device, seeds=count, compiled=compiles) for count in (members, 1))
        sides = [*ours, peer_of(design)]
        together, alone, plain = rates(sides, seconds, clock)
        yield Row(f"{design.label}, {members} together", together, "tokens/s", peer, plain)
        yield Row(f"{design.label}, alone", alone, "tokens/s", peer, plain)
    for design in large:
        sides = [loop(design, device, compiled=compiles), peer_of(design)]
        ours, plain = rates(sides, seconds, clock)
        yield Row(design.label, ours, "tokens/s", peer, plain)
        yield Row(
            design.label, ours * design.flops_per_token() / 1e12, "TFLOP/s", "a large matmul", peak / 1e12
        )
    for design in lstms:
        layers = lstm_alone(design.shape["n_layer"], design.shape["d_model"], design.size, place)
        ours, bare = rates([loop(design, device), layers], seconds, clock)
        yield Row(design.label, ours, "tokens/s", "torch's LSTM alone", bare)
