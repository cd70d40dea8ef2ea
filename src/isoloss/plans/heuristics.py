"""What papers print, to plan by or to hold a plan against: allocations, and the worth of repeated data.

Allocations are rules of thumb, not laws fitted to your data. Repeated data, Muennighoff et al. 2023, arXiv
2305.16264: with U unique tokens and D processed, R = D/U - 1 repetitions are worth as much as
D' = U + U R* (1 - exp(-R / R*)) unique tokens.
"""

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError
from isoloss.laws import Array
from isoloss.plans.cost import PF_DAY

R_STAR = 15.387756
"""R*_D fitted to 182 runs by the authors (their published results; 15.39 in the paper)."""

FREE_EPOCHS = 4.0
"""Up to here a repeated token is worth nearly as much as a new one: D'/D = 0.93."""


def effective_tokens(tokens: ArrayLike, unique_tokens: float, r_star: float = R_STAR) -> Array:
    """D', in tokens: D itself up to one epoch, then ever less, never above U (1 + R*).

    Raises InputError unless all are positive.
    """
    tokens_n = np.asarray(tokens, dtype=np.float64)
    if not (np.all(tokens_n > 0) and unique_tokens > 0 and r_star > 0):
        raise InputError("tokens, unique tokens and R* must be positive", mend="give counts of tokens")
    return repeated_worth(tokens_n, unique_tokens, r_star)


def repeated_worth(tokens_n: float | Array, unique_tokens: float, r_star: float) -> Array:
    """``effective_tokens`` of checked numbers; NaN stays NaN."""
    repetitions_n = np.maximum(tokens_n / unique_tokens - 1, 0.0)
    return np.minimum(tokens_n, unique_tokens) - unique_tokens * r_star * np.expm1(-repetitions_n / r_star)


def epoch_value(epochs: ArrayLike, r_star: float = R_STAR) -> Array:
    """D'/D, the worth of a token on average over so many epochs."""
    return effective_tokens(epochs, 1.0, r_star) / np.asarray(epochs, dtype=np.float64)


def kaplan(flops: float, *, critical_batch: bool = True) -> tuple[float, float]:
    """N and D of Kaplan et al. 2020, arXiv 2001.08361, Table 6: N = 1.3e9 (C_min / PF-day)^0.73, C = 6 N D.

    N without embeddings. At the critical batch size C_min = C / 2 (eq. 5.5), which is how Hoffmann et al.
    read the table; without ``critical_batch`` the batch is small and C_min = C.
    """
    least = flops / 2 if critical_batch else flops
    params = 1.3e9 * (least / PF_DAY) ** 0.73
    return params, flops / (6 * params)


def twenty_tokens(flops: float) -> tuple[float, float]:
    """N and D at 20 tokens a parameter and C = 6 N D: approaches 1 and 2 of Hoffmann et al. 2022."""
    params = (flops / 120) ** 0.5
    return params, 20 * params
