"""Columns that no forecast was asked by: an error, a doubt, or a sweep whose best runs are kept."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoloss import text
from isoloss.errors import InputError
from isoloss.laws import Array
from isoloss.plans.forecast.runs import ALIKE
from isoloss.sources.row_checks import ONE_EPOCH

SIZES = ("params", "tokens", "flops")
OTHERS = ("recurrence", "unique_tokens", "position")
"""More inputs that the loss falls in."""
TUNED = ("learning_rate", "batch_tokens")
"""They have a best value, which is nothing to a forecast."""
VARIED = (*SIZES, *OTHERS, *TUNED)
Finding = dict[str, Any]
"""A doubt as the ``source`` of a result carries it, beside those of the table's checks."""
_SWEEP = 3  # settings at one size that are a sweep


def best_of_sweeps(
    known: Mapping[str, Array], differ: Mapping[str, Array], loss: Array
) -> tuple[NDArray[np.intp], list[Finding]]:
    """Rows to keep: of designs run at several rates or batches those of the lowest mean loss; and that."""
    swept = [name for name in TUNED if name in differ and not np.isnan(differ[name]).all()]
    alike = np.vstack([_groups(column) for column in known.values()])
    _, design_n = np.unique(alike, axis=1, return_inverse=True)
    values = [np.nan_to_num(differ[name], nan=-np.inf) for name in swept]  # empty cells are one setting
    settings_KS, setting_n = np.unique(np.vstack([design_n.ravel(), *values]), axis=1, return_inverse=True)
    design_S, setting_n = settings_KS[0].astype(int), setting_n.ravel()
    if not swept or np.median(np.bincount(design_S)) < _SWEEP:
        return np.arange(len(loss)), []
    mean_S = np.bincount(setting_n, loss) / np.bincount(setting_n)
    order = np.lexsort([mean_S, design_S])
    best = order[np.unique(design_S[order], return_index=True)[1]]
    keep = np.flatnonzero(np.isin(setting_n, best))
    vary = f"{text.listed(swept)} {'varies' if len(swept) == 1 else 'vary'} at equal sizes"
    said = f"{vary}: the best of each is kept, {len(keep):,} of {len(loss):,} runs"
    return keep, [_finding("sweep", said, "")]


def _groups(size: Array) -> NDArray[np.intp]:
    """A number for each value, the same for all that lie within ``ALIKE`` of the least of them."""
    values, which_n = np.unique(size, return_inverse=True)
    starts = np.zeros(len(values), dtype=np.intp)
    for index in range(1, len(values)):
        least = starts[index - 1]
        starts[index] = least if values[index] <= (1 + ALIKE) * values[least] else index
    return starts[which_n.ravel()]


def check_scales(known: Mapping[str, Array], differ: Mapping[str, Array]) -> None:
    """Raises InputError for a size in columns ``differ`` that moves the loss beside the ``known`` inputs."""
    for name, column in differ.items():
        if name in TUNED or not _differs(column) or not _tells(name, column, known):
            continue
        if empty := int(np.isnan(column).sum()):  # a plain model beside looped ones, or a value forgotten
            what = f"{name} is empty in {empty:,} of {text.plural(len(column), 'run')}"
            raise InputError(what, where="forecast", mend=f"fill it in, or keep one {name} with where")
        beside = text.listed(list(known))
        mend = f"give a value of {name} beside {beside}, or keep one {name} with where"
        if name in OTHERS:  # a plan takes none
            mend = f"keep one {name} with where; forecast and design take --input {name}= beside {beside} too"
        raise InputError(f"the runs differ in {name} too", where="forecast", mend=mend)


def _differs(column: Array) -> bool:
    """Whether a column holds several values, not one that is rounded; an empty cell is one beside others."""
    told = column[~np.isnan(column)]
    if len(told) < len(column):
        return len(told) > 0
    return bool(np.ptp(told) > ALIKE * np.abs(told).max())


def _tells(name: str, column: Array, known: Mapping[str, Array]) -> bool:
    """Whether what varies can move the loss of runs whose ``known`` inputs are the same."""
    if name in SIZES:  # of several inputs the FLOPs follow, or are another count of them
        (size, *more) = known.values()
        return not more and (name != "flops" or _differs(column / size))  # of one too, if the other is fixed
    if name == "unique_tokens":
        return "tokens" not in known or bool(np.any(known["tokens"] > ONE_EPOCH * column))
    return True


def tuned_doubts(known: Mapping[str, Array], differ: Mapping[str, Array]) -> list[Finding]:
    """Of a rate or a batch in ``differ`` that changes by no rule of the ``known`` sizes."""
    said = "changes from run to run and the forecast does not use it"
    return [
        _finding("tuned", f"{name} {said}", f"keep the best {name} of each size")
        for name in TUNED
        if name in differ and not _by_rule(differ[name], known)
    ]


def _finding(kind: str, message: str, mend: str) -> Finding:
    return {"kind": kind, "rows": [], "message": message, "mend": mend}


def _by_rule(column: Array, known: Mapping[str, Array]) -> bool:
    """Whether a rate falls with a size, or a batch grows, as a recipe has it; or whether it stands still."""
    told_n = ~np.isnan(column)
    column, told = column[told_n], [size[told_n] for size in known.values()]
    if not _differs(column):
        return True
    sizes = [*told, np.prod(told, axis=0)]
    steps = [np.diff(column[np.lexsort([column, size])]) for size in sizes]
    steps += [np.diff(column[np.lexsort([-column, size])]) for size in sizes]
    return any(np.all(step >= 0) or np.all(step <= 0) for step in steps)
