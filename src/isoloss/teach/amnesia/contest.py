"""Train every side of every cell with every rate and seed, and note each look as a row."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from isoloss.teach.amnesia.settings import Contest
from isoloss.teach.amnesia.sides import params_of
from isoloss.teach.learner import Check, Cohort, Replica, Side, learn
from isoloss.teach.panel import Report
from isoloss.teach.result import Row
from isoloss.teach.tasks import Task

SECONDS_BETWEEN_REPORTS = 0.3


@dataclass(frozen=True)
class Cell:
    """One task at one size: ``labels`` name it in the rows; ``test`` scores it, if not ``task`` itself."""

    labels: Row
    task: Task
    sides: Sequence[Side]
    test: Task | None = None


@dataclass(frozen=True)
class Run:
    """A side in a cell with one rate: members differ by seed alone, so that they end when all are done."""

    cell: Cell
    side: Side
    rate: float

    @property
    def labels(self) -> Row:
        return {**self.cell.labels, "side": self.side.name, "params": params_of(self.side, self.cell.task)}


def runs(cells: Sequence[Cell], rates: Sequence[float]) -> Iterator[Run]:
    for cell in cells:
        for side in cell.sides:
            for rate in rates:
                yield Run(cell, side, rate)


def contest(
    cells: Sequence[Cell],
    settings: Contest,
    report: Report,
    ended: Callable[[Run, Cohort], None] = lambda run, cohort: None,
) -> list[Row]:
    """A row a side, seed, rate and look. ``ended`` is given each cohort when its training is over."""
    rows: list[Row] = []
    planned = list(runs(cells, settings.rates))
    for number, run in enumerate(planned):
        progress = Progress(report, rows, run, number, len(planned), settings)
        learn(
            run.side,
            run.cell.task,
            [Replica(seed, run.rate) for seed in settings.seed_numbers],
            cap=settings.cap,
            every=settings.every,
            batch=settings.batch,
            test=run.cell.test,
            seen=progress.seen,
            stepped=progress.stepped,
            ended=lambda cohort, run=run: ended(run, cohort),
        )
    return rows


class Progress:
    """Notes the looks of one run and reports now and then, in member-updates done of those allowed."""

    def __init__(self, report: Report, rows: list[Row], run: Run, number: int, count: int, settings: Contest):
        self.report, self.rows, self.run = report, rows, run
        self.number, self.count, self.allowed = number, count, settings.cap * settings.seeds
        self.labels, self.done, self.last = run.labels, 0, time.monotonic()

    def seen(self, check: Check) -> None:
        self.rows.append({**self.labels, **check.row()})
        self._tell(check.update, {"curves": list(self.rows)})

    def stepped(self, cohort: Cohort) -> None:
        self.done += len(cohort.members)
        if time.monotonic() - self.last >= SECONDS_BETWEEN_REPORTS:
            self._tell(cohort.done)

    def _tell(self, update: int, tables: dict[str, list[Row]] | None = None) -> None:
        self.last = time.monotonic()
        share = (self.number + min(1.0, self.done / self.allowed)) / self.count
        self.report(share, f"{self.run.side.name}, rate {self.run.rate:g}: update {update:,}", tables)
