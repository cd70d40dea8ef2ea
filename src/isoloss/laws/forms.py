"""Functional forms of scaling laws: plain functions held together by a small frozen record.

A form works on scaled inputs and an unconstrained vector, so that no unit can change a fit:

* ``z_In``: for each of the I inputs, log(x / x0) at n points, where x0 is the middle of the data;
* ``theta_p``: the logarithms of the parameters in those units. The loss is divided by its own middle too.

``log_params`` turns ``theta_p`` and the units back into the parameters a reader knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from isoloss.errors import InputError

Array = NDArray[np.float64]

_LARGEST_LOG = 300.0  # keeps exp() and its square finite while a solver wanders
_EXPONENT_LIMITS = (1e-3, 10.0)


@dataclass(frozen=True)
class Nested:
    """A simpler law inside a form: if it fits about as well, the data do not support the larger one."""

    form: "Form"
    reason: str
    mend: str


@dataclass(frozen=True)
class Form:
    """One law.

    ``value(theta_..p, z_In) -> L_..n`` in units of the loss scale, ``gradient -> (..., n, p)``,
    ``start(z_In, y_n, w_n) -> theta_Sp``, candidate starts with the best first,
    ``log_params(theta_p, log_scale_I, log_loss_scale) -> log of the plain parameters``,
    ``loss(params, inputs) -> L`` the law as printed, in plain units. ``limits`` bound plain parameters.
    ``correlated`` names an input along which the rows of one run share their noise.
    """

    name: str
    formula: str
    text: str
    source: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    limits: Mapping[str, tuple[float, float]]
    value: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array], Array]
    start: Callable[[Array, Array, Array], Array]
    log_params: Callable[[Array, Array, float], Array]
    loss: Callable[[Mapping[str, float], Mapping[str, Array]], Array]
    nested: tuple[Nested, ...] = ()
    min_points: int = 0
    correlated: str | None = None


@dataclass(frozen=True)
class Term:
    """``coefficient * prod(input ** -exponent)``; without exponents it is a floor."""

    coefficient: str
    exponents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Layout:
    """Where the numbers of K terms stand in theta, and which of J exponents acts on which term and input."""

    size: int
    coefficients_K: NDArray[np.int64]
    exponents_J: NDArray[np.int64]
    terms_J: NDArray[np.int64]
    inputs_J: NDArray[np.int64]
    spread_JKI: Array


def _layout(terms: tuple[Term, ...], inputs: tuple[str, ...]) -> tuple[tuple[str, ...], _Layout]:
    names: list[str] = []
    coefficients, acting = [], []
    for k, term in enumerate(terms):
        coefficients.append(len(names))
        names.append(term.coefficient)
        for name, exponent in term.exponents:
            acting.append((len(names), k, inputs.index(name)))
            names.append(exponent)
    acting_J3 = np.array(acting, dtype=np.int64).reshape(-1, 3)
    spread_JKI = np.zeros((len(acting), len(terms), len(inputs)))
    spread_JKI[np.arange(len(acting)), acting_J3[:, 1], acting_J3[:, 2]] = 1.0
    return tuple(names), _Layout(len(names), np.array(coefficients), *acting_J3.T, spread_JKI)


def _terms(layout: _Layout, theta: Array, z_In: Array) -> tuple[Array, Array]:
    """The terms, shape (..., K, n), and the exponents, shape (..., J)."""
    exponents = np.exp(np.minimum(theta.take(layout.exponents_J, axis=-1), 5.0))
    count, terms, inputs = layout.spread_JKI.shape
    slopes = (exponents @ layout.spread_JKI.reshape(count, terms * inputs)).reshape(
        *theta.shape[:-1], terms, inputs
    )
    log_terms = theta.take(layout.coefficients_K, axis=-1)[..., None] - slopes @ z_In
    return np.exp(np.minimum(log_terms, _LARGEST_LOG)), exponents


def _grid_start(layout: _Layout, z_In: Array, y_n: Array, w_n: Array) -> Array:
    """Variable projection: on a grid of exponents the coefficients follow from non-negative least squares."""
    count = len(layout.exponents_J)
    steps = {1: 9, 2: 7}.get(count, 5)
    exponents = list(product(np.log(np.geomspace(0.03, 2.5, steps)), repeat=count))
    theta_Gp = np.zeros((len(exponents), layout.size))
    theta_Gp[:, layout.exponents_J] = exponents
    root_n = np.sqrt(w_n)
    basis_GKn = _terms(layout, theta_Gp, z_In)[0] * root_n
    length_GK = np.maximum(np.sqrt(np.sum(basis_GKn**2, axis=2)), 1e-300)
    target_n = y_n * root_n
    solved = [nnls((basis_GKn[g] / length_GK[g, :, None]).T, target_n) for g in range(len(exponents))]
    # A coefficient of exactly 0 has no logarithm: start well inside.
    coefficients_GK = np.stack([found for found, _ in solved]) / length_GK
    theta_Gp[:, layout.coefficients_K] = np.log(np.maximum(coefficients_GK, 0.25))
    return theta_Gp[np.argsort([distance for _, distance in solved], kind="stable")]


def _nested(terms: tuple[Term, ...], inputs: tuple[str, ...], mend_floor: str) -> tuple[Nested, ...]:
    nested = []
    for term in terms:
        rest = tuple(other for other in terms if other is not term) or (Term(term.coefficient),)
        form = power_sum("nested", rest, inputs=inputs, nested=False)
        if term.exponents:
            names = ", ".join(name for name, _ in term.exponents)
            reason = f"the loss does not fall with {names} by more than its noise"
            mend = f"add runs over a wider range of {names}, or more seeds"
        else:
            reason = f"the floor {term.coefficient} is not told apart from 0"
            mend = mend_floor
        nested.append(Nested(form, reason, mend))
    return tuple(nested)


def power_sum(
    name: str,
    terms: tuple[Term, ...],
    *,
    inputs: tuple[str, ...],
    formula: str = "",
    text: str = "",
    source: str = "",
    mend_floor: str = "leave the floor out, or add runs over a wider range",
    nested: bool = True,
) -> Form:
    """A form L = sum over terms of coefficient * prod(input ** -exponent), all parameters positive."""
    parameters, layout = _layout(terms, inputs)

    def value(theta: Array, z_In: Array) -> Array:
        return _terms(layout, theta, z_In)[0].sum(axis=-2)

    def gradient(theta: Array, z_In: Array) -> Array:
        terms_Kn, exponents_J = _terms(layout, theta, z_In)
        out = np.empty((*theta.shape, z_In.shape[1]), dtype=theta.dtype)
        out[..., layout.coefficients_K, :] = terms_Kn
        slope_Jn = -exponents_J[..., None] * z_In[layout.inputs_J]
        out[..., layout.exponents_J, :] = slope_Jn * terms_Kn[..., layout.terms_J, :]
        return np.swapaxes(out, -1, -2)

    def log_params(theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        out = np.array(theta)
        out[layout.coefficients_K] += log_loss_scale
        for place, term, row in zip(layout.exponents_J, layout.terms_J, layout.inputs_J, strict=True):
            out[layout.coefficients_K[term]] += np.exp(theta[place]) * log_scale_I[row]
        return out

    def loss(params: Mapping[str, float], x: Mapping[str, Array]) -> Array:
        total = 0.0
        for term in terms:
            factors = [np.asarray(x[name]) ** -params[exponent] for name, exponent in term.exponents]
            total = total + params[term.coefficient] * np.prod(np.broadcast_arrays(1.0, *factors), axis=0)
        return total

    return Form(
        name=name,
        formula=formula,
        text=text,
        source=source,
        inputs=inputs,
        parameters=parameters,
        limits={exponent: _EXPONENT_LIMITS for term in terms for _, exponent in term.exponents},
        value=value,
        gradient=gradient,
        start=lambda z_In, y_n, w_n: _grid_start(layout, z_In, y_n, w_n),
        log_params=log_params,
        loss=loss,
        nested=_nested(terms, inputs, mend_floor) if nested else (),
    )


def _power() -> Form:
    """L = (Nc / N) ** a. Inside, the coefficient Nc ** a is fitted: Nc itself is far outside the data."""
    inner = power_sum("power", (Term("A", (("params", "a"),)),), inputs=("params",))

    def log_params(theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        log_nc = (theta[0] + log_loss_scale) / np.exp(theta[1]) + log_scale_I[0]
        return np.array([log_nc, theta[1]])

    return replace(
        inner,
        formula="L = (Nc/N)^a",
        text="L = ({Nc}/N)^{a}",
        source="Kaplan et al. 2020, arXiv 2001.08361, eq. 1.1",
        parameters=("Nc", "a"),
        log_params=log_params,
        loss=lambda params, x: (params["Nc"] / np.asarray(x["params"])) ** params["a"],
    )


_POWER_FLOOR = power_sum(
    "power-floor",
    (Term("E"), Term("A", (("params", "a"),))),
    inputs=("params",),
    formula="L = E + A N^-a",
    text="L = {E} + {A} N^-{a}",
    source="Hoffmann et al. 2022, arXiv 2203.15556, eq. 2 at unlimited data",
    mend_floor="use the law 'power', or add larger or smaller models",
)

_CONTEXT = replace(
    power_sum(
        "context",
        (Term("a"), Term("b", (("position", "p"),))),
        inputs=("position",),
        formula="L = a + b T^-p",
        text="L = {a} + {b} T^-{p}",
        source="Kaplan et al. 2020, arXiv 2001.08361, appendix D.5",
        mend_floor="evaluate at longer contexts, or on more windows",
    ),
    min_points=5,
    correlated="position",
)

# The published law has shifts t1, t2, t3 beside N, D and T_m. They are fixed at 0 here: inputs are never near
# zero, and three more parameters are not determined by the grids people train. Seven parameters are fitted.
_LOOP_TOTAL = power_sum(
    "loop-total",
    (
        Term("E"),
        Term("A", (("params", "alpha"),)),
        Term("B", (("tokens", "beta"),)),
        Term("C", (("recurrence", "gamma"),)),
    ),
    inputs=("params", "tokens", "recurrence"),
    formula="L = E + A N^-alpha + B D^-beta + C T_m^-gamma (shifts t1 = t2 = t3 = 0)",
    text="L = {E} + {A} N^-{alpha} + {B} D^-{beta} + {C} T_m^-{gamma}",
    source="Ouro, arXiv 2510.25741, total loss law",
    mend_floor="add larger models, more tokens or more loops",
)

_CHINCHILLA = power_sum(
    "chinchilla",
    (Term("E"), Term("A", (("params", "alpha"),)), Term("B", (("tokens", "beta"),))),
    inputs=("params", "tokens"),
    formula="L = E + A N^-alpha + B D^-beta",
    text="L = {E} + {A} N^-{alpha} + {B} D^-{beta}",
    source="Hoffmann et al. 2022, arXiv 2203.15556, eq. 2",
    mend_floor="add larger models or more tokens",
)

FORMS: dict[str, Form] = {
    law.name: law for law in (_power(), _POWER_FLOOR, _CHINCHILLA, _CONTEXT, _LOOP_TOTAL)
}


def form(name: str) -> Form:
    """The registered form of that name. Raises InputError, listing the names."""
    if name not in FORMS:
        raise InputError(f"no law is named {name!r}", mend=f"choose one of {', '.join(sorted(FORMS))}")
    return FORMS[name]


def register(law: Form) -> Form:
    """Add a form of your own under its name. Raises InputError if the name is taken."""
    if law.name in FORMS:
        raise InputError(f"a law named {law.name!r} exists", mend="choose another name")
    FORMS[law.name] = law
    return law


def registered(law: str | Form) -> Form:
    """A form by its name or itself. Raises InputError for one that is not registered."""
    if isinstance(law, str):
        return form(law)
    if FORMS.get(law.name) is not law:
        raise InputError("is not registered", where=law.name, mend="call register(form) first")
    return law
