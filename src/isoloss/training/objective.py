"""From logits to losses: per token, per exit, in nats."""

from dataclasses import dataclass
from functools import partial
from math import ceil

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isoloss.models import Output
from isoloss.models.output import Unformed

LOGITS_SHARE = 8

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
    exits += [cross_entropy_in_pieces(unformed, y_KBT) for unformed in output.unformed or []]
    if output.exit_log_p is None:
        return Losses(exits, False, exits[-1], torch.zeros_like(exits[-1]), exits[-1])
    log_p_XKBT = torch.stack(output.exit_log_p)
    p_XKBT = log_p_XKBT.exp()
    expected = (p_XKBT * torch.stack(exits)).sum(0)
    entropy = -(p_XKBT * log_p_XKBT).sum(0)
    return Losses(exits, True, expected, entropy, expected - output.entropy_weight * entropy)


def last_exit(output: Output, y_KBT: Tensor) -> Tensor:
    """Cross-entropy at the model's full depth, (K, B, T)."""
    if output.unformed:
        return cross_entropy_in_pieces(output.unformed[-1], y_KBT)
    return cross_entropy(output.logits[-1], y_KBT)


def cross_entropy(logits_KBTV: Tensor, y_KBT: Tensor) -> Tensor:
    logits_NV = logits_KBTV.flatten(0, 2)
    if logits_NV.dtype in (torch.bfloat16, torch.float16):
        logits_NV = logits_NV.float()
    return F.cross_entropy(logits_NV, y_KBT.flatten(), reduction="none", ignore_index=IGNORED).view(
        y_KBT.shape
    )


def cross_entropy_in_pieces(unformed: Unformed, y_KBT: Tensor) -> Tensor:
    """The same, never holding all logits: each piece of positions forms its own, and again for the gradient.

    The table's gradient is then a sum over pieces, in another order. Heads draw no random numbers, and a
    graph cannot hold the look at the generators.
    """

    def of_piece(h_KBtD: Tensor, y_KBt: Tensor) -> Tensor:
        return cross_entropy(unformed.head(h_KBtD), y_KBt)

    pieces = zip(unformed.h_KBTD.chunk(unformed.pieces, 2), y_KBT.chunk(unformed.pieces, 2), strict=True)
    once = partial(checkpoint, of_piece, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([once(*piece) for piece in pieces], dim=2)


def pieces_of_logits(logits_bytes: float, memory_bytes: float) -> int:
    """In how many pieces to form them: whole up to an eighth of the memory, else in pieces as large."""
    return max(1, ceil(LOGITS_SHARE * logits_bytes / memory_bytes))


def mean_over_all(loss_KBT: Tensor, y_KBT: Tensor) -> Tensor:
    """Mean over every target, (K,)."""
    return loss_KBT.mean(dim=(1, 2))


def mean_over_asked(loss_KBT: Tensor, y_KBT: Tensor) -> Tensor:
    """Mean over the targets that are not ``IGNORED``, (K,)."""
    asked_KBT = y_KBT != IGNORED
    return (loss_KBT * asked_KBT).sum((1, 2)) / asked_KBT.sum((1, 2))
