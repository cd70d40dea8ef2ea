"""What anyone could predict without a law: the bar that a law has to clear."""

import numpy as np

from isoloss.laws import Array
from isoloss.plans.holdout import Holdout, rung_of


def baselines(names: tuple[str, ...], x_In: Array, y_n: Array, hidden: Holdout) -> dict[str, Array]:
    """Predicted losses of the hidden rows by each baseline, from the visible rows alone.

    "nearest run": the loss of the visible run nearest in log inputs, each measured by its visible range.
    "mean of the largest rung": of the visible rows, by the column held out.
    "two largest rungs", "frontier": a power law of that column through the best run of the two largest
    visible rungs, or of every visible rung. "power law in NAME": log loss linear in one log input, by least
    squares; "power law in all inputs": in all of them.
    """
    see_n, hide_n = ~hidden.mask_n, hidden.mask_n
    positive_I = np.all(x_In > 0, axis=1)  # a part of a model may be absent
    names = tuple(name for name, positive in zip(names, positive_I, strict=True) if positive)
    x_In = x_In[positive_I]
    z_In, target_v, order_n = np.log(x_In), np.log(y_n[see_n]), np.log(hidden.order_n)
    rung_v = rung_of(hidden.order_n[see_n])
    top = rung_v == rung_v.max()
    # The best run of each rung, lowest rung first.
    best = np.array(
        [np.flatnonzero(rung_v == r)[np.argmin(target_v[rung_v == r])] for r in np.unique(rung_v)]
    )
    out = {
        "nearest run": _nearest(z_In[:, see_n], target_v, z_In[:, hide_n]),
        "mean of the largest rung": np.full(int(hide_n.sum()), np.mean(target_v[top])),
    }
    if len(best) >= 2:
        ladder_v, ladder_h = order_n[see_n][None], order_n[hide_n][None]
        out["two largest rungs"] = _linear(ladder_v[:, best[-2:]], target_v[best[-2:]], ladder_h)
        out["frontier"] = _linear(ladder_v[:, best], target_v[best], ladder_h)
    for i, name in enumerate(names):
        if np.ptp(z_In[i, see_n]) > 0:
            out[f"power law in {name}"] = _linear(z_In[i : i + 1, see_n], target_v, z_In[i : i + 1, hide_n])
    if len(names) > 1 and np.linalg.matrix_rank(_design(z_In[:, see_n])) == len(names) + 1:
        out["power law in all inputs"] = _linear(z_In[:, see_n], target_v, z_In[:, hide_n])
    return {name: np.exp(log_h) for name, log_h in out.items()}


def _nearest(seen_Iv: Array, target_v: Array, hidden_Ih: Array) -> Array:
    width_I1 = np.ptp(seen_Iv, axis=1, keepdims=True)
    width_I1 = np.where(width_I1 > 0, width_I1, 1.0)
    seen_vI, hidden_hI = (seen_Iv / width_I1).T, (hidden_Ih / width_I1).T
    far_hv = (np.linalg.norm(seen_vI - hidden_I, axis=1) for hidden_I in hidden_hI)
    # What is equally near, such as the seeds of one point, counts alike: their mean.
    return np.array([target_v[far_v <= far_v.min() + 1e-9].mean() for far_v in far_hv])


def _design(z_In: Array) -> Array:
    return np.vstack([np.ones(z_In.shape[1]), z_In]).T


def _linear(seen_Iv: Array, target_v: Array, hidden_Ih: Array) -> Array:
    middle_I = seen_Iv.mean(axis=1, keepdims=True)
    slopes = np.linalg.lstsq(_design(seen_Iv - middle_I), target_v, rcond=None)[0]
    return _design(hidden_Ih - middle_I) @ slopes
