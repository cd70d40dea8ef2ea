"""Repeated data: what a token is worth when it has been seen before.

Muennighoff et al. 2023, arXiv 2305.16264: with U unique tokens and D processed, R = D/U - 1 repetitions are
worth as much as D' = U + U R* (1 - exp(-R / R*)) unique tokens.
"""

import numpy as np
from numpy.typing import NDArray

from isoloss.errors import InputError

Array = NDArray[np.float64]

R_STAR = 15.387756
"""R*_D fitted to 182 runs by the authors (their published results; 15.39 in the paper)."""

FREE_EPOCHS = 4.0
"""Up to here a repeated token is worth nearly as much as a new one: D'/D = 0.93."""


def effective_tokens(tokens: float | Array, unique_tokens: float, r_star: float = R_STAR) -> Array:
    """D', in tokens: D itself up to one epoch, then ever less, never above U (1 + R*).

    Raises InputError unless all are positive.
    """
    tokens_n = np.asarray(tokens, dtype=np.float64)
    if not (np.all(tokens_n > 0) and unique_tokens > 0 and r_star > 0):
        raise InputError("tokens, unique tokens and R* must be positive", mend="give counts of tokens")
    return worth(tokens_n, unique_tokens, r_star)


def worth(tokens_n: Array, unique_tokens: float, r_star: float) -> Array:
    """``effective_tokens`` of checked numbers; NaN stays NaN."""
    repetitions_n = np.maximum(tokens_n / unique_tokens - 1, 0.0)
    return np.minimum(tokens_n, unique_tokens) - unique_tokens * r_star * np.expm1(-repetitions_n / r_star)


def epoch_value(epochs: float | Array, r_star: float = R_STAR) -> Array:
    """D'/D, the worth of a token on average over so many epochs."""
    return effective_tokens(epochs, 1.0, r_star) / np.asarray(epochs, dtype=np.float64)
