"""Coefficients of a sum whose other parameters stand still: least squares with none below zero."""

import numpy as np

from isoloss.laws.forms.form import Array


def not_negative(terms_Kn: Array, target_n: Array) -> Array:
    """argmin |x terms - target|, x >= 0, by active sets (Lawson and Hanson 1974, chapter 23).

    As ``scipy.optimize.nnls``, on the K x K products: that package takes longer to import than a fit to find,
    and a start needs few digits.
    """
    gram_KK, shared_K = terms_Kn @ terms_Kn.T, terms_Kn @ target_n
    x_K, used_K = np.zeros(len(shared_K)), np.zeros(len(shared_K), dtype=bool)
    least = 1e-10 * float(np.abs(shared_K).max(initial=0.0))
    for _ in range(3 * len(x_K)):
        pull_K = np.where(used_K, -np.inf, shared_K - gram_KK @ x_K)
        if pull_K.max() <= least:
            break
        used_K[pull_K.argmax()] = True
        while True:
            new_K = np.zeros_like(x_K)
            new_K[used_K] = np.linalg.lstsq(gram_KK[np.ix_(used_K, used_K)], shared_K[used_K])[0]
            below_K = used_K & (new_K <= 0)
            if not below_K.any():
                break
            # As far as the first coefficient that reaches zero, which then leaves.
            share = float((x_K[below_K] / (x_K[below_K] - new_K[below_K])).min())
            x_K = x_K + share * (new_K - x_K)
            used_K &= x_K > 1e-14 * x_K.max(initial=0.0)
        x_K = new_K
    return x_K
