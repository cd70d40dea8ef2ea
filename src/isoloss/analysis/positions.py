"""Losses by position in the context: sums per run, binned so that the eye sees the curve and not the text."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss.analysis.points import curve_of
from isoloss.errors import Refusal
from isoloss.records import StudyData

SINGLE = 16
PER_OCTAVE = 4


@dataclass(frozen=True)
class PositionProfile:
    """One size of one curve at one D: sums, sums of squares and counts, each (seeds, positions)."""

    curve: str
    family: str
    params: int
    run_ids: tuple[str, ...]
    position_T: np.ndarray
    sum_ST: np.ndarray
    sumsq_ST: np.ndarray
    count_ST: np.ndarray

    def mean_S(self, first: int, last: int) -> np.ndarray:
        """Each seed's mean loss over positions first..last."""
        inside_T = (self.position_T >= first) & (self.position_T <= last)
        return self.sum_ST[:, inside_T].sum(axis=1) / self.count_ST[:, inside_T].sum(axis=1)


def profiles(study: StudyData, points: pl.DataFrame) -> list[PositionProfile]:
    """Every size of ``points`` (cooled points at one D) with its losses by position, in order of N."""
    rows = study.positions().join(points.select("run_id", "tokens"), on=["run_id", "tokens"], how="semi")
    rows = rows.filter(pl.col("cooled") & (pl.col("part") == "exit_1"))
    rows = rows.with_columns(curve_of()).sort("params", "curve", "seed", "run_id", "position")
    return [profile_of(group) for _, group in rows.group_by("curve", "params", maintain_order=True)]


def profile_of(rows: pl.DataFrame) -> PositionProfile:
    run_ids = tuple(rows["run_id"].unique(maintain_order=True))
    position_T = rows["position"].unique().sort().to_numpy()
    if rows.height != len(run_ids) * len(position_T):
        raise Refusal(
            "runs of one size were evaluated at different context lengths",
            mend="compare runs of one context length",
        )

    def wide(column: str) -> np.ndarray:
        return rows[column].to_numpy().reshape(len(run_ids), len(position_T)).astype(float)

    curve, family, params = rows.select("curve", "family", "params").row(0)
    return PositionProfile(
        curve, family, params, run_ids, position_T, wide("sum"), wide("sumsq"), wide("count")
    )


def edges(context: int) -> list[tuple[int, int]]:
    """(first, last) of each bin, 1-based."""
    bins = [(t, t) for t in range(1, min(SINGLE, context) + 1)]
    while bins[-1][1] < context:
        first = bins[-1][1] + 1
        last = max(first, round((first - 1) * 2 ** (1 / PER_OCTAVE)))
        bins.append((first, min(last, context)))
    return bins


def bin_means(profile: PositionProfile) -> pl.DataFrame:
    """Per bin: position (geometric middle), loss (mean of seeds), and the lowest and highest seed."""
    rows = []
    for first, last in edges(int(profile.position_T[-1])):
        loss_S = profile.mean_S(first, last)
        middle = float(np.sqrt(first * last))
        rows.append((first, last, middle, float(loss_S.mean()), float(loss_S.min()), float(loss_S.max())))
    return pl.DataFrame(rows, schema=["first", "last", "position", "loss", "low", "high"], orient="row")
