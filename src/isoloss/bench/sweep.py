"""Many small models of one shape: together as a cohort, beside one after the other with a compiled step."""

import time
from collections.abc import Iterator

import torch

from isoloss.bench.cpu import SIZE, VOCAB, transformer
from isoloss.bench.loops import Design, loop
from isoloss.bench.rows import Row, rates

MEMBERS = 8
SMALL = [transformer(2, 24, 1), Design("lstm", {"n_layer": 1, "d_model": 40}, VOCAB, SIZE)]


def time_sweep(device: str, seconds: float) -> Iterator[Row]:
    """Tokens a second of all members. Recurrent kernels are not compiled; their peer is the plain loop."""
    clock = time.perf_counter if device.startswith("cuda") else time.process_time
    for design in SMALL:
        compiles = design.family != "lstm"
        peer, begin = loop(design, device, compiled=compiles), clock()
        tokens = peer()
        first = clock() - begin
        sides = [loop(design, device), loop(design, device, seeds=MEMBERS), peer]
        one, together, best = rates(sides, seconds, clock)
        peer_name = "one at a time" + ", compiled" * compiles
        if compiles:
            yield Row(f"{design.label}, one at a time, plain", one, "tokens/s", peer_name, best)
            yield Row(f"{design.label}, first compiled step", first, "s", "a later one", tokens / best)
        yield Row(f"{design.label}, {MEMBERS} together", together, "tokens/s", peer_name, best)
    torch.compiler.reset()
