"""Learning curves of few points: of runs that ended, and of runs under way as far as they are known."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss import files
from isoloss.errors import InputError
from isoloss.records.divergence import mark_divergence
from isoloss.records.schema import Record
from isoloss.records.store import CURVE, NO_CURVE, check_file, read_record
from isoloss.strict import validate
from isoloss.training.schedule import segments, updates
from isoloss.training.settings import RunSettings

POINTS = 48
"""Of a curve: means over equal parts of log steps."""

MOST_UPDATES = 10_000_000
"""Of a run whose losses are held one by one while it trains."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Mean training loss over parts of the way from the first step to the newest; steps are means too."""

    step: tuple[float, ...] = ()
    loss: tuple[float, ...] = ()


NONE = Curve()


def reduced(branch_S: Floats, step_S: Floats, loss_S: Floats) -> Curve:
    """The way to the newest loss, the trunk and the branch it is on, as ``POINTS`` means at most."""
    there = np.isfinite(loss_S) & (loss_S > 0)
    branch_S, step_S, loss_S = branch_S[there], step_S[there], loss_S[there]
    if not len(loss_S):
        return NONE
    on_S = branch_S == branch_S[-1]
    on_S |= (branch_S == 0) & (step_S < step_S[on_S].min())
    step_S, loss_S = step_S[on_S], loss_S[on_S]
    edges = np.geomspace(1, step_S.max() + 1, POINTS + 1)
    part_S = np.digitize(step_S, edges)
    count_P = np.bincount(part_S)
    step_P, loss_P = (np.bincount(part_S, weights=v)[count_P > 0] for v in (step_S, loss_S))
    count_P = count_P[count_P > 0]
    return Curve(tuple((step_P / count_P).tolist()), tuple((loss_P / count_P).tolist()))


def ended(folder: Path) -> tuple[Record, Curve]:
    """A finished run: its record, judged as in every table, and its curve.

    Raises InputError where either cannot be trusted.
    """
    record = read_record(folder)
    if CURVE not in record.files:
        return record, NONE
    table = pl.read_parquet(check_file(folder, record, CURVE))
    columns = (table[name].to_numpy().astype(float) for name in ("branch", "step", "total"))
    return mark_divergence(record, table if table.height else NO_CURVE), reduced(*columns)


class Course:
    """Losses of a run under way, by update: from its checkpoints, and since from its progress."""

    def __init__(self, folder: Path):
        """Raises InputError where the folder has no settings yet, or none whose curve could be held."""
        path = folder / "settings.json"
        settings = validate(RunSettings, files.read_bytes(path), where=str(path))
        if updates(settings) > MOST_UPDATES:
            raise InputError(f"has more than {MOST_UPDATES:,} updates", where=str(path))
        parts = segments(settings)
        self.branch_U = np.concatenate([np.full(len(part), part.branch, dtype=float) for part in parts])
        self.step_U: Floats = np.concatenate(
            [np.arange(part.start, part.stop, dtype=np.float64) + 1 for part in parts]
        )
        self.loss_U = np.full(len(self.step_U), np.nan)

    def note(self, done: int, loss: float | None) -> None:
        """The loss of the newest of ``done`` updates."""
        if loss is not None and 0 < done <= len(self.loss_U):
            self.loss_U[done - 1] = loss

    def take(self, total_U: Floats) -> None:
        """What a checkpoint holds."""
        if len(total_U) == len(self.loss_U):
            there = np.isfinite(total_U)
            self.loss_U[there] = total_U[there]

    @property
    def curve(self) -> Curve:
        return reduced(self.branch_U, self.step_U, self.loss_U)
