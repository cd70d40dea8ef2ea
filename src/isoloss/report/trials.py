"""The law of a fit put to the test on its own rows: hidden largest runs, and methods without a law."""

import numpy as np

from isoloss.errors import InputError, Refusal
from isoloss.figures import backtest as backtest_figure
from isoloss.figures import isoflop as isoflop_figures
from isoloss.figures.figure import Figure
from isoloss.laws import Fit, FitStatus
from isoloss.plans.backtest import backtest
from isoloss.plans.methods import exponents_by_method


def hidden_runs(fit: Fit) -> Figure:
    """The fit's law on its own largest runs, hidden. Raises Refusal where that cannot be asked."""
    if fit.data is None or fit.status is FitStatus.PUBLISHED:
        raise Refusal("a published law brings no runs to hide", mend="fit it to runs")
    column = next((name for name in ("params", "tokens") if name in fit.form.inputs), fit.form.inputs[0])
    return _asked(
        lambda: backtest_figure.figure(
            backtest(
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
    )


def without_a_law(fit: Fit) -> list[Figure]:
    """IsoFLOP curves and the frontier by several methods, at C = 6 N D. Raises Refusal without budgets."""
    if fit.data is None or set(fit.form.inputs) != {"params", "tokens"}:
        raise Refusal("IsoFLOP curves need runs of params and tokens", mend="fit a law of both")
    N, D = (np.array(fit.data.inputs[name]) for name in ("params", "tokens"))
    return _asked(
        lambda: isoflop_figures.pictures(
            exponents_by_method(6 * N * D, N, np.array(fit.data.loss), tokens=D, level=fit.level)
        )
    )


def _asked(ask):
    """Rows that a law can take may still not be what a test of it can take: that is a refusal here."""
    try:
        return ask()
    except InputError as error:
        raise Refusal(error.what, where=error.where, mend=error.mend) from None
