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
from isoloss.teach.shares import Share
from isoloss.teach.tasks import NOT_ASKED, Task
from isoloss.training.objective import losses, mean_over_asked
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.settings import Recipe
from isoloss.training.step import StepOptions, train_step

RECIPE = Recipe(beta2=0.99, weight_decay=0.0, clip=1.0)
ASKED = StepOptions(mean=mean_over_asked)
WARMUP_UPDATES = 50
BATCH = 64
UNSEEN = 2_000
TEST_STREAM, TRAIN_STREAM = 1, 0


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


@dataclass(frozen=True)
class Check:
    """A member after ``update`` updates: right answers on unseen strings, training loss of the last batch."""

    side: str
    seed: int
    rate: float
    update: int
    share: Share
    loss: float
    cpu_seconds: float

    def row(self) -> dict[str, Any]:
        return {
            "side": self.side,
            "seed": self.seed,
            "rate": self.rate,
            "update": self.update,
            **self.share.row(),
            "loss": self.loss if math.isfinite(self.loss) else None,
            "cpu_seconds": self.cpu_seconds,
        }


def build(side: Side, task: Task, members: Sequence[Replica]) -> nn.Module:
    kind, shape = family(side.family), shape_of(side.family, side.shape)
    model = build_cohort(kind, shape, task.vocab, task.context, [member.seed for member in members])
    if side.start is not None:
        for member, single in zip(members, singles(model), strict=True):
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.manual_seed(member.seed)
                side.start(single)
    return model


def singles(model: nn.Module) -> list[nn.Module]:
    """The members of a cohort as modules of their own: only families that are not stacked have them."""
    return list(model.members) if isinstance(model, OneByOne) else [model]


def params(model: nn.Module, members: int) -> int:
    """Parameters of one member, embedding included."""
    return sum(parameter.numel() for parameter in model.parameters()) // members


class Cohort:
    """Members of one side in training; ``update`` makes one step of each."""

    def __init__(self, side: Side, task: Task, members: Sequence[Replica], *, batch: int = BATCH):
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

    def check(self, task: Task | None = None, *, strings: int = UNSEEN) -> list[Check]:
        """Right answers of each member on unseen strings, the same for every side and member."""
        right_KB = self.right(task or self.task, strings=strings)
        return [
            Check(
                side=self.side.name,
                seed=member.seed,
                rate=member.rate,
                update=self.done,
                share=Share(int(right_B.sum()), len(right_B)),
                loss=float(loss),
                cpu_seconds=self.cpu_seconds / len(self.members),
            )
            for member, right_B, loss in zip(self.members, right_KB, self.loss_K, strict=True)
        ]

    def right(self, task: Task, *, strings: int = UNSEEN) -> np.ndarray:
        """(K, strings) of bool: was everything asked in the string answered rightly?"""
        x_BT, y_BT = task.batch(np.random.default_rng([TEST_STREAM, strings]), strings)
        return answered(self.model, x_BT, y_BT, len(self.members))


def asked_loss(model: nn.Module, x_KBT: torch.Tensor, y_KBT: torch.Tensor) -> torch.Tensor:
    """Mean loss of each member over the positions where something is asked, (K,)."""
    return mean_over_asked(losses(model(x_KBT), y_KBT).total, y_KBT)


def answered(model: nn.Module, x_BT: np.ndarray, y_BT: np.ndarray, members: int) -> np.ndarray:
    """Whether each member answers all that a string asks, (K, B)."""
    found = []
    with torch.inference_mode():
        for first in range(0, len(x_BT), 500):
            some = slice(first, first + 500)
            x_KBT = torch.from_numpy(x_BT[some]).expand(members, -1, -1)
            y_BT_part = torch.from_numpy(y_BT[some])
            said_KBT = model(x_KBT).logits[-1].argmax(-1)
            right_KBT = (said_KBT == y_BT_part) | (y_BT_part == NOT_ASKED)
            found.append(right_KBT.all(-1).numpy())
    return np.concatenate(found, axis=1)


def cohorts(side: Side, task: Task, members: Iterable[Replica], *, batch: int = BATCH) -> Iterator[Cohort]:
    """One cohort where the family stacks its members; else one a member, so that each stops when done."""
    members = list(members)
    for group in [members] if family(side.family).stacked else [[member] for member in members]:
        yield Cohort(side, task, group, batch=batch)


def learn(
    side: Side,
    task: Task,
    members: Iterable[Replica],
    *,
    cap: int,
    every: int,
    enough: float = 0.99,
    test: Task | None = None,
    batch: int = BATCH,
    seen: Callable[[Check], None] = lambda check: None,
    stepped: Callable[[Cohort], None] = lambda cohort: None,
    ended: Callable[[Cohort], None] = lambda cohort: None,
) -> list[Check]:
    """Train until every member answers ``enough`` of the unseen strings, or for ``cap`` updates.

    ``test``: the task to score, if it differs from the one trained. ``seen`` hears of each check,
    ``stepped`` of each update, ``ended`` of each cohort that has finished.
    """
    found: list[Check] = []
    for cohort in cohorts(side, task, members, batch=batch):
        while True:
            checks = cohort.check(test)
            for check in checks:
                seen(check)
            found.extend(checks)
            if cohort.done >= cap or all(check.share.value >= enough for check in checks):
                break
            for _ in range(min(every, cap - cohort.done)):
                cohort.update()
                stepped(cohort)
        ended(cohort)
    return found
