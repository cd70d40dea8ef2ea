"""The law of a fit put to the test on its own rows: hidden largest runs, and methods without a law."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit, FitStatus
from isoloss.plans.backtest import Backtest, backtest
from isoloss.plans.methods import ExponentsByMethod, exponents_by_method

T = TypeVar("T")


def hidden_runs(fit: Fit) -> Backtest:
    """The fit's law on its own largest runs, hidden. Raises Refusal where that cannot be asked."""
    if fit.data is None or fit.status is FitStatus.PUBLISHED:
        raise Refusal("a published law brings no runs to hide", mend="fit it to runs")
    column = next((name for name in ("params", "tokens") if name in fit.form.inputs), fit.form.inputs[0])
    return _refusing(
        lambda: backtest(
            fit.law,
            {name: np.array(values) for name, values in fit.data.inputs.items()},
            np.array(fit.data.loss),
            holdout=f"largest-{column}",
            weights=np.array(fit.data.weights),
            cluster=None if fit.data.cluster is None else np.array(fit.data.cluster),
            level=fit.level,
            objective=fit.objective.name,
            delta=fit.objective.delta or 1e-3,
            fixed=fit.fixed,
            tied=fit.tied,
        )
    )


def without_a_law(fit: Fit) -> ExponentsByMethod:
    """The best size over compute by several methods, at C = 6 N D. Raises Refusal without budgets."""
    if fit.data is None or set(fit.form.inputs) != {"params", "tokens"}:
        raise Refusal("IsoFLOP curves need runs of params and tokens", mend="fit a law of both")
    N, D = (np.array(fit.data.inputs[name]) for name in ("params", "tokens"))
    loss, level = np.array(fit.data.loss), fit.level
    return _refusing(lambda: exponents_by_method(6 * N * D, N, loss, tokens=D, level=level))


def _refusing(measure: Callable[[], T]) -> T:
    """Rows that a law can take may still not be what a test of it can take: that is a refusal here."""
    try:
        return measure()
    except InputError as error:
        raise Refusal(error.what, where=error.where, mend=error.mend) from None
