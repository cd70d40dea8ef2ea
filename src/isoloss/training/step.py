"""One training step of a cohort: forward, losses, backward, clip, AdamW.

Nothing in it waits for the device: no number of it is read, and no shape depends on one.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isoloss.training.objective import Losses, losses, mean_over_all
from isoloss.training.optimizer import MemberAdamW

Forward = Callable[[nn.Module, Tensor, Tensor], Losses]


def forward(model: nn.Module, x_KBT: Tensor, y_KBT: Tensor) -> Losses:
    return losses(model(x_KBT), y_KBT)


def alone(means_KP: Tensor) -> Tensor:
    return means_KP


@dataclass(frozen=True)
class StepOptions:
    """``parts``: losses to report, the objective ("total") first. ``precision``: autocast or nothing.

    ``forward``: from model, inputs and targets to losses; compiled where that pays.
    ``mean``: from per-token losses and targets, each (K, B, T), to the mean of every member, (K,).
    ``micro_batches``: pieces of the batch that go through the model one after the other; the mean must then
    be over all targets. ``over_ranks``: from this rank's means to those of all ranks.
    """

    parts: Sequence[str] = ("total",)
    micro_batches: int = 1
    precision: Callable[[], AbstractContextManager[object]] = nullcontext
    mean: Callable[[Tensor, Tensor], Tensor] = mean_over_all
    forward: Forward = forward
    over_ranks: Callable[[Tensor], Tensor] = alone


def train_step(
    model: nn.Module,
    optimizer: MemberAdamW,
    x_KBT: Tensor,
    y_KBT: Tensor,
    rates: Sequence[float] | Tensor,
    alive_K: Tensor,
    options: StepOptions = StepOptions(),
) -> tuple[Tensor, Tensor]:
    """Update every member that is alive and whose loss and gradient are finite, at its own learning rate.

    Returns mean losses by member and part, (K, P), and gradient norms before clipping, (K,); both of the
    weights before the update, on the device; the losses in float64 where it has that.
    """
    model.zero_grad()
    exact = torch.float32 if x_KBT.device.type == "mps" else torch.float64
    means_KP = torch.zeros(len(x_KBT), len(options.parts), dtype=exact, device=x_KBT.device)
    micro = options.micro_batches
    for x_KbT, y_KbT in zip(x_KBT.chunk(micro, dim=1), y_KBT.chunk(micro, dim=1), strict=True):
        with options.precision():
            loss = options.forward(model, x_KbT, y_KbT)
        share = x_KbT.shape[1] / x_KBT.shape[1]
        # A sum over members: each one's gradient is then that of its own mean loss.
        (options.mean(loss.total, y_KbT).sum() * share).backward()
        parts_KP = torch.stack([options.mean(loss.part(p).detach(), y_KbT) for p in options.parts], dim=1)
        means_KP += share * parts_KP.to(exact)
    means_KP = options.over_ranks(means_KP)
    norm_K = optimizer.gradient_norms()
    optimizer.step(rates, norm_K, alive_K & means_KP[:, 0].isfinite() & norm_K.isfinite())
    return means_KP, norm_K
