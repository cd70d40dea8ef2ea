"""What stays fixed while a cohort is trained: its text, device and schedule, and the batch of every step."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isoloss.corpus.batches import lane_batch, train_batch
from isoloss.corpus.library import TokenizedCorpus, open_tokenized
from isoloss.errors import InputError
from isoloss.models import Shape, family, shape_of
from isoloss.records.schema import Environment
from isoloss.training import state as states
from isoloss.training.device import Device, choose
from isoloss.training.device import environment as environment_of
from isoloss.training.schedule import Segment, segments, trace_steps
from isoloss.training.settings import RunSettings
from isoloss.training.state import State
from isoloss.training.step import StepOptions
from isoloss.training.task import Task


@dataclass(frozen=True)
class Setup:
    """``carries``: the model keeps its recurrent state from step to step, so each lane reads on in the text.

    ``parts``: what the training curve holds of each step. ``trace``: trunk steps at which to measure.
    """

    task: Task
    corpus: TokenizedCorpus
    device: Device
    environment: Environment
    shape: Shape
    segments: list[Segment]
    trace: set[int]
    carries: bool
    parts: list[str]

    @property
    def settings(self) -> RunSettings:
        """Of the first member; the others differ in seed and learning rate only."""
        return self.task.lead.settings

    @property
    def options(self) -> StepOptions:
        return StepOptions(
            parts=self.parts,
            micro_batches=self.task.execution.micro_batches,
            precision=self.device.precision,
        )

    def fresh_state(self) -> State:
        everyone = [member.settings for member in self.task.members]
        kind = family(self.settings.family)
        return states.fresh(everyone, kind, self.shape, self.device.device, self.parts)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of every member, each (K, B, T): a pure function of seed and step."""
        draw = lane_batch if self.carries else train_batch
        pairs = [
            draw(
                self.corpus.train,
                seed=member.settings.seed,
                step=step,
                batch_size=self.settings.batch_size,
                context=self.settings.context,
            )
            for member in self.task.members
        ]
        x_KBT, y_KBT = (np.stack(side) for side in zip(*pairs, strict=True))
        return torch.from_numpy(x_KBT).to(self.device.device), torch.from_numpy(y_KBT).to(self.device.device)


def set_up(task: Task) -> Setup:
    """Raises InputError for a device that is not there, or micro-batches of a state that carries on."""
    settings = task.lead.settings
    shape = shape_of(settings.family, settings.shape)
    carries = bool(getattr(shape, "carry", False))
    corpus = open_tokenized(task.tokens, settings.corpus_hash)
    if carries and task.execution.micro_batches > 1:
        mend = "set micro_batches = 1, or carry = false"
        raise InputError(
            "a carried state cannot be kept over micro-batches", where=task.lead.label, mend=mend
        )
    device = choose(task.execution.device, settings.family, shape)
    return Setup(
        task=task,
        corpus=corpus,
        device=device,
        environment=environment_of(device, len(task.members)),
        shape=shape,
        segments=segments(settings),
        trace=trace_steps(settings),
        carries=carries,
        parts=part_names(getattr(shape, "n_exit", 1), getattr(shape, "gated", False)),
    )


def part_names(exits: int, gated: bool) -> list[str]:
    """What the training curve holds at each step; the objective first."""
    if not gated:
        return ["total"]
    return ["total", "expected", "entropy", *[f"exit_{number}" for number in range(1, exits + 1)]]
