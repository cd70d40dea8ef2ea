"""Validation loss by position: float64 sums, sums of squares and counts, which merge by addition."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from isoloss.models.cohort import carried_state, restore_carried_state
from isoloss.training.objective import losses

T = TypeVar("T")

EVALUATION_WINDOWS = 32
"""Evaluated at once."""


@dataclass(frozen=True)
class PositionSums:
    """Sums over evaluation windows of one member, by part (exit_1, ..., expected, entropy, total).

    ``sum_PT``, ``sumsq_PT``: per position, nats and nats squared; ``windows``: how many windows went in,
    which is the count at every position. ``window_sum_P``, ``window_sumsq_P``: of each window's mean, for a
    standard error that respects that tokens of one window are correlated.
    """

    parts: tuple[str, ...]
    sum_PT: np.ndarray
    sumsq_PT: np.ndarray
    window_sum_P: np.ndarray
    window_sumsq_P: np.ndarray
    windows: int

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.sum_PT, self.sumsq_PT, self.window_sum_P, self.window_sumsq_P

    def __add__(self, other: "PositionSums") -> "PositionSums":
        totals = (a + b for a, b in zip(self.arrays, other.arrays, strict=True))
        return PositionSums(self.parts, *totals, windows=self.windows + other.windows)

    def sum_T(self, part: str) -> np.ndarray:
        return self.sum_PT[self.parts.index(part)]

    def mean(self, part: str) -> float:
        """Nats per token: one division, at the end."""
        return float(self.sum_T(part).sum() / (self.windows * self.sum_PT.shape[1]))

    def standard_error(self, part: str) -> float:
        """Of the mean, over windows; infinite sampling error is not 0, so one window raises ValueError."""
        n = self.windows
        if n < 2:
            raise ValueError("one window has no standard error")
        index = self.parts.index(part)
        mean = float(self.window_sum_P[index]) / n
        variance = max(0.0, float(self.window_sumsq_P[index]) / n - mean * mean) * n / (n - 1)
        return sqrt(variance / n)


def evaluate(
    model: nn.Module,
    x_MT: np.ndarray,
    y_MT: np.ndarray,
    before_MT: np.ndarray | None = None,
    *,
    members: int,
    device: torch.device,
    batch: int = EVALUATION_WINDOWS,
) -> list[PositionSums]:
    """Sums of each member over the windows; the model's mode and recurrent state are left as found.

    ``before_MT``: for models that carry their state, the text before each window, which they read first. One
    window of history, so that no window's loss depends on how the others are batched.

    Raises ValueError if there is no window.
    """
    if len(x_MT) == 0:
        raise ValueError("evaluation needs at least one window")
    was_training, state = model.training, carried_state(model)
    model.eval()
    text = [torch.from_numpy(ids).to(device) for ids in (x_MT, y_MT, before_MT) if ids is not None]

    def sent() -> Iterator[dict[str, torch.Tensor]]:
        for first in range(0, len(x_MT), batch):
            # Every window starts from the zero state, so that no partition of the windows matters.
            restore_carried_state(model, {})
            x_KBT, y_KBT, *before = (ids[first : first + batch].expand(members, -1, -1) for ids in text)
            for before_KBT in before:
                model(before_KBT)
            yield losses(model(x_KBT), y_KBT).parts()

    total: list[PositionSums] = []
    with torch.no_grad():  # not inference_mode: FSDP2 would keep what it gathers there for training
        for part in read_late(sent(), device):
            sums = sums_of_members(part, members)
            total = [a + b for a, b in zip(total, sums, strict=True)] if total else sums
    restore_carried_state(model, state)
    model.train(was_training)
    return total


def read_late(sent: Iterator[T], device: torch.device) -> Iterator[T]:
    """On a GPU all are sent before the first is read; elsewhere in turn, so that none lies in memory."""
    return iter(list(sent)) if device.type == "cuda" else sent


def sums_of_members(losses_by_part: dict[str, torch.Tensor], members: int) -> list[PositionSums]:
    arrays = {part: loss_KBT.cpu().double().numpy() for part, loss_KBT in losses_by_part.items()}
    return [sums_of({part: loss_KBT[k] for part, loss_KBT in arrays.items()}) for k in range(members)]


def sums_of(loss_BT_by_part: dict[str, np.ndarray]) -> PositionSums:
    """Sums of one member's per-token losses (B, T) by part."""
    loss_PBT = np.stack(list(loss_BT_by_part.values()))
    mean_PB = loss_PBT.mean(axis=2)
    return PositionSums(
        parts=tuple(loss_BT_by_part),
        sum_PT=loss_PBT.sum(axis=1),
        sumsq_PT=np.square(loss_PBT).sum(axis=1),
        window_sum_P=mean_PB.sum(axis=1),
        window_sumsq_P=np.square(mean_PB).sum(axis=1),
        windows=loss_PBT.shape[1],
    )
