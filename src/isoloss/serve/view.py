"""A study as parts of a page, each by its id: what is drawn anew is what has changed."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from isoloss import text
from isoloss.analysis.families import name_of
from isoloss.figures.style import family_colour, log_ticks
from isoloss.report.tables import command
from isoloss.report.templates import environment, fill
from isoloss.serve.run import Run
from isoloss.serve.watch import Watch

STATES = ("running", "failed", "diverged", "queued", "waiting", "done")
"""In the order in which rows stand when a page is opened; later they stay where they are."""
SIDE = 1000
"""Of the square on which curves are drawn; the page stretches it."""
START = 300.0
"""Compute is drawn from the smallest final one over this factor."""
STEP = 1.05
"""The floor of the loss axis falls by this factor: rarely, since all curves move with it."""
DASHES = ("", "7 4", "2 4", "10 3 2 3")
LOSS_TICKS = (0.1, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12)
IDLE_SECONDS = 30.0
"""Without a running run and without a change: workers take a while to start."""
FEW = 40
"""Runs that are all shown at first; of more, those that run."""


@dataclass(frozen=True)
class Axes:
    """Ends of compute and of loss, both logarithmic; one pair for all studies of a page."""

    flops: tuple[float, float] = (1.0, 10.0)
    loss: tuple[float, float] = (1.0, 10.0)

    def place(self, flops: float, loss: float) -> str:
        across, up = share_of(flops, self.flops), share_of(loss, self.loss)
        return f"{SIDE * across:.0f},{SIDE * (1 - up):.0f}"

    @property
    def ticks(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Of compute and of loss: place in percent and label."""
        low, high = self.loss
        losses = [tick for tick in LOSS_TICKS if low <= tick <= high]
        return (
            [
                (f"{100 * share_of(tick, self.flops):.2f}", text.power(tick))
                for tick in log_ticks(*self.flops)
            ],
            [(f"{100 * share_of(tick, self.loss):.2f}", f"{tick:g}") for tick in losses],
        )


def share_of(value: float, ends: tuple[float, float]) -> float:
    low, high = (math.log(end) for end in ends)
    return (math.log(value) - low) / (high - low)


def axes_of(watches: Iterable[Watch]) -> Axes:
    """From the plans and the lowest loss so far: they move only where these do."""
    runs = [run for watch in watches for run in watch.runs.values()]
    if not runs:
        return Axes()
    flops = [run.plan.step_flops / run.plan.step_tokens * run.plan.tokens for run in runs]
    top = math.log(max(run.plan.vocab for run in runs)) * STEP
    least = min([top / 1.5, *(loss for run in runs for loss in run.curve.loss)])
    floor = STEP ** math.floor(math.log(least / STEP, STEP))
    return Axes((min(flops) / START, max(flops) * STEP), (floor, top))


@dataclass(frozen=True)
class Look:
    """How a family's curves look; a dash tells what a colour does not."""

    name: str
    colour: str
    dash: str


class View:
    """``id`` begins the id of every part. ``figures``: parts that a process of their own has drawn."""

    def __init__(self, watch: Watch, id: str):
        self.watch, self.id = watch, id
        self.figures: dict[str, str] = {}
        self.drawing_trouble = ""
        self._made: dict[str, tuple[object, str]] = {}

    def parts(self, axes: Axes) -> dict[str, str]:
        """Every part of the section in the order in which they stand."""
        across, up = axes.ticks
        out = {self._name("head"): self._head()}
        if self.watch.runs:
            name = self._name("axes")
            out[name] = self._cached(name, axes, lambda: macro("axes", name, across, up))
        looks = self.looks()
        for run in self.watch.runs.values():
            out |= self._of_run(run, looks[run.plan.family], axes)
        return out | (self.figures if self.watch.recorded[1] else {})

    def section(self, parts: Mapping[str, str]) -> Markup:
        """The whole section, of these parts: rows of what runs come first, and its curves lie on top."""
        plan, looks = self.watch.plan, self.looks()
        order = sorted(self.watch.runs.values(), key=lambda run: STATES.index(run.state))
        return fill(
            "serve/study.html",
            id=self.id,
            title=plan.get("title") or plan.get("study") or self.watch.folder.name,
            study=f"{plan['study']}, scale {plan['scale']}" if plan else "no study yet",
            folder=self.watch.folder,
            looks=list(looks.values()),
            chosen="running" if self.watch.of_state("running") and len(order) > FEW else "all",
            head=joined(parts, self._name("head")),
            axes=joined(parts, self._name("axes")),
            curves=joined(parts, *(self._name(f"curve-{run.run_id}") for run in reversed(order))),
            rows=joined(parts, *(self._name(f"run-{run.run_id}") for run in order)),
            figures=joined(parts, *self.figures),
        )

    def looks(self) -> dict[str, Look]:
        families = list(dict.fromkeys(run.plan.family for run in self.watch.runs.values()))
        return {
            family: Look(name_of(family), family_colour(family, families), DASHES[number % len(DASHES)])
            for number, family in enumerate(families)
        }

    def _name(self, part: str) -> str:
        return f"{self.id}-{part}"

    def _cached(self, name: str, of: object, make: Any) -> str:
        """The part, made anew only where what it is made ``of`` has changed."""
        made = self._made.get(name)
        if made is None or made[0] != of:
            made = self._made[name] = (of, str(make()))
        return made[1]

    def _of_run(self, run: Run, look: Look, axes: Axes) -> dict[str, str]:
        """A row of the table and a curve."""
        row, curve = self._name(f"run-{run.run_id}"), self._name(f"curve-{run.run_id}")
        seen = (run.plan, run.state, run.curve, look, axes)
        return {
            row: self._cached(row, run, lambda: macro("row", row, run, far(run))),
            curve: self._cached(curve, seen, lambda: macro("curve", curve, run, points_of(run, axes), look)),
        }

    def _head(self) -> str:
        watch, name = self.watch, self._name("head")
        count = {state: len(watch.of_state(state)) for state in STATES}
        total = sum(count.values())
        others = "".join(
            f", {number} {state}" for state, number in count.items() if number and state != "done"
        )
        idle = count["waiting"] and not count["running"] + count["queued"]
        left_alone = idle and watch.quiet_seconds > IDLE_SECONDS
        share, left = work_left(watch)
        return str(
            macro(
                "head",
                name,
                watch.trouble,
                self.drawing_trouble,
                f"{count['done']} of {text.plural(total, 'run')} done{others}" if total else "",
                share,
                f"about {text.duration(left)} left at this speed" if left else "",
                command(watch.plan) if left_alone else "",
            )
        )


def macro(name: str, *values: object) -> Markup:
    """What a macro of the room's templates gives."""
    return vars(environment().get_template("serve/macros.html").module)[name](*values)


def joined(parts: Mapping[str, str], *names: str) -> Markup:
    """These parts, where they are there; each has escaped what it holds."""
    return Markup("\n".join(parts[name] for name in names if name in parts))  # noqa: S704


def points_of(run: Run, axes: Axes) -> str:
    """A curve's points on the square, from where its axis begins."""
    places = (
        (run.plan.step_flops * step, loss) for step, loss in zip(run.curve.step, run.curve.loss, strict=True)
    )
    return " ".join(axes.place(flops, loss) for flops, loss in places if flops >= axes.flops[0])


def far(run: Run) -> str:
    """How far a run under way is, or why one did not end well."""
    progress = run.progress
    if progress is None or run.state != "running":
        return run.reason
    words = (
        f"step {progress.done:,} of {progress.updates:,}, {text.count(progress.tokens_per_second)} tokens/s"
    )
    if run.speed:
        words += f", {text.duration((1 - run.share) / run.speed)} left"
    if progress.diverged:
        words += f", {progress.diverged} of {progress.members} diverged"
    return words


def work_left(watch: Watch) -> tuple[float, float]:
    """Share of the study's work that is made, and seconds left at the speed of what runs now, or 0.

    What failed is no longer waited for.
    """
    runs = [run for run in watch.runs.values() if run.state != "failed"]
    total = sum(run.plan.work for run in runs)
    made = sum(run.plan.work * run.share for run in runs)
    speed = sum(run.plan.work * run.speed for run in runs)
    return (made / total if total else 0.0), ((total - made) / speed if speed else 0.0)
