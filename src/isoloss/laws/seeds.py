"""Runs of equal inputs: the noise of a seed, and whether the law misses by more than that."""

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from isoloss.laws._solve import Optimum, Problem
from isoloss.laws.forms import Array


@dataclass(frozen=True)
class Seeds:
    """``sd``: pooled standard deviation of one run about its design's mean, with ``df`` degrees of freedom.

    On the scale of the residuals: losses for the squared objective, log losses otherwise. ``form_sd`` is the
    law's own error beside it, 0 where none is seen; ``p`` the chance of so large a lack of fit if the law
    were true (F test of the design means about the law against the seeds about their means).
    """

    sd: float
    df: int
    designs: int
    form_sd: float
    p: float


def lack_of_fit(problem: Problem, best: Optimum, x_In: Array, y_n: Array, w_n: Array) -> Seeds | None:
    """None where no two runs share their inputs, or too few designs do to judge the law."""
    # A row repeated exactly is one run.
    _, first = np.unique(np.concatenate([x_In, y_n[None]]), axis=1, return_index=True)
    x_In, y_n, w_n = x_In[:, first], y_n[first], w_n[first]
    design_In, place_n = np.unique(x_In, axis=1, return_inverse=True)
    place_n, count = place_n.ravel(), design_In.shape[1]
    df, lack = len(y_n) - count, count - len(best.phi)
    if df < 1 or lack < 1:
        return None
    logs = problem.objective != "squared"
    values = np.log(y_n) if logs else y_n
    weight = np.bincount(place_n, w_n)
    mean = np.bincount(place_n, w_n * values) / weight
    shape = problem.model
    with np.errstate(divide="ignore"):
        z_In = np.maximum(np.log(design_In) - shape.log_scale_I[:, None], -700.0)
    fitted = np.exp(shape.log_loss_scale) * shape.form.value(shape.theta(best.phi), z_In)
    fitted = np.log(np.maximum(fitted, 1e-300)) if logs else fitted
    pure = float(np.sum(w_n * (values - mean[place_n]) ** 2)) / df
    lacking = float(np.sum(weight * (mean - fitted) ** 2)) / lack
    if pure <= 0:
        return None
    return Seeds(
        sd=float(np.sqrt(pure / np.mean(w_n))),
        df=df,
        designs=count,
        form_sd=float(np.sqrt(max(lacking - pure, 0.0) / np.mean(weight))),
        p=float(fdtrc(lack, df, lacking / pure)),
    )
