"""Which runs to hide: the top rungs of a column, or a mask; and what counts as one point.

A rung holds the runs whose values of that column are equal to within 5%, as the sizes of a grid are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.laws import Array, Fit, Form, input_word, rows_of
from isoloss.sources.fitting import fit_rows

Mask = NDArray[np.bool_]

_SAME_RUNG = 1.05


@dataclass(frozen=True)
class Holdout:
    """``mask_n`` is true for hidden rows; ``rule`` says in words what is hidden.

    ``order_n`` is the column whose rungs the baselines climb, ``scale_n`` the column called ``scale`` that
    figures put on their axis.
    """

    mask_n: Mask
    rule: str
    order_n: Array
    scale: str
    scale_n: Array


def columns_of(law: Form, inputs: Mapping[str, ArrayLike], loss: ArrayLike) -> tuple[Array, Array]:
    """The law's inputs, shape (I, n), and the losses. Raises InputError naming the row and column."""
    if missing := [name for name in law.inputs if name not in inputs]:
        raise InputError(f"the law also takes {', '.join(missing)}", where=law.name, mend="name its column")
    rows = rows_of(law, {name: inputs[name] for name in law.inputs}, loss, None, None, negative=False)
    return rows.x_In, rows.y_n


def rung_of(values_n: Array) -> np.ndarray:
    """Rung of each value, 0 the lowest; a rung holds what lies within 5% below its largest value."""
    rung_n = np.zeros(len(values_n), dtype=int)
    left_n, rung = np.ones(len(values_n), dtype=bool), 0
    while left_n.any():
        top_n = left_n & (values_n * _SAME_RUNG >= values_n[left_n].max())
        rung_n[top_n], left_n, rung = rung, left_n & ~top_n, rung + 1
    return rung - 1 - rung_n


def hide(
    names: tuple[str, ...],
    x_In: Array,
    holdout: str | ArrayLike,
    *,
    share: float = 0.15,
    rungs: int | None = None,
    flops: ArrayLike | None = None,
) -> Holdout:
    """The runs to hide: the fewest top rungs that take ``share`` of the range, or as many as ``rungs`` says.

    Raises InputError for an unknown column, a share or a number of rungs that cannot be, or a mask that hides
    nothing or all; Refusal where no rung would stay visible.
    """
    flops_n = _flops(names, x_In, flops)
    if not isinstance(holdout, str):
        return _masked(names, x_In, holdout, flops_n)
    if not 0.0 < share < 1.0:
        raise InputError(f"share is {share}", mend="give a share of the column's range between 0 and 1")
    column, values_n = _column(names, x_In, holdout, flops_n)
    word = input_word(column)
    rung_n = rung_of(values_n)
    count = int(rung_n.max()) + 1
    if count < 2:
        raise Refusal(
            f"all runs lie on one rung of {word}",
            mend="hold out another column, or give a mask",
        )
    if rungs is not None and not 1 <= rungs < count:
        raise InputError(
            f"rungs is {rungs}", where=holdout, mend=f"there are {count} rungs: hide 1 to {count - 1}"
        )
    if rungs is None:
        tops = np.log([values_n[rung_n == rung].max() for rung in range(count)])
        enough = tops[-1] - tops >= share * np.log(values_n.max() / values_n.min())
        if not enough.any():
            raise Refusal(f"no rung of {word} is left visible", mend="give a smaller share, or rungs=1")
        rungs = count - 1 - int(np.flatnonzero(enough)[-1])
    mask_n = rung_n >= count - rungs
    least = (text.power if column == "flops" else text.count)(values_n[mask_n].min())
    rule = (
        f"the top {rungs} of {count} rungs of {word} hidden ({word} ≥ {least}; "
        f"{int(mask_n.sum())} of {len(mask_n)} runs)"
    )
    scale, scale_n = (column, values_n) if flops_n is None else ("flops", flops_n)
    return Holdout(mask_n, rule, values_n, scale, scale_n)


def points_of(x_In: Array, cluster: ArrayLike | None) -> np.ndarray:
    """A number for each row: rows of one cluster, or of the same inputs, are one point."""
    if cluster is None:
        return np.unique(x_In, axis=1, return_inverse=True)[1].ravel()
    labels = np.asarray(cluster)
    if labels.shape != x_In.shape[1:]:
        raise InputError(f"cluster has shape {labels.shape}", mend="give one label a run")
    return np.unique(labels.astype(str), return_inverse=True)[1]


@dataclass(frozen=True)
class RunData:
    """Runs to fit, whole or in part: a column for each input, losses, and what else goes to ``fit_rows``."""

    x: Mapping[str, Array]
    y_n: Array
    weights: ArrayLike | None
    cluster: ArrayLike | None
    options: Mapping[str, Any]

    def fit(self, law: Form, see_n: Mask | None = None, **options: Any) -> Fit:
        """``law`` fitted to the rows of ``see_n``, by default all. Raises as ``fit_rows`` does."""
        see_n = np.ones(len(self.y_n), dtype=bool) if see_n is None else see_n
        return fit_rows(
            law,
            {name: self.x[name][see_n] for name in law.inputs},
            self.y_n[see_n],
            weights=_subset("weights", self.weights, see_n),
            cluster=_subset("cluster", self.cluster, see_n),
            **{**self.options, **options},
        )


def _subset(name: str, values: ArrayLike | None, keep_n: Mask) -> NDArray[Any] | None:
    """The rows of a column that are kept; None stays None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != keep_n.shape:
        raise InputError(f"{name} has shape {array.shape}", mend="give one value a run")
    return array[keep_n]


def flops_6nd(x: Mapping[str, Array]) -> Array | None:
    """6 x executed parameters x tokens, a loop counted at each pass; None where the inputs do not say."""
    if "params_recurrent" in x and "tokens" in x:
        return 6.0 * (x["params_once"] + x["recurrence"] * x["params_recurrent"]) * x["tokens"]
    if "params" in x and "tokens" in x:
        return 6.0 * x["params"] * x["tokens"] * x.get("recurrence", 1.0)
    return None


def _flops(names: tuple[str, ...], x_In: Array, given: ArrayLike | None) -> Array | None:
    if given is None:
        return flops_6nd(dict(zip(names, x_In, strict=True)))
    column = np.asarray(given, dtype=np.float64)
    if column.shape != x_In.shape[1:] or not np.all(np.isfinite(column) & (column > 0)):
        raise InputError("flops are not one positive number a run", mend="correct them or leave them out")
    return column


def _column(names: tuple[str, ...], x_In: Array, holdout: str, flops_n: Array | None) -> tuple[str, Array]:
    columns = dict(zip(names, x_In, strict=True)) | ({} if flops_n is None else {"flops": flops_n})
    name = holdout.removeprefix("largest-")
    if not holdout.startswith("largest-") or name not in columns:
        raise InputError(
            f"holdout is {holdout!r}", mend=f"choose {', '.join(f'largest-{n}' for n in columns)}, or a mask"
        )
    if not np.all(columns[name] > 0):
        raise InputError(f"{name} holds zeros, so it has no rungs", mend="hold out another column")
    return name, columns[name]


def _masked(names: tuple[str, ...], x_In: Array, holdout: ArrayLike, flops_n: Array | None) -> Holdout:
    mask_n = np.asarray(holdout)
    if mask_n.dtype != bool or mask_n.shape != x_In.shape[1:]:
        raise InputError(
            f"the mask has shape {mask_n.shape} of {mask_n.dtype}", mend="give one true or false a run"
        )
    if mask_n.all() or not mask_n.any():
        raise InputError("the mask hides all runs or none", mend="hide some and leave some")
    scale, scale_n = (names[0], x_In[0]) if flops_n is None else ("flops", flops_n)
    rule = f"a chosen set hidden ({int(mask_n.sum())} of {len(mask_n)} runs)"
    return Holdout(mask_n, rule, scale_n, scale, scale_n)
