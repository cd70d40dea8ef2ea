"""Train a cohort of small models on a task and look at it now and then.

The models, the losses and AdamW are the package's own; what differs from ``training`` is where batches come
from (a task, drawn afresh) and what is measured (right answers on unseen strings). Every side gets the same
strings, batch size, clipping and warm-up.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import OneByOne
from isoloss.stats import Interval, Row, share
from isoloss.teach.shares import ENOUGH, UNSEEN
from isoloss.teach.tasks import NOT_ASKED, Batch, LearningTask
from isoloss.training.objective import mean_over_asked
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.settings import Recipe
from isoloss.training.step import StepOptions, train_step

RECIPE = Recipe(beta2=0.99, weight_decay=0.0, clip=1.0)
ASKED = StepOptions(mean=mean_over_asked)
WARMUP_UPDATES = 50
BATCH = 64
TEST_STREAM, TRAIN_STREAM, EXAMPLE_STREAM = 1, 0, 5
"""Where strings are drawn from: for scores, for training, and the one that a slide shows."""


@dataclass(frozen=True)
class Side:
    """One contestant. ``start`` sets a member's first weights after it was built, where that is the point."""

    name: str
    family: str
    shape: dict[str, Any]
    start: Callable[[nn.Module], None] | None = None


@dataclass(frozen=True)
class Replica:
    """One copy of a side: the seed of its weights and strings, and its learning rate."""

    seed: int
    rate: float


def build(side: Side, task: LearningTask, members: Sequence[Replica]) -> nn.Module:
    kind, shape = family(side.family), shape_of(side.family, side.shape)
    model = build_cohort(kind, shape, task.vocab, task.context, [member.seed for member in members])
    if side.start is not None:
        # Only a family that is not stacked has its members as modules of their own.
        singles = model.members if isinstance(model, OneByOne) else [model]
        for member, single in zip(members, singles, strict=True):
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.manual_seed(member.seed)
                side.start(single)
    return model


def params(model: nn.Module, members: int) -> int:
    """Parameters of one member, embedding included."""
    return sum(parameter.numel() for parameter in model.parameters()) // members


class Cohort:
    """Members of one side in training; ``update`` makes one step of each."""

    def __init__(self, side: Side, task: LearningTask, members: Sequence[Replica], *, batch: int = BATCH):
        self.side, self.task, self.members, self.batch = side, task, list(members), batch
        self.model = build(side, task, members)
        self.optimizer = MemberAdamW(self.model, len(members), RECIPE)
        self.done, self.loss_K, self.cpu_seconds = 0, np.full(len(members), np.nan), 0.0

    def update(self) -> None:
        started = time.process_time()
        x_KBT, y_KBT = self.draw(self.done)
        warm = min(1.0, (self.done + 1) / WARMUP_UPDATES)
        rates = [warm * member.rate for member in self.members]
        alive_K = torch.ones(len(rates), dtype=torch.bool)
        means_KP, _ = train_step(self.model, self.optimizer, x_KBT, y_KBT, rates, alive_K, ASKED)
        self.done, self.loss_K = self.done + 1, means_KP[:, 0].numpy()
        self.cpu_seconds += time.process_time() - started

    def draw(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """A batch a member: a pure function of the member's seed and the step."""
        drawn = {
            seed: self.task.batch(np.random.default_rng([TRAIN_STREAM, seed, step]), self.batch)
            for seed in {member.seed for member in self.members}
        }
        x, y = (np.stack([drawn[m.seed][side] for m in self.members]) for side in (0, 1))
        return torch.from_numpy(x), torch.from_numpy(y)

    def label(self, member: Replica) -> Row:
        """The columns of a row that say whose it is, and after how many updates."""
        return {"side": self.side.name, "seed": member.seed, "rate": member.rate, "update": self.done}

    def shares(self, task: LearningTask, *, strings: int = UNSEEN) -> list[Interval]:
        """Each member's share of unseen strings answered rightly; the strings are the same for every side."""
        x_BT, y_BT = task.batch(np.random.default_rng([TEST_STREAM, strings]), strings)
        right_KB = right_answers(self.model, x_BT, y_BT, len(self.members))
        return [share(int(right_B.sum()), strings) for right_B in right_KB]

    def learn(
        self, *, cap: int, every: int, enough: float = ENOUGH, test: LearningTask | None = None
    ) -> Iterator[list[Row]]:
        """Train until every member answers ``enough`` of the unseen strings, or for ``cap`` updates.

        Yields after each update, and with a row a member before the first, every ``every`` and after the
        last. ``test``: the task to score, if it differs from the one trained; ``loss`` is the last batch's.
        """
        while True:
            shares = self.shares(test or self.task)
            yield [
                {
                    **self.label(member),
                    **accuracy.row(),
                    "loss": loss if math.isfinite(loss) else None,
                    "cpu_seconds": self.cpu_seconds / len(self.members),
                }
                for member, accuracy, loss in zip(self.members, shares, self.loss_K.tolist(), strict=True)
            ]
            if self.done >= cap or all(accuracy.value >= enough for accuracy in shares):
                return
            for _ in range(min(every, cap - self.done)):
                self.update()
                yield []


def example(task: LearningTask) -> Batch:
    """The string that is shown of a task, a batch of one: the same wherever it is shown."""
    return task.batch(np.random.default_rng([EXAMPLE_STREAM]), 1)


def right_answers(model: nn.Module, x_BT: np.ndarray, y_BT: np.ndarray, members: int) -> np.ndarray:
    """Whether each member answers all that a string asks, (K, B)."""
    return ((answers(model, x_BT, members) == y_BT) | (y_BT == NOT_ASKED)).all(-1)


def answers(model: nn.Module, x_BT: np.ndarray, members: int) -> np.ndarray:
    """The likeliest token of each member at each place, (K, B, T)."""
    parts = []
    with torch.inference_mode():
        for some_BT in torch.from_numpy(x_BT).split(500):
            parts.append(model(some_BT.expand(members, -1, -1)).logits[-1].argmax(-1).numpy())
    return np.concatenate(parts, axis=1)


def cohorts(
    side: Side, task: LearningTask, members: Iterable[Replica], *, batch: int = BATCH
) -> Iterator[Cohort]:
    """One cohort where the family stacks its members; else one a member, so that each stops when done."""
    members = list(members)
    for group in [members] if family(side.family).stacked else [[member] for member in members]:
        yield Cohort(side, task, group, batch=batch)
