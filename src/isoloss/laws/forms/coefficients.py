"""Coefficients of sums whose other parameters stand still: least squares with none below zero."""

from itertools import product

import numpy as np

from isoloss.laws.forms.form import Array


def not_negative(terms_GKn: Array, target_Gn: Array) -> Array:
    """argmin |x terms - target|, x >= 0, for G sums of K terms at once, (G, K).

    The optimum is the best of the least squares over some of the terms, the others 0, that have none below
    zero: K is small, so all are tried.
    """
    length_GK = np.maximum(np.linalg.norm(terms_GKn, axis=2), 1e-300)
    terms_GKn = terms_GKn / length_GK[..., None]
    gram_GKK = terms_GKn @ np.swapaxes(terms_GKn, 1, 2)
    shared_GK = np.einsum("gkn,...gn->gk", terms_GKn, np.broadcast_to(target_Gn, terms_GKn[:, 0].shape))
    best_GK, gain_G = np.zeros_like(shared_GK), np.zeros(len(shared_GK))
    for some in product((False, True), repeat=shared_GK.shape[1]):
        used = np.flatnonzero(some)
        if not len(used):
            continue
        # Terms that are all but the same share what both explain.
        inner_Gkk = gram_GKK[:, used[:, None], used] + 1e-12 * np.eye(len(used))
        x_Gk = np.linalg.solve(inner_Gkk, shared_GK[:, used, None])[..., 0]
        explained_G = np.einsum("gk,gk->g", x_Gk, shared_GK[:, used])
        better_G = (x_Gk >= 0).all(axis=1) & (explained_G > gain_G)
        gain_G = np.where(better_G, explained_G, gain_G)
        new_GK = np.zeros_like(best_GK)
        new_GK[:, used] = x_Gk
        best_GK = np.where(better_G[:, None], new_GK, best_GK)
    return best_GK / length_GK
