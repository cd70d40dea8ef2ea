"""The loss over parameters and tokens of one law and of its draws, all at once.

Row 0 is the law as fitted, the other rows are draws from its uncertainty. Every question that a plan asks is
asked of all rows together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoloss.errors import InputError
from isoloss.laws import ZERO, Array, Fit, Form
from isoloss.plans.fixed_inputs import FixedInputs, Values, check_fixed_inputs, law_inputs

Rows = NDArray[np.intp]

LARGEST_LOG = float(np.log(1e30))
"""Nobody trains 1e30 parameters or tokens: a loss not reached there counts as out of reach."""

LEAST_DRAWS = 100


@dataclass(frozen=True)
class PowerTerms:
    """L = E + (A / N^alpha + B / D^beta)^g, each an array over rows: the optimum has a closed form."""

    E: Array
    A: Array
    alpha: Array
    B: Array
    beta: Array
    g: Array


@dataclass(frozen=True)
class LossSurface:
    """``losses`` of equally long arrays of rows, log N and log D, whatever stands behind them.

    ``broken_S`` marks draws that exceed the range of floats; ``terms`` are those of a power sum of N and D.
    """

    losses: Callable[[Rows, Array, Array], Array]
    broken_S: NDArray[np.bool_]
    terms: PowerTerms | None = None

    @property
    def rows(self) -> Rows:
        return np.arange(len(self.broken_S))

    def loss(self, rows: Rows | int, log_n: Values, log_d: Values) -> Array:
        """Losses of ``rows`` at their own N and D; the three broadcast."""
        rows, log_n, log_d = np.broadcast_arrays(rows, log_n, log_d)
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            return self.losses(rows, log_n, log_d)

    def log_tokens(self, rows: Rows | int, log_n: Values, loss: Values, most: float = LARGEST_LOG) -> Array:
        """The log tokens at which ``rows`` reach ``loss``: 0 if one does, NaN if exp(most) do not."""
        return _reach(lambda log_d, rows, log_n: self.loss(rows, log_n, log_d), rows, log_n, loss, most)

    def log_params(self, rows: Rows | int, log_d: Values, loss: Values) -> Array:
        """The log parameters at which ``rows`` reach ``loss``: 0 if one does, NaN if none do."""
        return _reach(
            lambda log_n, rows, log_d: self.loss(rows, log_n, log_d), rows, log_d, loss, LARGEST_LOG
        )


def law_surface(
    law: Form, fixed: FixedInputs, params_S: Mapping[str, Array], broken_S: NDArray[np.bool_]
) -> LossSurface:
    """Of ``law`` with ``params_S``, its parameters as arrays over rows."""

    def losses(rows: Rows, log_n: Array, log_d: Array) -> Array:
        params = {name: values_S[rows] for name, values_S in params_S.items()}
        return law.loss(params, law_inputs(law, fixed, np.exp(log_n), np.exp(log_d)))

    return LossSurface(losses, broken_S, _terms(law, fixed, params_S))


def _terms(law: Form, fixed: FixedInputs, p: Mapping[str, Array]) -> PowerTerms | None:
    """The law as a power sum of N and D, if it is one and no token repeats."""
    if np.isfinite(fixed.unique_tokens):
        return None
    if law.name in ("chinchilla", "outer-exponent"):
        g = p["gamma"] if law.name == "outer-exponent" else np.ones_like(p["E"])
        return PowerTerms(p["E"], p["A"], p["alpha"], p["B"], p["beta"], g)
    if law.name == "kaplan-nd":
        ratio = p["aN"] / p["aD"]
        zeros, ones = np.zeros_like(ratio), np.ones_like(ratio)
        return PowerTerms(zeros, p["Nc"] ** ratio, ratio, p["Dc"], ones, p["aD"])
    if law.name == "loop-equivalence":
        # N_eff = N (1 - s + s r^phi): the split only changes the amplitude.
        share = fixed.looped_share
        factor = (1 - share + share * fixed.loops ** p["phi"]) ** -p["alpha"]
        return PowerTerms(p["E"], factor * p["A"], p["alpha"], p["B"], p["beta"], np.ones_like(p["E"]))
    return None


def loss_surface(fit: Fit, fixed: FixedInputs, draws: int, seed: int) -> LossSurface:
    """The fit's own parameters as row 0, then so many draws, none where the fit knows no uncertainty.

    Raises InputError for a law or a setting that no plan can be made with.
    """
    if not LEAST_DRAWS <= draws <= 1_000_000:
        raise InputError(f"draws is {draws}", mend=f"give {LEAST_DRAWS} to a million")
    law = fit.form
    check_fixed_inputs(law, fixed)
    theta_Sp = np.empty((0, len(fit.theta)))
    if fit.covariance is not None or fit.bootstrap is not None:
        theta_Sp = fit.draws(draws, np.random.default_rng(seed))
    params_S = {
        name: np.append(fit.params[name], values) for name, values in plain_params(fit, theta_Sp).items()
    }
    broken_S = ~np.all([np.isfinite(values) for values in params_S.values()], axis=0)
    # A broken draw computes as the fit itself and is taken out again at the end.
    params_S = {name: np.where(broken_S, values[0], values) for name, values in params_S.items()}
    return law_surface(law, fixed, params_S, broken_S)


def plain_params(fit: Fit, theta_Sp: Array) -> dict[str, Array]:
    """Plain parameters of S draws, each an array over draws; infinite where they exceed every float."""
    law = fit.form
    log_scale_I = np.log([fit.units.inputs[name] for name in law.inputs])
    kappa_Sp = law.unscale(np.asarray(theta_Sp), log_scale_I, float(np.log(fit.units.loss)))
    with np.errstate(over="ignore"):
        positive_Sp = np.where(kappa_Sp > ZERO, np.exp(kappa_Sp), 0.0)
    params_S = {
        name: kappa_Sp[:, i] if name in law.signed else positive_Sp[:, i]
        for i, name in enumerate(law.parameters)
    }
    # Held parameters come as they are: their logarithm may be that of 0.
    return params_S | {name: np.full(len(theta_Sp), fit.params[name]) for name in fit.fixed}


def _reach(
    loss: Callable[[Array, Rows, Array], Array], rows: Rows | int, other: Values, target: Values, most: float
) -> Array:
    """The point of [0, most] where a falling loss meets ``target``, elementwise."""
    rows, other, target = np.broadcast_arrays(rows, other, target)

    def gap(x: Array, rows: Rows, other: Array, target: Array) -> Array:
        return loss(x, rows, other) - target

    least, top = np.zeros(rows.shape), np.full(rows.shape, most)
    at_least, at_top = gap(least, rows, other, target), gap(top, rows, other, target)
    out = np.where(at_top <= 0, np.where(at_least <= 0, 0.0, top), np.nan)
    between = (at_least > 0) & (at_top < 0)
    if between.any():
        from scipy.optimize import elementwise  # slow to import

        args = (rows[between], other[between], target[between])
        out[between] = elementwise.find_root(gap, (least[between], top[between]), args=args).x
    return out
