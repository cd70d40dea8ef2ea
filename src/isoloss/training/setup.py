"""What stays fixed while a cohort is trained: its text, device and schedule, and the batch of every step."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
import torch
from torch import Tensor

from isoloss.corpus.batches import lane_batch, train_batch
from isoloss.corpus.library import TokenizedCorpus, open_tokenized
from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import set_generators, set_pieces
from isoloss.records.schema import Environment
from isoloss.training import compiling, distributed
from isoloss.training.device import Device, choose, environment_of, memory_of, prepare_gpu
from isoloss.training.distributed import Averaged, Ranks
from isoloss.training.evaluation import EVALUATION_WINDOWS
from isoloss.training.objective import pieces_of_logits
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.schedule import Segment, segments, trace_steps
from isoloss.training.settings import RunSettings
from isoloss.training.sliding import BATCH_TOKENS, Sliding, sliding
from isoloss.training.state import State
from isoloss.training.step import Forward, StepOptions, forward
from isoloss.training.task import Task


@dataclass(frozen=True)
class Setup:
    """``carries``: the model keeps its recurrent state from step to step, so each lane reads on in the text.

    ``parts``: what the training curve holds of each step. ``trace``: trunk steps at which to measure.
    """

    task: Task
    ranks: Ranks
    corpus: TokenizedCorpus
    device: Device
    environment: Environment
    segments: list[Segment]
    trace: set[int]
    carries: bool
    parts: list[str]

    @property
    def settings(self) -> RunSettings:
        """Of the first member; the others differ in seed and learning rate only."""
        return self.task.lead.settings

    @cached_property
    def options(self) -> StepOptions:
        return StepOptions(
            parts=self.parts,
            # As many sequences at once on several ranks as on one.
            micro_batches=ceil(self.task.execution.micro_batches / self.ranks.count),
            precision=self.device.precision,
            forward=self.forward(),
            over_ranks=self.ranks.mean,
        )

    def forward(self) -> Forward:
        if self.ranks.count > 1 and not self.ranks.shard:
            return Averaged(self.settings.batch_size // self.ranks.count)
        return compiling.compiled(forward) if self.environment.compiled else forward

    def pieces(self, exits: int) -> int:
        """In how many pieces logits are formed, so that those of an update or an evaluation fit."""
        settings, members = self.settings, len(self.task.members)
        micro_batch = ceil(settings.batch_size / self.task.execution.micro_batches)
        tokens = max(micro_batch, EVALUATION_WINDOWS) * settings.context
        if self.device.device.type != "cpu":  # where a short context's numbers would change by it
            tokens = max(tokens, BATCH_TOKENS)
        logits_bytes = 4.0 * members * tokens * exits * settings.vocab
        return min(settings.context, pieces_of_logits(logits_bytes, memory_of(self.device.device)))

    def first_state(self) -> State:
        """Where training begins: a pure function of the members' settings."""
        settings, device = self.settings, self.device.device
        seeds = [member.settings.seed for member in self.task.members]
        shape = shape_of(settings.family, settings.shape)
        model = build_cohort(family(settings.family), shape, settings.vocab, settings.context, seeds)
        set_pieces(model, self.pieces(getattr(shape, "n_exit", 1)))
        model = model.to(device).train()
        if (every := self.task.execution.activation_checkpointing) != "none":
            distributed.checkpoint_activations(model, every, draws=not family(settings.family).shipped)
        if self.ranks.shard:
            distributed.shard(model, self.ranks, device)
        # A stream of its own for the masks: the one that drew the weights is spent.
        generators = [torch.Generator(device).manual_seed(seed + 0x5EED) for seed in seeds]
        set_generators(model, generators)
        updates = sum(map(len, self.segments))
        return State(
            model=model,
            optimizer=MemberAdamW(model, len(seeds), settings.recipe),
            generators=generators,
            curve_UKP=np.full((updates, len(seeds), len(self.parts)), np.nan),
            diverged=[None] * len(seeds),
        )

    def windows_at(self, segment: Segment) -> int:
        """How many validation windows to measure with: the most at the last segment's end, the largest D."""
        evaluation = self.settings.evaluation
        if not segment.cooled:
            return evaluation.trace_windows
        return evaluation.final_windows if segment == self.segments[-1] else evaluation.windows

    def sliding_at(self, *, cooled: bool) -> Sliding | None:
        """Where to slide at a D point or along the trunk; a model that carries its state has no window."""
        evaluation = self.settings.evaluation
        targets = evaluation.targets if cooled else evaluation.trace_targets
        tokens, context = self.corpus.validation.tokens, self.settings.context
        return None if self.carries else sliding(tokens, context, targets)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of every member, each (K, B, T): a pure function of seed and step.

        With ranks they are this one's part of the B sequences.
        """
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
        mine = self.ranks.part(self.settings.batch_size)
        x_KBT, y_KBT = (np.stack(side)[:, mine] for side in zip(*pairs, strict=True))
        return torch.from_numpy(x_KBT).to(self.device.device), torch.from_numpy(y_KBT).to(self.device.device)


def set_up(task: Task) -> Setup:
    """Raises InputError for a device that is not there, or an execution that the run cannot have."""
    settings, execution = task.lead.settings, task.execution
    shape = shape_of(settings.family, settings.shape)
    carries = bool(getattr(shape, "carry", False))
    corpus = open_tokenized(task.tokens, settings.corpus_hash)
    distributed.check_execution(
        execution, shape, settings.batch_size, where=task.lead.label, members=len(task.members)
    )
    ranks = distributed.joined(execution)
    device = choose(execution.device, settings.family)
    prepare_gpu(device.device)
    plain = ranks.count == 1 and execution.activation_checkpointing == "none"
    compiled = plain and compiling.pays(settings, shape, device.device.type, len(task.members))
    environment = environment_of(device, len(task.members), compiled=compiled)
    if ranks.count > 1:
        name = f"{ranks.count} x {environment.device_name}"
        environment = environment.model_copy(update={"device_name": name})
    return Setup(
        task=task,
        ranks=ranks,
        corpus=corpus,
        device=device,
        environment=environment,
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
