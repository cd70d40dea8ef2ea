"""From logits to losses: per token, per exit, in nats."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from isoloss.models import Output

IGNORED = -1
"""A target that asks for nothing: its loss is 0."""


@dataclass(frozen=True)
class Losses:
    """Per-token losses, each (K, B, T). ``exits``: cross-entropy of every exit.

    For a gated model  expected = sum_t p_t CE_t,  entropy = H(p),  total = expected - beta entropy.
    With one exit all of these follow from it: total = expected = exits[0], entropy = 0.
    """

    exits: list[Tensor]
    gated: bool
    expected: Tensor
    entropy: Tensor
    total: Tensor

    def parts(self) -> dict[str, Tensor]:
        """By the names that records use; a model with one exit has only ``exit_1``."""
        parts = {f"exit_{number}": loss for number, loss in enumerate(self.exits, start=1)}
        if self.gated:
            parts |= {"expected": self.expected, "entropy": self.entropy, "total": self.total}
        return parts

    def part(self, name: str) -> Tensor:
        return self.total if name == "total" else self.parts()[name]


def losses(output: Output, y_KBT: Tensor) -> Losses:
    exits = [cross_entropy(logits_KBTV, y_KBT) for logits_KBTV in output.logits]
    if output.exit_log_p is None:
        return Losses(exits, False, exits[-1], torch.zeros_like(exits[-1]), exits[-1])
    log_p_XKBT = torch.stack(output.exit_log_p)
    p_XKBT = log_p_XKBT.exp()
    expected = (p_XKBT * torch.stack(exits)).sum(0)
    entropy = -(p_XKBT * log_p_XKBT).sum(0)
    return Losses(exits, True, expected, entropy, expected - output.entropy_weight * entropy)


def cross_entropy(logits_KBTV: Tensor, y_KBT: Tensor) -> Tensor:
    logits_NV = logits_KBTV.flatten(0, 2)
    if logits_NV.dtype in (torch.bfloat16, torch.float16):
        logits_NV = logits_NV.float()
    return F.cross_entropy(logits_NV, y_KBT.flatten(), reduction="none", ignore_index=IGNORED).view(
        y_KBT.shape
    )


def mean_over_all(loss_KBT: Tensor, y_KBT: Tensor) -> Tensor:
    """Mean over every target, (K,)."""
    return loss_KBT.mean(dim=(1, 2))


def mean_over_asked(loss_KBT: Tensor, y_KBT: Tensor) -> Tensor:
    """Mean over the targets that are not ``IGNORED``, (K,)."""
    asked_KBT = y_KBT != IGNORED
    return (loss_KBT * asked_KBT).sum((1, 2)) / asked_KBT.sum((1, 2))
