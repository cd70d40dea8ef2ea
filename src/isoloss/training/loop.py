"""The training loop: one cohort, trunk and branches, from wherever it stands to its records."""

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from isoloss.corpus.batches import evaluation_windows, windows_before
from isoloss.errors import RunError
from isoloss.models.cohort import member_weights
from isoloss.records.store import WEIGHTS
from isoloss.training.blocks import Blocks
from isoloss.training.checkpoint import write_tensors
from isoloss.training.device import return_freed
from isoloss.training.distributed import gathered
from isoloss.training.evaluation import evaluate
from isoloss.training.finish import write_records
from isoloss.training.journal import Journal
from isoloss.training.schedule import Segment, rate
from isoloss.training.setup import Setup, set_up
from isoloss.training.sliding import evaluate_sliding
from isoloss.training.state import Measured, State, copies, put_back, tensors
from isoloss.training.step import train_step
from isoloss.training.task import Progress, Task


def train(
    task: Task,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train a cohort to its records, going on from its newest checkpoint. False if stopped before the end.

    Where the device's memory is short it begins again there with smaller micro-batches, which the records
    note: the sums are the same, to rounding. Hold the claims of the members' folders while calling it. With
    ranks each of them must call it.
    """
    notes: list[str] = []
    while True:
        try:
            return attempt(task, notes, report, should_stop)
        except torch.OutOfMemoryError:
            if task.execution.ranks > 1:  # the others are in the middle of this update
                raise
            micro_batches = task.execution.micro_batches
        task = with_smaller_micro_batches(task)
        notes.append(f"micro-batches {micro_batches} -> {task.execution.micro_batches}")
        gc.collect()
        torch.cuda.empty_cache()  # does nothing where there is no GPU


def with_smaller_micro_batches(task: Task) -> Task:
    """Raises RunError where there is nothing smaller."""
    settings, micro_batches = task.lead.settings, 2 * task.execution.micro_batches
    if micro_batches > settings.batch_size or settings.shape.get("carry"):
        raise RunError(
            "the device's memory is too small for this model",
            where=task.lead.label,
            mend="use a smaller model, context or vocabulary, or a larger device",
        )
    return replace(task, execution=task.execution.model_copy(update={"micro_batches": micro_batches}))


def attempt(
    task: Task, notes: Sequence[str], report: Callable[[Progress], None], should_stop: Callable[[], bool]
) -> bool:
    """``train`` with the task's own micro-batches; ``notes``: what ran out of memory before."""
    setup = set_up(task)
    state = setup.first_state()
    journal = Journal(setup, state)
    for note in notes:
        journal.note("out of memory", note)
    update = update_of(setup, state)
    for number, segment in enumerate(setup.segments):
        if number < state.segment:
            continue
        enter(state, number, segment)
        while state.step < segment.stop and state.alive_K.any():
            measure_if_due(setup, state, journal, segment)
            for means_KP, norm_K in update(segment):
                journal.note_divergence(loss=means_KP[:, 0], gradient=norm_K)
                state.advance(means_KP.numpy())
                if not state.alive_K.any():
                    break
            report(journal.progress())
            if setup.ranks.any(should_stop()):
                journal.save()
                return False
            journal.save_if_due()
        measure_if_due(setup, state, journal, segment)
        if state.trunk is not None:
            keep_weights_if_last(setup, state, segment)
            put_back(state, state.trunk)
            state.trunk = None
    journal.finish()
    if setup.ranks.leads:
        write_records(setup, state, journal)
    return True


def update_of(setup: Setup, state: State) -> Callable[[Segment], Iterable[tuple[Tensor, Tensor]]]:
    """Makes the next update, on a GPU the next few; gives losses (K, P) and gradient norms (K,) of each."""
    if setup.device.device.type == "cuda" and setup.ranks.count == 1:
        return Blocks(setup, state)
    return partial(single_update, setup, state)


def single_update(setup: Setup, state: State, segment: Segment) -> list[tuple[Tensor, Tensor]]:
    x_KBT, y_KBT = setup.batch(state.step)
    rates = [rate(member.settings, segment, state.step) for member in setup.task.members]
    means_KP, norm_K = train_step(
        state.model, state.optimizer, x_KBT, y_KBT, rates, state.alive_K.to(x_KBT.device), setup.options
    )
    return [(means_KP.cpu(), norm_K.cpu())]


def enter(state: State, number: int, segment: Segment) -> None:
    """Go to the segment's first step, unless resumed within it; a branch leaves a copy of the trunk."""
    if number > state.segment:
        state.segment, state.step = number, segment.start
    if segment.cooled and state.trunk is None:
        state.trunk = copies(tensors(state))


def measure_if_due(setup: Setup, state: State, journal: Journal, segment: Segment) -> None:
    """Validation loss by position: at a branch's end, and along the trunk where it is to be traced.

    Freed memory is returned before and after, or the peak would be that of an update and of this together.
    """
    if segment.cooled:
        due = state.step == segment.stop
    else:
        due = state.step in setup.trace and not state.has_measured(state.step, segment.branch)
    if not due or not state.alive_K.any():
        return
    windows = {"count": setup.windows_at(segment), "context": setup.settings.context}
    x_MT, y_MT = evaluation_windows(setup.corpus.validation, **windows)
    before_MT = windows_before(setup.corpus.validation, **windows) if setup.carries else None
    members = len(state.diverged)
    return_freed()
    with setup.device.precision():
        sums = evaluate(state.model, x_MT, y_MT, before_MT, members=members, device=setup.device.device)
    journal.note_divergence(validation_loss=[member_sums.mean("exit_1") for member_sums in sums])
    living = [s if step is None else None for s, step in zip(sums, state.diverged, strict=True)]
    sliding_KGN = None
    if (plan := setup.sliding_at(cooled=segment.cooled)) is not None:
        return_freed()
        with setup.device.precision():
            sliding_KGN = evaluate_sliding(
                state.model, setup.corpus.validation.ids, plan, members=members, device=setup.device.device
            )
    return_freed()
    state.measured.append(Measured(state.step, segment.branch, living, sliding_KGN))


def keep_weights_if_last(setup: Setup, state: State, segment: Segment) -> None:
    """The weights just measured at the last D point, if wanted: the trunk is about to replace them."""
    if setup.task.execution.keep_weights and segment == setup.segments[-1]:
        for k, member in enumerate(setup.task.members):
            weights = gathered(member_weights(state.model, k), setup.ranks)
            if setup.ranks.leads:
                write_tensors(member.folder / WEIGHTS, weights)
