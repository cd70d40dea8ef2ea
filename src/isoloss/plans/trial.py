"""One form on trial: fitted to all runs, to what is visible of them, and for its information criterion."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import Refusal
from isoloss.laws import Array, Fit, Form, fit
from isoloss.plans.holdout import kept


@dataclass(frozen=True)
class Runs:
    x: Mapping[str, Array]
    y_n: Array
    weights: ArrayLike | None
    cluster: ArrayLike | None
    options: Mapping[str, Any]

    def fit(self, law: Form, see_n: np.ndarray | None = None, **options: Any) -> Fit:
        see_n = np.ones(len(self.y_n), dtype=bool) if see_n is None else see_n
        return fit(
            law,
            {name: self.x[name][see_n] for name in law.inputs},
            self.y_n[see_n],
            weights=kept("weights", self.weights, see_n),
            cluster=kept("cluster", self.cluster, see_n),
            **self.options | options,
        )

    def errors(
        self, law: Form, masks: Sequence[np.ndarray], group_n: np.ndarray, objective: str
    ) -> dict[int, float]:
        """Mean absolute relative error of each group that one of the masks hides."""
        out = {}
        for hide_n in masks:
            found = self.fit(law, ~hide_n, objective=objective, curve_only=True)
            predicted = found.predict(**{name: self.x[name][hide_n] for name in law.inputs}).loss
            error_h = np.abs(predicted / self.y_n[hide_n] - 1)
            group_h = group_n[hide_n]
            out |= {int(group): float(error_h[group_h == group].mean()) for group in np.unique(group_h)}
        return out


@dataclass(frozen=True)
class Trial:
    """What one form did; ``errors`` maps "largest" and "folds" to the mean error of each hidden group."""

    law: str
    fit: Fit | None
    refusal: str
    total: float | None
    criterion: float | None
    errors: Mapping[str, Mapping[int, float]]
    left_out: tuple[str, ...]


def tried(
    law: Form,
    data: Runs,
    by_design: Runs,
    masks: Mapping[str, Sequence[np.ndarray]],
    group_n: np.ndarray,
    objective: str,
) -> Trial:
    found, refusal, curve = None, "", None
    try:
        found = data.fit(law, objective=objective)
    except Refusal as why:
        refusal = why.what
    with suppress(Refusal):
        curve = by_design.fit(law, objective="squared-log", curve_only=True)
    errors, left_out = {}, []
    for part in masks if found is not None else ():
        try:
            errors[part] = data.errors(law, masks[part], group_n, objective)
        except Refusal as why:
            left_out.append(f"{part}: {why.what}")
    return Trial(
        law.name,
        found,
        refusal,
        None if curve is None else curve.objective.value,
        None if curve is None else aicc(curve),
        errors,
        tuple(left_out),
    )


def aicc(found: Fit) -> float | None:
    """None where the correction has no degrees of freedom left, or nothing is left over to explain."""
    n = len(found.residuals)
    k = n - found.df + 1
    if n - k - 1 < 1 or found.objective.value <= 0:
        return None
    return float(n * np.log(found.objective.value / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1))
