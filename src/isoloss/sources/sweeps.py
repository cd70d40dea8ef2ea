"""Sweeps of a rate or a batch: which rows are the best of each size."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss import text
from isoloss.laws import Array

TUNED = ("learning_rate", "batch_tokens")
"""They have a best value, which is nothing to a law or a forecast of sizes."""
ALIKE = 1e-3
"""Sizes that differ by a smaller part are one: whole steps of a batch round tokens."""
_SWEEP = 3  # settings at one size that are a sweep


def numbers_of(frame: pl.DataFrame, names: Sequence[str]) -> dict[str, Array]:
    """Those of ``names`` that are columns, as numbers; what is none is NaN."""
    return {name: frame[name].cast(float, strict=False).to_numpy() for name in names if name in frame.columns}


def best_of_sweeps(
    known: Mapping[str, Array], differ: Mapping[str, Array], loss: Array
) -> tuple[NDArray[np.intp], str]:
    """Of designs run at several rates or batches the rows of the lowest mean loss, and that in words.

    ``known`` are the sizes that make a design, ``differ`` holds the settings. All rows and '' where there is
    no sweep.
    """
    swept = [name for name in TUNED if name in differ and not np.isnan(differ[name]).all()]
    alike = np.vstack([_groups(column) for column in known.values()])
    _, design_n = np.unique(alike, axis=1, return_inverse=True)
    values = [np.nan_to_num(differ[name], nan=-np.inf) for name in swept]  # empty cells are one setting
    settings_KS, setting_n = np.unique(np.vstack([design_n.ravel(), *values]), axis=1, return_inverse=True)
    design_S, setting_n = settings_KS[0].astype(int), setting_n.ravel()
    if not swept or np.median(np.bincount(design_S)) < _SWEEP:
        return np.arange(len(loss)), ""
    mean_S = np.bincount(setting_n, loss) / np.bincount(setting_n)
    order = np.lexsort([mean_S, design_S])
    best = order[np.unique(design_S[order], return_index=True)[1]]
    keep = np.flatnonzero(np.isin(setting_n, best))
    vary = f"{text.listed(swept)} {'varies' if len(swept) == 1 else 'vary'} at equal sizes"
    return keep, f"{vary}: the best of each is kept, {len(keep):,} of {len(loss):,} runs"


def _groups(size: Array) -> NDArray[np.intp]:
    """A number for each value, the same for all that lie within ``ALIKE`` of the least of them."""
    values, which_n = np.unique(size, return_inverse=True)
    starts = np.zeros(len(values), dtype=np.intp)
    for index in range(1, len(values)):
        least = starts[index - 1]
        starts[index] = least if values[index] <= (1 + ALIKE) * values[least] else index
    return starts[which_n.ravel()]
