"""Loss by position on the same tokens at every position: a window slides over fixed stretches of text.

With separate windows each position reads other text, whose noise is as large as what context gives. Here
every target token t of a stretch is predicted from T = 1, 2, ..., context tokens before it:

    T up to ``near``     windows of ``near`` tokens, one at every token: each T by itself
    T beyond             windows of ``context`` tokens, one every ``stride`` tokens: T in groups of
                         ``stride``, in which each target occurs once

so the text's noise is common to all groups and leaves every difference between them, as it leaves the
difference between two models. Sums stay apart by block of text, for standard errors over blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import nn

from isoloss.models.cohort import restore_carried_state
from isoloss.training.evaluation import read_late
from isoloss.training.objective import last_exit

STRETCHES, BLOCKS = 8, 16
NEAR, GROUPS = 8, 64
BATCH_TOKENS = 8192

MOST_SEQUENCES = 65_535
"""Of all members at once: attention on a GPU has no grid for more."""


@dataclass(frozen=True)
class Sliding:
    """Where to slide. ``starts_S``: the first target of each stretch; ``length``: targets of a stretch."""

    context: int
    stride: int
    near: int
    starts_S: np.ndarray
    length: int

    @property
    def first_G(self) -> np.ndarray:
        """The smallest T of each group."""
        return np.r_[np.arange(1, self.near + 1), np.arange(self.near + 1, self.context + 1, self.stride)]

    @property
    def last_G(self) -> np.ndarray:
        """The largest T of each group."""
        return np.r_[self.first_G[1:] - 1, self.context]

    @property
    def block_targets(self) -> int:
        """How many targets, and so losses, every group has in every block."""
        return self.length * STRETCHES // BLOCKS

    def windows(self, members: int) -> Iterator[tuple[int, np.ndarray, int, int]]:
        """(stretch, starts, window length, T after which losses count), in batches of ``BATCH_TOKENS``."""
        for stretch, start in enumerate(self.starts_S):
            for length, every, after in ((self.near, 1, 0), (self.context, self.stride, self.near)):
                starts = np.arange(start - length, start + self.length - 1 - after, every)
                size = max(1, min(BATCH_TOKENS // length, MOST_SEQUENCES // members))
                for first in range(0, len(starts), size):
                    yield stretch, starts[first : first + size], length, after


def sliding(tokens: int, context: int, targets: int) -> Sliding | None:
    """Stretches with about ``targets`` tokens in all, evenly spread; None if the text is too short.

    They lie in the middle of equal parts of the text: the same targets for models of any context.
    """
    stride = max(s for s in range(1, max(1, context // GROUPS) + 1) if context % s == 0)
    near = min(context, stride * ceil(NEAR / stride))
    part, blocks = tokens // STRETCHES, BLOCKS // STRETCHES
    length = min(targets // STRETCHES, part - 2 * (context + 1)) // blocks * blocks
    if length < 1:
        return None
    starts_S = np.arange(STRETCHES) * part + (part - length) // 2
    return Sliding(context, stride, near, starts_S, length)


def evaluate_sliding(
    model: nn.Module, ids: np.ndarray, plan: Sliding, *, members: int, device: torch.device
) -> np.ndarray:
    """Sums of the last exit's loss by member, group and block, float64 (K, G, N); each window starts anew.

    ``ids``: the validation tokens. Every sum is over ``plan.block_targets`` losses, in nats.
    """
    groups, blocks = len(plan.first_G), BLOCKS // STRETCHES
    group_T = np.searchsorted(plan.last_G, np.arange(1, plan.context + 1))
    sum_KGN = np.zeros((members, groups * BLOCKS))

    def sent() -> Iterator[tuple[tuple[int, np.ndarray, int, int], torch.Tensor]]:
        for some in plan.windows(members):
            _, starts_B, length, _ = some
            ids_BT = np.asarray(ids[starts_B[:, None] + np.arange(length + 1)], dtype=np.int64)
            x_KBT, y_KBT = (
                torch.from_numpy(side).to(device).expand(members, -1, -1)
                for side in (ids_BT[:, :-1], ids_BT[:, 1:])
            )
            restore_carried_state(model, {})
            yield some, last_exit(model(x_KBT), y_KBT)

    was_training = model.training
    model.eval()
    with torch.no_grad():
        for (stretch, starts_B, length, after), loss in read_late(sent(), device):
            loss_KBT = loss.cpu().double().numpy()
            T = np.arange(1, length + 1)
            offset_BT = starts_B[:, None] + T - plan.starts_S[stretch]
            inside_BT = (offset_BT >= 0) & (offset_BT < plan.length) & (after < T)
            block_BT = stretch * blocks + offset_BT * blocks // plan.length
            cell = (group_T[:length] * BLOCKS + block_BT)[inside_BT]
            for k in range(members):
                sum_KGN[k] += np.bincount(cell, loss_KBT[k][inside_BT], minlength=groups * BLOCKS)
    model.train(was_training)
    return sum_KGN.reshape(members, groups, BLOCKS)
