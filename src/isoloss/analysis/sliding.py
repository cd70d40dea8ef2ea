"""Loss by position on the same targets at every position: means by group of positions and block of text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss.errors import Refusal
from isoloss.records import StudyData
from isoloss.stats import Interval, t_interval

MEND = "run it anew with targets, such as --set evaluation.targets=2048 evaluation.trace_targets=256"


@dataclass(frozen=True)
class SlidingProfile:
    """One run at one step: loss (G, B) by group of positions ``first_G`` to ``last_G`` and block of text.

    A block holds as many losses, of the same targets, in every group and run: blocks pair.
    """

    curve: str
    params: int
    context: int
    seed: int
    run_id: str
    step: int
    first_G: np.ndarray
    last_G: np.ndarray
    loss_GB: np.ndarray

    @property
    def position_G(self) -> np.ndarray:
        """The geometric middle of each group."""
        return np.sqrt(self.first_G * self.last_G)

    def mean_B(self, first: int, last: int) -> np.ndarray:
        """Each block's mean over the groups that lie in positions first..last, a position counting alike."""
        inside_G = (self.first_G >= first) & (self.last_G <= last)
        return np.average(self.loss_GB[inside_G], axis=0, weights=(self.last_G - self.first_G + 1)[inside_G])


def sliding_profiles(study: StudyData, points: pl.DataFrame, *, cooled: bool = True) -> list[SlidingProfile]:
    """Runs of ``points`` at their tokens, or along their trunks, in order of context, N, seed and step.

    Raises Refusal where no run was measured so.
    """
    on = ["run_id", "tokens"] if cooled else ["run_id"]
    points = points.select(*on, "context", "curve").unique()
    rows = study.sliding().filter(pl.col("cooled") == cooled).join(points, on=on)
    if rows.is_empty():
        when = "" if cooled else " while the runs trained"
        raise Refusal(f"no loss was taken of the same tokens at every position{when}", mend=MEND)
    return list(
        profiles_in(rows.sort("context", "curve", "params", "seed", "run_id", "step", "first", "block"))
    )


def profiles_in(rows: pl.DataFrame) -> Iterator[SlidingProfile]:
    """Of rows whose runs and steps stand one after another, cut as arrays: there may be thousands."""
    names = ("curve", "params", "context", "seed")
    runs = rows.group_by("run_id", "step", maintain_order=True).agg(
        *(pl.col(name).first() for name in names), rows=pl.len(), blocks=pl.col("block").n_unique()
    )
    loss, first, last = (
        (rows["sum"] / rows["count"]).to_numpy(),
        rows["first"].to_numpy(),
        rows["last"].to_numpy(),
    )
    end = 0
    for run in runs.iter_rows(named=True):
        start, blocks = end, run.pop("blocks")
        end = start + run.pop("rows")
        groups = slice(start, end, blocks)
        loss_GB = loss[start:end].reshape(-1, blocks)
        yield SlidingProfile(**run, first_G=first[groups], last_G=last[groups], loss_GB=loss_GB)


def octaves(context: int) -> list[tuple[int, int]]:
    """1, 2, 3-4, 5-8, ... to the context."""
    ends = [2**k for k in range(context.bit_length()) if 2**k < context] + [context]
    return [(before + 1, end) for before, end in zip([0, *ends], ends, strict=False)]


def block_mean(value_B: np.ndarray) -> Interval:
    """Mean over blocks of text, with their t interval."""
    blocks = len(value_B)
    return t_interval(float(value_B.mean()), float(value_B.std(ddof=1) / blocks**0.5), blocks, blocks - 1)


def jackknife(statistic: Callable[..., float], *means_of: np.ndarray) -> Interval:
    """A statistic of means over blocks (the last axis), its t interval by leaving out each (Tukey 1958)."""
    value = statistic(*(each.mean(axis=-1) for each in means_of))
    se = jackknife_se(np.array([statistic(*some) for some in zip(*map(left_out, means_of), strict=True)]))
    blocks = means_of[0].shape[-1]
    return t_interval(value, se, blocks, blocks - 1)


def left_out(value_XB: np.ndarray) -> np.ndarray:
    """Means over blocks without each of them, (B, X)."""
    blocks = value_XB.shape[-1]
    return np.moveaxis((value_XB.sum(axis=-1, keepdims=True) - value_XB) / (blocks - 1), -1, 0)


def jackknife_se(left_out_B: np.ndarray) -> float:
    return float(np.sqrt((len(left_out_B) - 1) * np.var(left_out_B)))
