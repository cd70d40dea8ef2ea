"""One causal head, each step on its own, in NumPy at double precision.

    Q = X W_q    K = X W_k    V = X W_v               a row a word
    S = Q K^T / sqrt(C)                               scaled scores
    M_ts = 0 where s <= t, else -inf                  the causal mask: no word looks ahead
    A = softmax of each row of S + M                  each row sums to 1
    Z_tsc = A_ts V_sc                                 weighted values
    Y_tc = sum over s of Z_tsc                        mixed values
    O = Y W_o                                         what the head adds to the residual stream

Suffixes: T place that looks, S place looked at, D d_model, C head dimension.
"""

from collections.abc import Sequence

import numpy as np


def trace_of(x_TD: np.ndarray, weights: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Every matrix by name, in the order of the steps. ``weights``: W_q, W_k, W_v and W_o."""
    q_DC, k_DC, v_DC, o_CD = weights
    q_TC, k_SC, v_SC = x_TD @ q_DC, x_TD @ k_DC, x_TD @ v_DC
    T, C = q_TC.shape
    score_TS = q_TC @ k_SC.T / np.sqrt(C)
    mask_TS = np.where(np.tri(T, dtype=bool), 0.0, -np.inf)
    masked_TS = score_TS + mask_TS
    # exp(s - max) instead of exp(s): the same quotient, without overflow.
    power_TS = np.exp(masked_TS - masked_TS.max(1, keepdims=True))
    softmax_TS = power_TS / power_TS.sum(1, keepdims=True)
    weighted_TSC = softmax_TS[:, :, None] * v_SC[None]
    mixed_TC = weighted_TSC.sum(1)
    return {
        "X": x_TD,
        "W_q": q_DC,
        "W_k": k_DC,
        "W_v": v_DC,
        "Q": q_TC,
        "K": k_SC,
        "V": v_SC,
        "S": score_TS,
        "M": mask_TS,
        "S + M": masked_TS,
        "A": softmax_TS,
        **{f"Z {place}": weighted_SC for place, weighted_SC in enumerate(weighted_TSC, 1)},
        "Y": mixed_TC,
        "W_o": o_CD,
        "O": mixed_TC @ o_CD,
    }
