"""The training loop: one cohort, trunk and branches, from wherever it stands to its records."""

from collections.abc import Callable

from isoloss.corpus.batches import evaluation_windows, windows_before
from isoloss.models.cohort import member_weights
from isoloss.training import state as states
from isoloss.training import weights
from isoloss.training.evaluation import evaluate
from isoloss.training.finish import write_records
from isoloss.training.journal import Journal
from isoloss.training.schedule import Segment, rate
from isoloss.training.setup import Setup, set_up
from isoloss.training.state import Measured, State
from isoloss.training.step import train_step
from isoloss.training.task import Progress, Task


def train(
    task: Task,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train a cohort to its records, going on from its newest checkpoint. False if stopped before the end.

    Hold the claims of the members' folders while calling it.
    """
    setup = set_up(task)
    state = setup.fresh_state()
    journal = Journal(setup, state)
    for segment in setup.segments[state.segment :]:
        if segment.cooled and state.trunk is None:
            state.trunk = states.copy_of(states.tensors(state))
        while state.step < segment.stop and state.alive_K.any():
            measure_if_due(setup, state, journal, segment)
            x_KBT, y_KBT = setup.batch(state.step)
            rates = [rate(member.settings, segment, state.step) for member in task.members]
            means_KP, norm_K = train_step(
                state.model, state.optimizer, x_KBT, y_KBT, rates, state.alive_K, setup.options
            )
            journal.note_divergence(loss=means_KP[:, 0], gradient=norm_K)
            state.advance(means_KP.numpy())
            report(journal.progress())
            if should_stop():
                journal.save()
                return False
            journal.save_if_due()
        if segment.cooled:
            measure(setup, state, journal, segment)
            keep_weights(setup, state, segment)
            states.put_back(state, state.trunk)
            state.trunk = None
        else:
            measure_if_due(setup, state, journal, segment)
        next_segment(setup, state)
    journal.finish()
    write_records(setup, state, journal)
    return True


def measure_if_due(setup: Setup, state: State, journal: Journal, segment: Segment) -> None:
    if not segment.cooled and state.step in setup.trace and not state.has_measured(state.step, 0):
        measure(setup, state, journal, segment)


def measure(setup: Setup, state: State, journal: Journal, segment: Segment) -> None:
    """Validation loss by position, here and now."""
    if not state.alive_K.any():
        return
    windows = {"count": windows_at(setup, segment), "context": setup.settings.context}
    x_MT, y_MT = evaluation_windows(setup.corpus.validation, **windows)
    before_MT = windows_before(setup.corpus.validation, **windows) if setup.carries else None
    members = len(state.diverged)
    with setup.device.precision():
        sums = evaluate(state.model, x_MT, y_MT, before_MT, members=members, device=setup.device.device)
    journal.note_divergence(validation_loss=[member_sums.mean("exit_1") for member_sums in sums])
    living = [s if step is None else None for s, step in zip(sums, state.diverged, strict=True)]
    state.measured.append(Measured(state.step, segment.branch, living))


def windows_at(setup: Setup, segment: Segment) -> int:
    evaluation = setup.settings.evaluation
    if not segment.cooled:
        return evaluation.trace_windows
    return evaluation.final_windows if is_last(setup, segment) else evaluation.windows


def is_last(setup: Setup, segment: Segment) -> bool:
    """Does the segment end at the largest D point?"""
    return segment.branch == len(setup.settings.tokens)


def keep_weights(setup: Setup, state: State, segment: Segment) -> None:
    """The weights just measured at the last D point, if wanted: the trunk is about to replace them."""
    if setup.task.execution.keep_weights and is_last(setup, segment):
        for k, member in enumerate(setup.task.members):
            weights.write(member.folder / weights.NAME, member_weights(state.model, k))


def next_segment(setup: Setup, state: State) -> None:
    state.segment += 1
    if state.segment < len(setup.segments):
        state.step = setup.segments[state.segment].start
