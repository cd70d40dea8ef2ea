"""Words and shares that tell losses apart where sizes do not, as an optimizer or a part of code may."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss.distributions import f_tail
from isoloss.laws import Array
from isoloss.sources.naming import is_share
from isoloss.sources.repeats import with_labels
from isoloss.sources.settings import ruled
from isoloss.sources.table import Runs, TableIssue

_MOST_VALUES = 8
_FEWEST_RUNS = 3  # of each value
_SURE = 1e-4  # p of the F test: tables have dozens of columns
_LEAST_DF = 6


def mixed_labels(
    runs: Runs, inputs: Sequence[str], run: pl.Series | None, said: Sequence[TableIssue]
) -> Iterator[TableIssue]:
    """Labels and shares that move the loss at equal ``inputs``, and that no issue in ``said`` names.

    ``run`` names the run of each row where some have several, of which the means count.
    """
    data = with_labels(runs, few=False)
    columns = data.select(*inputs, "loss").cast(pl.Float64, strict=False).to_numpy().T
    if not inputs or not np.all(np.isfinite(columns) & (columns > 0)):
        return
    numbers = [f"log {place}" for place in range(len(columns))]
    logs = pl.DataFrame(dict(zip(numbers, np.log(columns), strict=True)))
    labels = {name.removeprefix("label "): data[name] for name in data.columns if name.startswith("label ")}
    unread = runs.frame.select("row").join(runs.unread, on="row", how="left", maintain_order="left")
    shares = {name: unread[name].fill_nan(None) for name in unread.columns if is_share(name)}
    for name, values in {**labels, **shares}.items():
        if any(name in issue.message for issue in said):
            continue
        known = logs.with_columns(values.alias("value"), run=data["row"] if run is None else run)
        each = known.drop_nulls().group_by("run", "value", maintain_order=True).agg(pl.col(numbers).mean())
        gap_of, kind, kept = share_gap, "mixed-share", "a narrow range"
        if name in labels:
            gap_of, kind, kept = label_gap, "mixed-label", "one value"
        if gap := gap_of(each.select(numbers).to_numpy().T, each["value"].to_numpy()):
            text = f"{name} moves the loss by {100 * gap:.2g}% at equal sizes: one law over all its values"
            yield TableIssue(kind, "warn", (), text, f"keep {kept} with where")


def label_gap(logs: Array, labels: NDArray[np.object_]) -> float:
    """By what share the losses of ``labels`` differ at most, at equal inputs; 0 if by none.

    ``logs`` are of the inputs and, last, of the losses. Labels that follow one another along a size, a
    product or a ratio are not told from a bend of the law, and give 0.
    """
    values, value_n, count_V = np.unique(labels, return_inverse=True, return_counts=True)
    if not 2 <= len(values) <= _MOST_VALUES or count_V.min() < _FEWEST_RUNS:
        return 0.0
    size_In = logs[:-1]
    pairs = [one + sign * other for one, other in combinations(size_In, 2) for sign in (1, -1)]
    if any(_in_turn(along, value_n) for along in (*size_In, *pairs)):
        return 0.0
    return _moved(logs, np.equal.outer(value_n, np.arange(1, len(values))).astype(float))


def share_gap(logs: Array, share_n: Array) -> float:
    """By what share the losses at most differ along a quadratic in the ranks of ``share_n``; 0 if by none.

    Ranks, since one share far from all others would answer for the loss of one run. Else as ``label_gap``.
    """
    most = np.unique(share_n, return_counts=True)[1].max(initial=0)
    if len(share_n) - most < 2 * _FEWEST_RUNS or ruled(logs[:-1], share_n):
        return 0.0
    rank_n = pl.Series(share_n).rank().to_numpy() / len(share_n)
    return _moved(logs, np.column_stack([rank_n, rank_n**2]))


def _moved(logs: Array, more_nV: Array) -> float:
    """By what share ``more_nV`` move the losses at most, by an F test beside a quadratic in the inputs."""
    *size_In, y_n = logs
    z_In = [(size - size.mean()) / (np.ptp(size) or 1.0) for size in size_In]
    products = [z_In[i] * z_In[j] for i in range(len(z_In)) for j in range(i + 1)]
    plain_nK = np.column_stack([np.ones_like(y_n), *z_In, *products])
    theta_K, rest, rank = _least_squares(np.hstack([plain_nK, more_nV]), y_n)
    _, rest_plain, rank_plain = _least_squares(plain_nK, y_n)
    df, more = len(y_n) - rank, rank - rank_plain
    if df < _LEAST_DF or more < 1:
        return 0.0
    noise = max(rest / df, np.finfo(float).tiny)
    if f_tail(more, df, (rest_plain - rest) / more / noise) > _SURE:
        return 0.0
    return float(np.expm1(np.ptp(more_nV @ theta_K[plain_nK.shape[1] :])))


def _in_turn(size_n: Array, value_n: NDArray[np.intp]) -> bool:
    """Whether each value has a stretch of the size to itself."""
    parts = [size_n[value_n == value] for value in range(value_n.max() + 1)]
    parts.sort(key=lambda part: (part.min(), part.max()))
    return all(before.max() <= after.min() for before, after in pairwise(parts))


def _least_squares(design_nK: Array, y_n: Array) -> tuple[Array, float, int]:
    """Parameters, the sum of squared residuals, the rank."""
    theta_K, _, rank, _ = np.linalg.lstsq(design_nK, y_n, rcond=None)
    return theta_K, float(np.sum((y_n - design_nK @ theta_K) ** 2)), int(rank)
