"""One form of a comparison: fitted to all runs, to visible ones, and for its information criterion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoloss.errors import Refusal, attempt
from isoloss.laws import Fit, Form
from isoloss.plans.holdout import Mask, RunData


@dataclass(frozen=True)
class Splits:
    """What is hidden in turn: under "largest" and "folds" the masks of hidden rows; the group of each row."""

    masks: Mapping[str, Sequence[Mask]]
    group_n: NDArray[np.intp]

    def errors(self, name: str, law: Form, data: RunData) -> dict[int, float]:
        """Mean absolute relative error of each group that one of the masks of ``name`` hides."""
        errors: dict[int, float] = {}
        for hide_n in self.masks[name]:
            visible = data.fit(law, ~hide_n, curve_only=True)
            predicted = visible.predict(level=None, **{x: data.x[x][hide_n] for x in law.inputs}).loss
            error_h = np.abs(predicted / data.y_n[hide_n] - 1)
            group_h = self.group_n[hide_n]
            errors |= {int(group): float(error_h[group_h == group].mean()) for group in np.unique(group_h)}
        return errors


@dataclass(frozen=True)
class CandidateFit:
    """What one form did; ``errors`` maps "largest" and "folds" to the mean error of each hidden group."""

    law: str
    fit: Fit | None
    refusal: str
    total: float | None
    criterion: float | None
    errors: Mapping[str, Mapping[int, float]]
    left_out: tuple[str, ...]


def fit_candidate(law: Form, data: RunData, by_design: RunData, splits: Splits) -> CandidateFit:
    """``by_design`` holds the same runs, clustered by equal inputs: AICc counts those."""
    fit = attempt(data.fit, law)
    curve = attempt(by_design.fit, law, objective="squared-log", curve_only=True)
    outcomes: dict[str, dict[int, float] | Refusal] = {}
    if isinstance(fit, Fit):
        outcomes = {name: attempt(splits.errors, name, law, data) for name in splits.masks}
    return CandidateFit(
        law=law.name,
        fit=None if isinstance(fit, Refusal) else fit,
        refusal=fit.what if isinstance(fit, Refusal) else "",
        total=None if isinstance(curve, Refusal) else curve.objective.value,
        criterion=None if isinstance(curve, Refusal) else aicc(curve),
        errors={name: out for name, out in outcomes.items() if not isinstance(out, Refusal)},
        left_out=tuple(f"{name}: {out.what}" for name, out in outcomes.items() if isinstance(out, Refusal)),
    )


def aicc(fit: Fit) -> float | None:
    """None where the correction has no degrees of freedom left, or nothing is left over to explain."""
    n, rss = len(fit.residuals), fit.objective.value
    k = n - fit.df + 1
    if n - k - 1 < 1 or rss is None or rss <= 0:
        return None
    return float(n * np.log(rss / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1))
