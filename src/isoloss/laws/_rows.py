"""Rows at the door of a fit: checked numbers, merged repeats, clusters."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss.errors import InputError, Refusal
from isoloss.laws.forms import Array, Form


@dataclass(frozen=True)
class Points:
    """What enters the fit: inputs x_In, losses y_n, weights w_n of mean 1.

    ``group_n`` numbers what counts as independent: each point alone, or all points of one run.
    ``rows`` counts the rows behind them, ``clustered`` says that a cluster column was given; ``first_n`` is
    the first row of each.
    """

    x_In: Array
    y_n: Array
    w_n: Array
    group_n: NDArray[np.int64]
    rows: int
    clustered: bool
    first_n: NDArray[np.int64]

    @property
    def groups(self) -> int:
        return int(self.group_n.max(initial=-1)) + 1

    @property
    def dependent(self) -> bool:
        """Whether several points belong to one group."""
        return self.groups < len(self.y_n)


def numbers(name: str, values: ArrayLike) -> Array:
    """One finite or non-finite float a run. Raises InputError for anything else."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iufO":
            raise TypeError(f"they are {array.dtype}")
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} are not numbers ({error})", mend="give one number a run") from None
    if array.ndim != 1:
        raise InputError(f"{name} have {array.ndim} dimensions", mend="give one number a run")
    return array


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight: a column for each input, losses, weights of maximum 1, labels as text."""

    inputs: Mapping[str, Array]
    y_n: Array
    w_n: Array
    labels: NDArray[np.str_] | None

    @property
    def x_In(self) -> Array:
        return np.stack(list(self.inputs.values()))

    @property
    def grouped(self) -> bool:
        """Whether labels put rows together; a label of its own for each row keeps equal rows apart."""
        return self.labels is not None and len(np.unique(self.labels)) < len(self.labels)


def rows_of(
    law: Form,
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    weights: ArrayLike | None,
    cluster: ArrayLike | None,
    negative: bool,
) -> Rows:
    """Checked rows, in the order of the law's inputs. Raises InputError naming a row, Refusal for none."""
    law.check_inputs(inputs, "give one array for each input")
    columns = {name: numbers(name, inputs[name]) for name in law.inputs} | {"loss": numbers("loss", loss)}
    size = len(columns["loss"])
    w_n = np.ones(size) if weights is None else numbers("weights", weights)
    labels = None if cluster is None else np.asarray(cluster)
    for name, column in [*columns.items(), ("weights", w_n), ("cluster", w_n if labels is None else labels)]:
        if np.shape(column) != (size,):
            raise InputError(
                f"{name} has shape {np.shape(column)}, loss has {size} rows", mend="give one value a run"
            )
    _check_column("weights", w_n, np.isfinite(w_n) & (w_n >= 0), "", "weights are finite and not negative")
    used = w_n > 0
    for name, column in columns.items():
        above = column >= 0 if name in law.zeros else (column > 0) | (negative and name == "loss")
        mend = "; a normalised loss may be negative with allow_negative" if name == "loss" else ""
        _check_column(
            name,
            column,
            ~used | (np.isfinite(column) & above),
            ", not positive and finite",
            f"correct the row or leave it out{mend}",
        )
    if not used.any():
        raise Refusal("there are no runs", mend="give at least one more than the law has parameters")
    y_n = columns.pop("loss")[used]
    if not negative and np.log(y_n.max()) - np.log(y_n.min()) > np.log(1e6):
        raise InputError(
            "losses span more than a factor of a million", mend="put all losses in nats per token"
        )
    return Rows(
        {name: column[used] for name, column in columns.items()},
        y_n,
        w_n[used] / w_n[used].max(),
        None if labels is None else labels[used].astype(str),
    )


def _check_column(name: str, column: Array, good_n: NDArray[np.bool_], rule: str, mend: str) -> None:
    """Raises InputError for the first row that is not good."""
    if not good_n.all():
        row = int(np.argmin(good_n))
        raise InputError(f"{name} is {column[row]}{rule}", where=f"row {row + 1}", mend=mend)


def points_of(rows: Rows, logs: bool, labels: NDArray[np.str_] | None) -> Points:
    """Rows as points; ``logs`` says that the objective is on logs.

    Without labels a row repeated exactly is one point of its summed weight, since it tells nothing new. A
    cluster whose rows share their inputs (the seeds of one size) becomes its mean (of logs where the
    objective is on logs), weighted by its rows; one whose rows differ (the checkpoints of one run) keeps its
    rows, and counts once.
    """
    x_In, y_n, w_n, count = rows.x_In, rows.y_n, rows.w_n, len(rows.y_n)
    if labels is None:
        whole = np.concatenate([x_In, y_n[None]])
        _, first, group_n = np.unique(whole, axis=1, return_index=True, return_inverse=True)
        weight = np.bincount(group_n.ravel(), w_n)
        order = np.argsort(first)
        first, weight = first[order], weight[order]
        own_n = np.arange(len(first))
        return Points(x_In[:, first], y_n[first], weight / weight.mean(), own_n, count, False, first)
    _, first, group_n = np.unique(labels, return_index=True, return_inverse=True)
    if np.isclose(x_In, x_In[:, first[group_n]], rtol=1e-9, atol=0.0).all():
        weight = np.bincount(group_n, w_n)
        mean = np.bincount(group_n, w_n * (np.log(y_n) if logs else y_n)) / weight
        mean = np.exp(mean) if logs else mean
        return Points(x_In[:, first], mean, weight / weight.mean(), np.arange(len(first)), count, True, first)
    return Points(x_In, y_n, w_n / w_n.mean(), group_n, count, True, np.arange(count))


def designs(x_In: Array) -> NDArray[np.int64]:
    """The number of its set of inputs, per row."""
    return np.unique(x_In, axis=1, return_inverse=True)[1].ravel()
