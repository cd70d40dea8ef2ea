"""Updates on a GPU: blocks of them are sent before any is read, each replayed as one CUDA graph.

Small models wait for launches, not for arithmetic. So the text lies on the device and windows are cut there,
losses are noted there and read once a block, and a member that diverges is left alone by the step itself.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from isoloss.corpus.batches import lane_windows, train_windows
from isoloss.models import family
from isoloss.training.schedule import Segment, rate
from isoloss.training.setup import Setup
from isoloss.training.state import State
from isoloss.training.step import train_step

BLOCK_SECONDS = 0.25
"""Of a block: how long a Ctrl-C or a look at the progress may have to wait."""

MOST_UPDATES = 256
"""Of a block, however short they are."""

TEXT_BYTES = 8 * 2**30
"""Text up to this size lies on the device; of a longer one each block's windows are sent."""

GRAPH_PARAMS = 30_000_000
"""Larger models keep a GPU busy without a graph, whose memory an evaluation cannot use."""

WARMUPS = 3
"""Updates before the capture: libraries choose kernels and allocate, which a graph cannot hold."""


class Blocks:
    """Call it with the segment: losses (K, P) and gradient norms (K,) of the next updates, on the CPU."""

    def __init__(self, setup: Setup, state: State):
        settings, device = setup.settings, setup.device.device
        members = len(setup.task.members)
        self.setup, self.state, self.device = setup, state, device
        self.text = text_on(device, setup.corpus.train.ids)
        # What a graph reads and writes stays where it is: these are filled anew for each replay.
        self.ids_KBt = torch.zeros(
            members, settings.batch_size, settings.context + 1, dtype=torch.int64, device=device
        )
        self.rates_K = torch.zeros(members, device=device)
        self.alive_K = torch.ones(members, dtype=torch.bool, device=device)
        self.seen_KX = torch.zeros(members, len(setup.parts) + 1, dtype=torch.float64, device=device)
        self.update = Captured(self.one) if captures(setup, state) else self.one
        self.length = 1

    def one(self) -> None:
        x_KBT, y_KBT = self.ids_KBt[..., :-1], self.ids_KBt[..., 1:]
        means_KP, norm_K = train_step(
            self.state.model,
            self.state.optimizer,
            x_KBT,
            y_KBT,
            self.rates_K,
            self.alive_K,
            self.setup.options,
        )
        self.alive_K &= means_KP[:, 0].isfinite() & norm_K.isfinite()
        self.seen_KX.copy_(torch.cat([means_KP, norm_K[:, None]], dim=1))

    def __call__(self, segment: Segment) -> Iterator[tuple[Tensor, Tensor]]:
        begin, steps = time.monotonic(), self.steps(segment)
        settings = [member.settings for member in self.setup.task.members]
        rates_nK = self.sent([[rate(one, segment, step) for one in settings] for step in steps], np.float32)
        windows_nKB = self.sent([self.windows(step) for step in steps], np.int64)
        seen_nKX = torch.empty(len(steps), *self.seen_KX.shape, dtype=torch.float64, device=self.device)
        self.alive_K.copy_(self.state.alive_K, non_blocking=True)
        for rates_K, windows_KB, seen_KX in zip(rates_nK, windows_nKB, seen_nKX, strict=True):
            self.rates_K.copy_(rates_K)
            self.ids_KBt.copy_(self.cut(windows_KB))
            self.update()
            seen_KX.copy_(self.seen_KX)
        read_nKX = seen_nKX.cpu()  # the one place where the device is waited for
        seconds = (time.monotonic() - begin) / len(steps)
        self.length = max(1, min(MOST_UPDATES, int(BLOCK_SECONDS / max(seconds, 1e-9))))
        for read_KX in read_nKX:
            yield read_KX[:, :-1], read_KX[:, -1]

    def steps(self, segment: Segment) -> range:
        """The next ones: up to where something is measured, saved or at its end."""
        first = self.state.step
        ends = [first + self.length, segment.stop]
        if not segment.cooled:
            ends += [step for step in self.setup.trace if step > first]
        if (every := self.setup.task.execution.checkpoint_steps) is not None:
            ends.append(first + every - self.state.done % every)
        return range(first, min(ends))

    def windows(self, step: int) -> np.ndarray:
        """Which windows of the text each member reads, (K, B)."""
        draw = lane_windows if self.setup.carries else train_windows
        settings = self.setup.settings
        sizes = {"batch_size": settings.batch_size, "context": settings.context}
        seeds = [member.settings.seed for member in self.setup.task.members]
        return np.stack([draw(self.setup.corpus.train, seed=seed, step=step, **sizes) for seed in seeds])

    def cut(self, windows_KB: Tensor) -> Tensor:
        """Token ids of these windows, a context and one target more each, (K, B, T + 1)."""
        context = self.setup.settings.context
        places = torch.arange(context + 1, device=windows_KB.device)
        at_KBt = windows_KB[..., None] * context + places
        if self.text is not None:
            return unsigned(self.text[at_KBt])
        ids_KBt = self.setup.corpus.train.ids[at_KBt.numpy()].astype(np.int64)
        return on_the_way(torch.from_numpy(ids_KBt), self.device)

    def sent(self, values: object, dtype: type) -> Tensor:
        """On the device, without waiting; windows of a text that lies elsewhere stay here."""
        tensor = torch.from_numpy(np.asarray(values, dtype=dtype))
        return tensor if self.text is None and dtype == np.int64 else on_the_way(tensor, self.device)


def on_the_way(tensor: Tensor, device: torch.device) -> Tensor:
    pinned = tensor.pin_memory() if device.type == "cuda" else tensor
    return pinned.to(device, non_blocking=True)


def text_on(device: torch.device, ids: np.ndarray) -> Tensor | None:
    """The tokens as the signed integers that indexing knows; None where they are too many."""
    if ids.nbytes > TEXT_BYTES:
        return None
    signed = np.array(ids).view({2: np.int16, 4: np.int32}[ids.itemsize])
    return torch.from_numpy(signed).to(device)


def unsigned(ids: Tensor) -> Tensor:
    return ids.long() & (2 ** (8 * ids.element_size()) - 1)


def captures(setup: Setup, state: State) -> bool:
    """Is the step the same work on the same memory each time? A user's family may do what it likes."""
    shape = setup.settings.shape
    plain = family(setup.settings.family).shipped and not setup.carries and not shape.get("dropout")
    small = sum(p.numel() for p in state.model.parameters()) <= GRAPH_PARAMS
    return setup.device.device.type == "cuda" and plain and small


class Captured:
    """A function of fixed tensors: called plainly at first, then captured, then replayed by one launch."""

    def __init__(self, function: Callable[[], None]):
        self.function, self.calls = function, 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= WARMUPS:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self.function()
            torch.cuda.current_stream().wait_stream(aside)
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # notes the work and does none of it
                self.function()
        self.graph.replay()
