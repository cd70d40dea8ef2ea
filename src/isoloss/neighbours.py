"""The nearest points to each point."""

import numpy as np
import scipy
from numpy.typing import NDArray

_FEW = 1000


def nearest(x_nD: NDArray[np.floating], count: int) -> tuple[NDArray[np.floating], NDArray[np.integer]]:
    """Distances and indices (n, count) of the nearest points, nearest first: itself, or one at its place.

    All pairs where these are few, since a tree takes longer to import than to ask.
    """
    if len(x_nD) > _FEW:
        return scipy.spatial.KDTree(x_nD).query(x_nD, k=count)
    away_nn = np.sqrt(((x_nD[:, None] - x_nD) ** 2).sum(axis=2))
    index = np.argsort(away_nn, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(away_nn, index, axis=1), index
