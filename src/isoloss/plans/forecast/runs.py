"""Runs as a forecast takes them: logs about their middles, in an order of their own, each row once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.laws import Array, FitData, input_word, rise_together
from isoloss.sources.sweeps import ALIKE

LEAST_DESIGNS = 8
LEAST_RANGE = 1.5
MOST_RUNS = 150
_ROUNDING = 1e-9  # of logs
_SURE = 4.0


@dataclass(frozen=True)
class LogRuns:
    """Log inputs ``z_In`` and log losses ``y_n``, about ``middle_I`` and ``middle_loss``; rows of one
    ``label_n`` share noise, such as the checkpoints of one run. ``given``: different rows, used or not."""

    names: tuple[str, ...]
    z_In: Array
    y_n: Array
    label_n: NDArray[np.int64]
    middle_I: Array
    middle_loss: float
    given: int

    def take(self, keep_n: NDArray[np.bool_]) -> "LogRuns":
        return replace(self, z_In=self.z_In[:, keep_n], y_n=self.y_n[keep_n], label_n=self.label_n[keep_n])

    def data(self) -> FitData:
        """The rows in their own units."""
        inputs = np.exp(self.z_In + self.middle_I[:, None]).tolist()
        alone = len(np.unique(self.label_n)) == len(self.label_n)
        return FitData(
            {name: tuple(column) for name, column in zip(self.names, inputs, strict=True)},
            tuple(np.exp(self.y_n + self.middle_loss).tolist()),
            (1.0,) * len(self.y_n),
            None if alone else tuple(map(str, self.label_n.tolist())),
        )

    def check(self) -> None:
        """Raises Refusal where not even a forecast can be given."""
        designs = len(np.unique(np.round(self.z_In / ALIKE), axis=1).T)
        if designs < LEAST_DESIGNS:
            inputs = text.listed([input_word(name) for name in self.names])
            raise Refusal(
                f"{text.plural(designs, 'different set')} of {inputs}: too few for a forecast",
                mend=f"add runs until there are {LEAST_DESIGNS}",
            )
        for name, span in zip(self.names, np.ptp(self.z_In, axis=1), strict=True):
            if span < np.log(LEAST_RANGE):
                rest = [other for other in self.names if other != name]
                alone = f"forecast by {text.listed(rest)} alone, or " if rest and span < ALIKE else ""
                spans = f"{input_word(name)} spans a factor of {np.exp(span):.3g}"
                raise Refusal(
                    f"{spans}: the runs do not tell what it does",
                    mend=f"{alone}add runs until its largest is {LEAST_RANGE} times its smallest",
                )

    @property
    def on_one_line(self) -> list[str]:
        """Inputs that rise together with another one, so that what either does is not told."""
        return rise_together(self.names, self.z_In)

    def rising(self) -> list[str]:
        """Inputs that the loss rises with, at the others' values, beyond doubt (t > ``_SURE``)."""
        X_nK = np.vstack([np.ones_like(self.y_n), self.z_In]).T
        df = len(self.y_n) - X_nK.shape[1]
        if df < 1 or np.linalg.cond(X_nK) > 1 / _ROUNDING:
            return []
        slope_K, *_ = np.linalg.lstsq(X_nK, self.y_n, rcond=None)
        variance = np.sum((self.y_n - X_nK @ slope_K) ** 2) / df
        se_K = np.sqrt(variance * np.diag(np.linalg.inv(X_nK.T @ X_nK)))
        t_I = slope_K[1:] / np.maximum(se_K[1:], _ROUNDING)
        return [name for name, t in zip(self.names, t_I, strict=True) if t > _SURE]

    def outside(self, at_Iq: Array) -> Array:
        """By how much each input, and last their product, lies outside the runs, in logs; 0 inside."""
        sizes_Sn, sizes_Sq = with_product(self.z_In), with_product(at_Iq)
        low_S, high_S = sizes_Sn.min(axis=1, keepdims=True), sizes_Sn.max(axis=1, keepdims=True)
        away_Sq = np.maximum(np.maximum(sizes_Sq - high_S, low_S - sizes_Sq), 0.0)
        return np.where(away_Sq < ALIKE, 0.0, away_Sq)  # neither rounding nor a like size is a distance

    @property
    def outside_names(self) -> tuple[str, ...]:
        """Of the rows of ``outside``: the inputs, and their product: compute where it is N D or N D r."""
        if len(self.names) == 1:
            return self.names
        sizes = {"params", "tokens"}
        return (*self.names, "flops" if sizes <= set(self.names) <= sizes | {"recurrence"} else "product")


def with_product(z_In: Array) -> Array:
    """The inputs and, where there are several, their product: the compute of N and D."""
    return np.vstack([z_In, z_In.sum(axis=0)]) if len(z_In) > 1 else z_In


def log_runs(inputs: Mapping[str, ArrayLike], loss: ArrayLike, cluster: ArrayLike | None = None) -> LogRuns:
    """Sorted, an exact repeat once; of more than ``MOST_RUNS`` rows a part that is always the same.

    That part holds the ends of each size, and of the rest a random choice.

    Raises InputError for what is not one positive finite number a run, naming the row.
    """
    logs_In = log_columns({**inputs, "loss": loss})
    labels = np.zeros(logs_In.shape[1]) if cluster is None else _codes(cluster, logs_In.shape[1])
    rows = np.unique(np.vstack([logs_In, labels]), axis=1)
    given = rows.shape[1]
    if given > MOST_RUNS:
        random = np.random.default_rng(0).permutation(given)
        rows = rows[:, sorted(list(dict.fromkeys([*_ends(rows[:-2]), *random.tolist()]))[:MOST_RUNS])]
    middles = (rows.min(axis=1) + rows.max(axis=1)) / 2
    label_n = np.arange(rows.shape[1]) if cluster is None else rows[-1].astype(np.int64)
    about = rows - middles[:, None]
    return LogRuns(tuple(inputs), about[:-2], about[-2], label_n, middles[:-2], float(middles[-2]), given)


def _ends(z_In: Array) -> list[int]:
    """One run at either end of each input and of their product; of several the first."""
    sizes = [sign * size_n for size_n in with_product(z_In) for sign in (-1, 1)]
    return [int(np.flatnonzero(size_n > size_n.max() - _ROUNDING)[0]) for size_n in sizes]


def no_sizes() -> InputError:
    """For questions of no new run."""
    return InputError("no sizes are asked for", mend="give one value or more of each input")


def log_columns(columns: Mapping[str, ArrayLike]) -> Array:
    """Logs of equally long columns of positive numbers. Raises InputError naming the row.

    Unique tokens are those of the run: of a larger corpus it saw no more than its tokens.
    """
    logs: list[Array] = []
    for name, values in columns.items():
        try:
            column = np.atleast_1d(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan))
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} is not numbers ({error})", mend="give counts, such as 7e9") from None
        if column.ndim != 1 or (logs and len(column) != len(logs[0])):
            first = f" for {len(logs[0])} of {next(iter(columns))}" if logs else ""
            rest = first if column.ndim == 1 else f" in {column.ndim} axes"
            what = f"{text.plural(column.size, 'value')} of {name}{rest}"
            raise InputError(what, mend="give columns of one length")
        good = np.isfinite(column) & (column > 0)
        if not good.all():
            row = int(np.argmin(good))
            what = f"{name} is {column[row]}, not positive and finite"
            raise InputError(what, where=f"row {row + 1}", mend="correct it or leave it out")
        logs.append(np.log(column))
    names, out = list(columns), np.stack(logs)
    if {"tokens", "unique_tokens"} <= set(names):
        unique = names.index("unique_tokens")
        out[unique] = np.minimum(out[unique], out[names.index("tokens")])
    return out


def _codes(cluster: ArrayLike, size: int) -> Array:
    labels = np.asarray(cluster)
    if labels.shape != (size,):
        raise InputError(f"cluster has shape {labels.shape}", mend="give one label a run")
    return np.unique(labels.astype(str), return_inverse=True)[1].astype(np.float64)
