"""The training loop: one cohort, trunk and branches, from wherever it stands to its records."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import torch

from isoloss import files
from isoloss.corpus.batches import evaluation_windows, lane_batch, train_batch, windows_before
from isoloss.corpus.library import open_tokenized
from isoloss.errors import InputError
from isoloss.models import family, shape_of
from isoloss.models.cohort import member_weights
from isoloss.records.schema import Event
from isoloss.training import checkpoint, weights
from isoloss.training import state as states
from isoloss.training.device import Device, choose, environment
from isoloss.training.evaluation import evaluate
from isoloss.training.finish import write_records
from isoloss.training.objective import losses
from isoloss.training.schedule import Segment, rate, segments, trace_steps
from isoloss.training.state import Measured, State
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
    run = Run(task)
    for segment in run.plan[run.state.segment :]:
        if segment.cooled and run.state.trunk is None:
            run.state.trunk = states.copy_of(states.tensors(run.state))
        while run.state.step < segment.stop and run.state.alive_K.any():
            run.measure_if_due(segment)
            run.update(segment)
            report(run.progress())
            if should_stop():
                run.save()
                return False
            run.save_if_due()
        if segment.cooled:
            run.measure(segment)
            run.keep_weights(segment)
            states.put_back(run.state, run.state.trunk)
            run.state.trunk = None
        else:
            run.measure_if_due(segment)
        run.next_segment()
    write_records(task, run.corpus, run.state, run.parts, run.environment, run.finished_events(), run.attempt)
    return True


class Run:
    """A cohort being trained: what the loop above does at each step."""

    def __init__(self, task: Task):
        self.task, self.first = task, task.lead.settings
        self.corpus = open_tokenized(task.tokens, self.first.corpus_hash)
        self.plan, self.trace = segments(self.first), trace_steps(self.first)
        shape = shape_of(self.first.family, self.first.shape)
        self.carries = bool(getattr(shape, "carry", False))
        if self.carries and task.execution.micro_batches > 1:
            mend = "set micro_batches = 1, or carry = false"
            raise InputError(
                "a carried state cannot be kept over micro-batches", where=task.lead.label, mend=mend
            )
        self.device: Device = choose(task.execution.device, self.first.family, shape)
        self.environment = environment(self.device, len(task.members))
        self.parts = part_names(getattr(shape, "n_exit", 1), getattr(shape, "gated", False))
        everyone = [member.settings for member in task.members]
        kind = family(self.first.family)
        self.state = states.fresh(everyone, kind, shape, self.device.device, self.parts)
        self.run_ids = [member.run_id for member in task.members]
        self.checkpoints = task.lead.folder / "checkpoints"
        self.log = task.lead.folder / "log.jsonl"
        self.resume()
        self.clock = Clock(self.state)
        self.saved_at = time.monotonic()

    def resume(self) -> None:
        notes = checkpoint.restore(self.checkpoints, self.state, self.run_ids)
        self.attempt = (notes["attempt"] if notes else 0) + 1
        self.events = [Event(**event) for event in notes["events"]] if notes else []
        self.note("resumed" if notes else "started")
        if notes and notes["environment"] != self.environment.model_dump():
            before, now = notes["environment"], self.environment.model_dump()
            changed = [f"{key}: {before[key]} -> {now[key]}" for key in now if before.get(key) != now[key]]
            self.note("environment changed", "; ".join(changed))

    def note(self, kind: str, detail: str = "") -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        event = Event(kind=kind, attempt=self.attempt, step=self.state.done, time=now, detail=detail)
        self.events.append(event)
        files.append_line(self.log, event.model_dump())

    def finished_events(self) -> list[Event]:
        self.note("finished")
        self.clock.lap()
        return self.events

    def update(self, segment: Segment) -> None:
        """One optimiser update of every living member."""
        state, first, K = self.state, self.first, len(self.task.members)
        x_KBT, y_KBT = self.batch(state.step)
        state.model.zero_grad()
        means_KP = torch.zeros(K, len(self.parts), dtype=torch.float64)
        micro = self.task.execution.micro_batches
        for x_KbT, y_KbT in zip(x_KBT.chunk(micro, dim=1), y_KBT.chunk(micro, dim=1), strict=True):
            with self.device.precision():
                output = state.model(x_KbT)
            found = losses(output, y_KbT)
            share = x_KbT.shape[1] / first.batch_size
            # A sum over members: each one's gradient is then that of its own mean loss.
            (found.total.mean(dim=(1, 2)).sum() * share).backward()
            parts_KP = torch.stack([found.part(p).detach().mean(dim=(1, 2)) for p in self.parts], dim=1)
            means_KP += share * parts_KP.cpu().double()
        norm_K = state.optimizer.gradient_norms()
        self.note_divergence(means_KP[:, 0], norm_K.cpu())
        rates = [rate(member.settings, segment, state.step) for member in self.task.members]
        state.optimizer.step(rates, norm_K, state.alive_K.tolist())
        state.curve_UKP[state.done] = np.where(state.alive_K.numpy()[:, None], means_KP.numpy(), np.nan)
        state.step, state.done = state.step + 1, state.done + 1
        self.clock.tokens += first.batch_tokens * K

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of every member: a pure function of seed and step."""
        size = {"batch_size": self.first.batch_size, "context": self.first.context}
        seeds = [member.settings.seed for member in self.task.members]
        draw = lane_batch if self.carries else train_batch
        pairs = [draw(self.corpus.train, seed=seed, step=step, **size) for seed in seeds]
        x_KBT, y_KBT = (np.stack(side) for side in zip(*pairs, strict=True))
        return torch.from_numpy(x_KBT).to(self.device.device), torch.from_numpy(y_KBT).to(self.device.device)

    def note_divergence(self, loss_K: torch.Tensor, norm_K: torch.Tensor) -> None:
        """A member whose loss or gradient is not finite stops here; the others go on."""
        for k, (loss, norm) in enumerate(zip(loss_K.tolist(), norm_K.tolist(), strict=True)):
            if self.state.diverged[k] is None and not (np.isfinite(loss) and np.isfinite(norm)):
                self.state.diverged[k] = self.state.done
                what = "loss" if not np.isfinite(loss) else "gradient"
                self.note("diverged", f"{self.run_ids[k]}: {what} not finite")

    def measure_if_due(self, segment: Segment) -> None:
        step = self.state.step
        if not segment.cooled and step in self.trace and not self.state.has_measured(step, 0):
            self.measure(segment)

    def measure(self, segment: Segment) -> None:
        """Validation loss by position, here and now."""
        if not self.state.alive_K.any():
            return
        wanted = self.first.evaluation
        last = segment.cooled and segment.branch == len(self.first.tokens)
        count = wanted.final_windows if last else wanted.windows if segment.cooled else wanted.trace_windows
        x_MT, y_MT = evaluation_windows(self.corpus.validation, count=count, context=self.first.context)
        before_MT = None
        if self.carries:
            before_MT = windows_before(self.corpus.validation, count=count, context=self.first.context)
        K, model = len(self.task.members), self.state.model
        with self.device.precision():
            sums = evaluate(model, x_MT, y_MT, before_MT, members=K, device=self.device.device)
        for k, member_sums in enumerate(sums):
            if self.state.diverged[k] is None and not np.isfinite(member_sums.mean("exit_1")):
                self.state.diverged[k] = self.state.done
                self.note("diverged", f"{self.run_ids[k]}: validation loss not finite")
        living = [s if self.state.diverged[k] is None else None for k, s in enumerate(sums)]
        self.state.measured.append(Measured(self.state.step, segment.branch, living))

    def keep_weights(self, segment: Segment) -> None:
        """The weights just measured at the last D point, if wanted: the trunk is about to replace them."""
        if self.task.execution.keep_weights and segment.branch == len(self.first.tokens):
            for k, member in enumerate(self.task.members):
                weights.write(member.folder / weights.NAME, member_weights(self.state.model, k))

    def next_segment(self) -> None:
        self.state.segment += 1
        if self.state.segment < len(self.plan):
            self.state.step = self.plan[self.state.segment].start

    def save_if_due(self) -> None:
        every = self.task.execution.checkpoint_steps
        by_step = every is not None and self.state.done % every == 0
        by_time = every is None and time.monotonic() - self.saved_at >= self.task.execution.checkpoint_seconds
        if by_step or by_time:
            self.save()

    def save(self) -> None:
        self.clock.lap()
        notes = {
            "attempt": self.attempt,
            "events": [event.model_dump() for event in self.events],
            "environment": self.environment.model_dump(),
        }
        checkpoint.save(self.checkpoints, self.state, self.run_ids, notes)
        self.saved_at = time.monotonic()

    def progress(self) -> Progress:
        row = self.state.curve_UKP[self.state.done - 1, :, 0]
        living = row[np.isfinite(row)]
        return Progress(
            run_id=self.run_ids[0],
            label=self.task.lead.label,
            done=self.state.done,
            updates=len(self.state.curve_UKP),
            tokens=self.state.done * self.first.batch_tokens,
            loss=float(living.mean()) if living.size else None,
            tokens_per_second=self.clock.tokens_per_second(),
            members=len(self.run_ids),
            diverged=sum(step is not None for step in self.state.diverged),
        )


class Clock:
    """Adds this attempt's wall and CPU seconds to the state's, and knows the speed."""

    def __init__(self, state: State):
        self.state, self.tokens = state, 0
        self.begin = self.wall = time.monotonic()
        self.cpu = time.process_time()

    def lap(self) -> None:
        wall, cpu = time.monotonic(), time.process_time()
        self.state.wall_seconds += wall - self.wall
        self.state.cpu_seconds += cpu - self.cpu
        self.wall, self.cpu = wall, cpu

    def tokens_per_second(self) -> float:
        return self.tokens / max(1e-9, time.monotonic() - self.begin)


def part_names(exits: int, gated: bool) -> list[str]:
    """What the training curve holds at each step; the objective first."""
    if not gated:
        return ["total"]
    return ["total", "expected", "entropy", *[f"exit_{number}" for number in range(1, exits + 1)]]
