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

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Weights:
    q_DC: np.ndarray
    k_DC: np.ndarray
    v_DC: np.ndarray
    o_CD: np.ndarray


@dataclass(frozen=True)
class Trace:
    x_TD: np.ndarray
    weights: Weights
    q_TC: np.ndarray
    k_SC: np.ndarray
    v_SC: np.ndarray
    score_TS: np.ndarray
    mask_TS: np.ndarray
    masked_TS: np.ndarray
    softmax_TS: np.ndarray
    weighted_TSC: np.ndarray
    mixed_TC: np.ndarray
    output_TD: np.ndarray


def trace_of(x_TD: np.ndarray, weights: Weights) -> Trace:
    q_TC, k_SC, v_SC = x_TD @ weights.q_DC, x_TD @ weights.k_DC, x_TD @ weights.v_DC
    T, C = q_TC.shape
    score_TS = q_TC @ k_SC.T / np.sqrt(C)
    mask_TS = np.where(np.tri(T, dtype=bool), 0.0, -np.inf)
    masked_TS = score_TS + mask_TS
    # exp(s - max) instead of exp(s): the same quotient, without overflow.
    power_TS = np.exp(masked_TS - masked_TS.max(1, keepdims=True))
    softmax_TS = power_TS / power_TS.sum(1, keepdims=True)
    weighted_TSC = softmax_TS[:, :, None] * v_SC[None]
    mixed_TC = weighted_TSC.sum(1)
    return Trace(
        x_TD,
        weights,
        q_TC,
        k_SC,
        v_SC,
        score_TS,
        mask_TS,
        masked_TS,
        softmax_TS,
        weighted_TSC,
        mixed_TC,
        mixed_TC @ weights.o_CD,
    )
