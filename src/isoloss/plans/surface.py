"""The loss over parameters and tokens of one law and of its draws, all at once.

Row 0 is the law as fitted, the other rows are draws from its uncertainty. Every question that a plan asks is
asked of all rows together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import elementwise

from isoloss.errors import InputError
from isoloss.laws.forms import Array, Form, form
from isoloss.laws.result import Fit
from isoloss.plans.repeat import effective_tokens

LARGEST_LOG = float(np.log(1e30))
"""Nobody trains 1e30 parameters or tokens: a loss not reached there counts as out of reach."""


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
class Surface:
    """``params_S`` maps the law's parameters to arrays over rows; ``at`` holds inputs other than N and D.

    With ``unique_tokens``, tokens beyond them count as Muennighoff's D' (see ``repeat``).
    ``broken_S`` marks draws whose parameters exceed the range of floats.
    """

    law: Form
    params_S: Mapping[str, Array]
    at: Mapping[str, float]
    unique_tokens: float | None
    broken_S: np.ndarray

    @property
    def rows(self) -> Array:
        return np.arange(len(self.broken_S))

    def loss(self, rows: Array, log_n: Array, log_d: Array) -> Array:
        """Losses of ``rows`` at their own N and D; the three broadcast."""
        rows, log_n, log_d = np.broadcast_arrays(rows, log_n, log_d)
        tokens = np.exp(log_d)
        if self.unique_tokens is not None:
            tokens = effective_tokens(tokens, self.unique_tokens)
        params = {name: values_S[rows] for name, values_S in self.params_S.items()}
        x = {"params": np.exp(log_n), "tokens": tokens}
        x |= {name: np.full(rows.shape, value) for name, value in self.at.items()}
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            return self.law.loss(params, x)

    def log_tokens(self, rows: Array, log_n: Array, loss: Array, most: float = LARGEST_LOG) -> Array:
        """The log tokens at which ``rows`` reach ``loss``: 0 if one does, NaN if exp(most) do not."""
        return _reach(lambda d, r, n: self.loss(r, n, d), rows, log_n, loss, most)

    def log_params(self, rows: Array, log_d: Array, loss: Array) -> Array:
        """The log parameters at which ``rows`` reach ``loss``: 0 if one does, NaN if none do."""
        return _reach(lambda n, r, d: self.loss(r, n, d), rows, log_d, loss, LARGEST_LOG)

    def terms(self) -> PowerTerms | None:
        """The law as a power sum of N and D, if it is one and no token repeats."""
        write = _TERMS.get(self.law.name)
        if write is None or self.unique_tokens is not None:
            return None
        ones_S = np.ones(len(self.broken_S))
        return PowerTerms(*(ones_S * part for part in write(self.params_S, self.at)))


def surface(fit: Fit, theta_Sp: Array, at: Mapping[str, float], unique_tokens: float | None) -> Surface:
    """The fit's own parameters as row 0, then the draws ``theta_Sp``."""
    law = form(fit.law)
    params_S = plain_params(fit, theta_Sp)
    params_S = {name: np.append(fit.params[name], values) for name, values in params_S.items()}
    broken_S = ~np.all([np.isfinite(values) for values in params_S.values()], axis=0)
    # A broken draw computes as the fit itself and is taken out again at the end.
    params_S = {name: np.where(broken_S, values[0], values) for name, values in params_S.items()}
    return Surface(law, params_S, at, unique_tokens, broken_S)


def plain_params(fit: Fit, theta_Sp: Array) -> dict[str, Array]:
    """Plain parameters of S draws, each an array over draws; infinite where they exceed every float."""
    law = form(fit.law)
    log_scale_I = np.log([fit.units.inputs[name] for name in law.inputs])
    log_loss_scale = float(np.log(fit.units.loss))
    kappa_pS = np.array([law.log_params(theta_p, log_scale_I, log_loss_scale) for theta_p in theta_Sp]).T
    with np.errstate(over="ignore"):
        return dict(zip(law.parameters, np.exp(kappa_pS.reshape(len(law.parameters), -1)), strict=True))


def fixed_inputs(law: Form, unique_tokens: float | None, recurrence: float | None) -> dict[str, float]:
    """The inputs of ``law`` other than N and D. Raises InputError for one missing or not the law's."""
    if not {"params", "tokens"} <= set(law.inputs):
        raise InputError(
            f"the law is one of {', '.join(law.inputs)}: a plan needs parameters and tokens",
            where=law.name,
            mend="fit a law of both, such as chinchilla",
        )
    given = {"unique_tokens": unique_tokens, "recurrence": recurrence}
    if recurrence is not None and "recurrence" not in law.inputs:
        raise InputError("the law knows no recurrence", where=law.name, mend="leave recurrence out")
    others = [name for name in law.inputs if name not in ("params", "tokens")]
    for name in others:
        if given.get(name) is None:
            raise InputError(
                f"the law also takes {name}",
                where=law.name,
                mend=f"give {name}" if name in given else "plan with a law of params and tokens",
            )
    return {name: float(given[name]) for name in others}


def passes(fit: Fit, at: Mapping[str, float]) -> float:
    """Executed over stored parameters: what a loop multiplies the FLOPs of a token by."""
    return _PASSES.get(fit.law, lambda at: 1.0)(at)


def _reach(loss, rows: Array, other: Array, target: Array, most: float) -> Array:
    """The point of [0, most] where a falling loss meets ``target``, elementwise."""
    rows, other, target = np.broadcast_arrays(rows, other, target)
    gap = lambda x, r, o, t: loss(x, r, o) - t  # noqa: E731 - the solver wants one function of x
    least, top = np.zeros(rows.shape), np.full(rows.shape, most)
    at_least, at_top = gap(least, rows, other, target), gap(top, rows, other, target)
    out = np.where(at_top <= 0, np.where(at_least <= 0, 0.0, top), np.nan)
    open_ = (at_least > 0) & (at_top < 0)
    if open_.any():
        args = (rows[open_], other[open_], target[open_])
        out[open_] = elementwise.find_root(gap, (least[open_], top[open_]), args=args).x
    return out


def _chinchilla(p: Mapping[str, Array], at: Mapping[str, float]) -> tuple:
    return p["E"], p["A"], p["alpha"], p["B"], p["beta"], 1.0


def _loop_total(p: Mapping[str, Array], at: Mapping[str, float]) -> tuple:
    floor = p["E"] + p["C"] * at["recurrence"] ** -p["gamma"]
    return floor, p["A"], p["alpha"], p["B"], p["beta"], 1.0


_TERMS = {"chinchilla": _chinchilla, "loop-total": _loop_total}

# Ouro runs its whole stack T_m times.
_PASSES = {"loop-total": lambda at: at["recurrence"]}
