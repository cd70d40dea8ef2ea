"""Does a column of words tell losses apart that sizes do not, as an optimizer's name does?"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import fdtrc

from isoloss.laws import Array

_MOST_VALUES = 8
_FEWEST_RUNS = 3  # of each value
_SURE = 1e-4  # p of the F test: tables have dozens of columns
_LEAST_DF = 6


def label_gap(data: pl.DataFrame, inputs: Sequence[str], label: str) -> float:
    """By what share losses of the values of ``label`` differ at most, at equal ``inputs``; 0 if by none.

    An F test of the values beside a quadratic in the log inputs, for log losses. Values that follow one
    another along a size are not told from a bend of the law, and give 0.
    """
    known = data.drop_nulls([label, *inputs, "loss"]).filter(pl.len().over(label) >= _FEWEST_RUNS)
    if not 2 <= known[label].n_unique() <= _MOST_VALUES:
        return 0.0
    columns = known.select(*inputs, "loss").cast(pl.Float64, strict=False).to_numpy().T
    if not np.all(np.isfinite(columns) & (columns > 0)):
        return 0.0
    *sizes, y_n = np.log(columns)
    z_In = np.array([(size - size.mean()) / (np.ptp(size) or 1.0) for size in sizes])
    value_n = np.unique(known[label].to_numpy(), return_inverse=True)[1]
    if any(_in_turn(along, value_n) for along in (*z_In, np.sum(sizes, axis=0))):
        return 0.0
    products = [z_In[i] * z_In[j] for i in range(len(z_In)) for j in range(i + 1)]
    plain_nK = np.column_stack([np.ones_like(y_n), *z_In, *products])
    values_nV = np.equal.outer(value_n, np.arange(1, value_n.max() + 1)).astype(float)
    theta_K, rest, rank = _least_squares(np.hstack([plain_nK, values_nV]), y_n)
    _, rest_plain, rank_plain = _least_squares(plain_nK, y_n)
    df, more = len(y_n) - rank, rank - rank_plain
    if (
        df < _LEAST_DF
        or more < 1
        or fdtrc(more, df, (rest_plain - rest) / more / (rest / df or 1e-300)) > _SURE
    ):
        return 0.0
    return float(np.expm1(np.ptp(np.append(theta_K[plain_nK.shape[1] :], 0.0))))


def _in_turn(size_n: Array, value_n: NDArray[np.intp]) -> bool:
    """Whether each value has a stretch of the size to itself."""
    first, last = (
        np.array([end(size_n[value_n == value]) for value in np.unique(value_n)]) for end in (np.min, np.max)
    )
    order = np.argsort(first)
    return bool(np.all(last[order][:-1] <= first[order][1:]))


def _least_squares(design_nK: Array, y_n: Array) -> tuple[Array, float, int]:
    """Parameters, the sum of squared residuals, the rank."""
    theta_K, _, rank, _ = np.linalg.lstsq(design_nK, y_n, rcond=None)
    return theta_K, float(np.sum((y_n - design_nK @ theta_K) ** 2)), int(rank)
