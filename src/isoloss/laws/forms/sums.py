"""Sums of power laws: most published laws are one, some seen through changed inputs or an outer exponent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from isoloss.laws.forms.form import Array, Form, Nested

_LARGEST_LOG = 300.0  # keeps exp() and its square finite while a solver wanders
EXPONENT_LIMITS = (1e-3, 10.0)
SIGNED_LIMITS = (-5.0, 5.0)


@dataclass(frozen=True)
class Term:
    """``coefficient * prod(input ** -exponent)``; without exponents it is a floor."""

    coefficient: str
    exponents: tuple[tuple[str, str], ...] = ()


Slopes = Mapping[tuple[int, str], Array]


@dataclass(frozen=True)
class Warp:
    """Inputs that the terms see in place of the plain ones.

    ``apply(theta, z_In) -> z_..Jn`` for the J names in ``sees``, where ``theta`` maps each parameter of the
    law to its coordinate; ``slopes`` are the derivatives of row j by a parameter's coordinate.
    ``unscale(name, theta, log_scale)`` is the plain coordinate of each parameter in ``rescales``; ``starts``
    holds coordinates to start from; ``plain(params, inputs)`` the same change in plain units.
    """

    parameters: tuple[str, ...]
    sees: tuple[str, ...]
    apply: Callable[[Mapping[str, Array], Array], tuple[Array, Slopes]]
    unscale: Callable[[str, Mapping[str, Array], Mapping[str, float]], Array]
    starts: Mapping[str, tuple[float, ...]]
    plain: Callable[[Mapping[str, float], Mapping[str, Array]], Mapping[str, Array]]
    units: Mapping[str, str] = field(default_factory=dict)
    rescales: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Layout:
    """Where the numbers of K terms stand in theta, and which of J exponents acts on which term and input."""

    names: tuple[str, ...]
    coefficients_K: NDArray[np.int64]
    exponents_J: NDArray[np.int64]
    terms_J: NDArray[np.int64]
    inputs_J: NDArray[np.int64]
    spread_JKI: Array
    floor_K: NDArray[np.bool_]
    signed_J: NDArray[np.bool_]
    signed_K: NDArray[np.bool_]
    any_signed: tuple[bool, bool]  # exponents, coefficients
    outer: int | None


def _layout(
    terms: tuple[Term, ...],
    sees: tuple[str, ...],
    extra: tuple[str, ...],
    outer: str,
    signed: tuple[str, ...],
) -> _Layout:
    names: list[str] = []
    coefficients, acting = [], []
    for k, term in enumerate(terms):
        coefficients.append(len(names))
        names.append(term.coefficient)
        for name, exponent in term.exponents:
            # One exponent may act on several terms.
            if exponent not in names:
                names.append(exponent)
            acting.append((names.index(exponent), k, sees.index(name)))
    names += [*extra, *([outer] if outer else [])]
    acting_J3 = np.array(acting, dtype=np.int64).reshape(-1, 3)
    spread_JKI = np.zeros((len(acting), len(terms), len(sees)))
    spread_JKI[np.arange(len(acting)), acting_J3[:, 1], acting_J3[:, 2]] = 1.0
    signed_J = np.array([names[j] in signed for j, _, _ in acting], dtype=bool)
    signed_K = np.array([term.coefficient in signed for term in terms])
    return _Layout(
        names=tuple(names),
        coefficients_K=np.array(coefficients),
        exponents_J=acting_J3[:, 0],
        terms_J=acting_J3[:, 1],
        inputs_J=acting_J3[:, 2],
        spread_JKI=spread_JKI,
        floor_K=np.array([not term.exponents for term in terms]),
        signed_J=signed_J,
        signed_K=signed_K,
        any_signed=(bool(signed_J.any()), bool(signed_K.any())),
        outer=names.index(outer) if outer else None,
    )


class _Sum:
    """The arithmetic of one power sum; a namespace of closures over its layout."""

    def __init__(self, layout: _Layout, warp: Warp | None):
        self.layout, self.warp = layout, warp

    def named(self, theta: Array) -> dict[str, Array]:
        return {name: theta[..., i] for i, name in enumerate(self.layout.names)}

    def seen(self, theta: Array, z_In: Array) -> tuple[Array, Slopes]:
        return (z_In, {}) if self.warp is None else self.warp.apply(self.named(theta), z_In)

    def exponents(self, theta: Array) -> Array:
        raw = theta.take(self.layout.exponents_J, axis=-1)
        if not self.layout.any_signed[0]:
            return np.exp(np.minimum(raw, 5.0))
        return np.where(self.layout.signed_J, raw, np.exp(np.minimum(raw, 5.0)))

    def terms(self, theta: Array, z_eff: Array) -> tuple[Array, Array]:
        """The terms, shape (..., K, n), and the exponents, shape (..., J)."""
        at = self.layout
        exponents = self.exponents(theta)
        count, terms, inputs = at.spread_JKI.shape
        slopes = (exponents @ at.spread_JKI.reshape(count, terms * inputs)).reshape(
            *theta.shape[:-1], terms, inputs
        )
        coefficients = theta.take(at.coefficients_K, axis=-1)[..., None]
        log_terms = coefficients - slopes @ z_eff
        out = np.exp(np.minimum(log_terms, _LARGEST_LOG))
        if at.any_signed[1]:
            out = np.where(at.signed_K[:, None], coefficients, out)
        return out, exponents

    def value(self, theta: Array, z_In: Array) -> Array:
        terms = self.terms(theta, self.seen(theta, z_In)[0])[0]
        if self.layout.outer is None:
            return terms.sum(axis=-2)
        floor, inner = self.split(terms)
        return floor + inner ** np.exp(np.minimum(theta[..., self.layout.outer, None], 3.0))

    def split(self, terms: Array) -> tuple[Array, Array]:
        floor_K = self.layout.floor_K
        return terms[..., floor_K, :].sum(axis=-2), terms[..., ~floor_K, :].sum(axis=-2)

    def gradient(self, theta: Array, z_In: Array) -> Array:
        at = self.layout
        z_eff, bends = self.seen(theta, z_In)
        terms_Kn, exponents_J = self.terms(theta, z_eff)
        out = np.zeros((*theta.shape, z_In.shape[-1]), dtype=np.result_type(theta, terms_Kn))
        out[..., at.coefficients_K, :] = np.where(at.signed_K[:, None], 1.0, terms_Kn)
        acting_Jn = terms_Kn[..., at.terms_J, :]
        factor_J = np.where(at.signed_J, 1.0, exponents_J)
        for j, place in enumerate(at.exponents_J):
            out[..., place, :] -= (
                factor_J[..., j, None] * z_eff[..., at.inputs_J[j], :] * acting_Jn[..., j, :]
            )
        for (row, name), slope in bends.items():
            place = at.names.index(name)
            for j in np.flatnonzero(at.inputs_J == row):
                out[..., place, :] -= exponents_J[..., j, None] * acting_Jn[..., j, :] * slope
        if at.outer is not None:
            self.bend_outer(theta, terms_Kn, out)
        return np.swapaxes(out, -1, -2)

    def bend_outer(self, theta: Array, terms_Kn: Array, out: Array) -> None:
        at = self.layout
        g = np.exp(np.minimum(theta[..., at.outer, None], 3.0))
        inner = self.split(terms_Kn)[1]
        inside = np.ones(len(at.names), dtype=bool)
        inside[at.coefficients_K[at.floor_K]] = False
        out[..., inside, :] *= (g * inner ** (g - 1))[..., None, :]
        out[..., at.outer, :] = inner**g * np.log(inner) * g

    def unscale(self, log_scale: Mapping[str, float], theta: Array, log_loss_scale: float) -> Array:
        """``log_scale`` per name that the terms see; a warp may look up plain inputs as well."""
        at = self.layout
        out = np.array(theta)
        outer = 1.0 if at.outer is None else np.exp(theta[..., at.outer])
        for k, place in enumerate(at.coefficients_K):
            if at.signed_K[k]:
                out[..., place] = theta[..., place] * np.exp(log_loss_scale)
            else:
                out[..., place] += log_loss_scale / (1.0 if at.floor_K[k] else outer)
        exponents_J = self.exponents(theta)
        names = self.warp.sees if self.warp else tuple(log_scale)
        for j, (term, row) in enumerate(zip(at.terms_J, at.inputs_J, strict=True)):
            out[..., at.coefficients_K[term]] += exponents_J[..., j] * log_scale[names[row]]
        for name in self.warp.rescales if self.warp else ():
            out[..., at.names.index(name)] = self.warp.unscale(name, self.named(theta), log_scale)
        return out

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        """Variable projection: a grid of all else; coefficients by non-negative least squares."""
        at = self.layout
        theta_Gp = self.grid()
        z_eff = self.seen(theta_Gp, z_In)[0]
        basis_GKn = self.terms(theta_Gp, z_eff)[0] * np.sqrt(w_n)
        signed_K = at.signed_K
        basis_GKn = np.where(signed_K[:, None], np.sqrt(w_n), basis_GKn)
        out = []
        for theta_p, basis_Kn in zip(theta_Gp, basis_GKn, strict=True):
            for share in (0.0,) if at.outer is None else (0.3, 0.7, 0.9):
                out.append(self.solved(theta_p, basis_Kn, y_n, w_n, share))
        return np.array(out)

    def solved(self, theta_p: Array, basis_Kn: Array, y_n: Array, w_n: Array, share: float) -> Array:
        """``theta_p`` with its coefficients; an outer exponent needs a floor, ``share`` of the least loss."""
        at, theta_p = self.layout, theta_p.copy()
        target_n, free_K = y_n * np.sqrt(w_n), np.ones(len(basis_Kn), dtype=bool)
        if at.outer is not None:
            floor = share * y_n.min() if at.floor_K.any() else 0.0
            target_n = (y_n - floor) ** np.exp(-theta_p[at.outer]) * np.sqrt(w_n)
            free_K = ~at.floor_K
            theta_p[at.coefficients_K[at.floor_K]] = np.log(max(floor, 1e-300))
        length_K = np.maximum(np.linalg.norm(basis_Kn[free_K], axis=1), 1e-300)
        found_K = nnls((basis_Kn[free_K] / length_K[:, None]).T, target_n)[0] / length_K
        # A coefficient of exactly 0 has no logarithm: start well inside.
        logs_K = np.log(np.maximum(found_K, 0.25))
        theta_p[at.coefficients_K[free_K]] = np.where(at.signed_K[free_K], found_K, logs_K)
        return theta_p

    def grid(self) -> Array:
        at = self.layout
        places = list(dict.fromkeys(at.exponents_J.tolist()))
        signed = {int(p): bool(s) for p, s in zip(at.exponents_J, at.signed_J, strict=True)}
        steps = {1: 9, 2: 7}.get(len(places), 5 if len(places) == 3 else 3)
        axes = [
            np.array([-0.1, 0.1]) if signed[place] else np.log(np.geomspace(0.03, 2.5, steps))
            for place in places
        ]
        if self.warp is not None:
            places += [at.names.index(name) for name in self.warp.parameters]
            axes += [np.array(self.warp.starts[name]) for name in self.warp.parameters]
        if at.outer is not None:
            places.append(at.outer)
            axes.append(np.log([0.3, 1.0, 2.0]))
        rows = list(product(*axes))
        theta_Gp = np.zeros((len(rows), len(at.names)))
        theta_Gp[:, places] = rows
        return theta_Gp


def power_sum(
    name: str,
    terms: tuple[Term, ...],
    *,
    inputs: tuple[str, ...],
    formula: str = "",
    text: str = "",
    source: str = "",
    mend_floor: str = "leave the floor out, or add runs over a wider range",
    signed: tuple[str, ...] = (),
    outer: str = "",
    warp: Warp | None = None,
    units: tuple[str, ...] | None = None,
    spans: Mapping[str, tuple[str, ...]] | None = None,
    **more: object,
) -> Form:
    """A form L = sum over terms of coefficient * prod(input ** -exponent).

    All parameters are positive but those in ``signed``. With ``outer`` the terms other than floors are summed
    and raised to that exponent; with ``warp`` the terms see changed inputs.
    """
    sees = warp.sees if warp else inputs
    layout = _layout(terms, sees, warp.parameters if warp else (), outer, signed)
    sums = _Sum(layout, warp)

    def loss(params: Mapping[str, float], x: Mapping[str, Array]) -> Array:
        x = warp.plain(params, x) if warp else x
        floor, inner = 0.0, 0.0
        for term in terms:
            factors = [np.asarray(x[name]) ** -params[exponent] for name, exponent in term.exponents]
            size = params[term.coefficient] * np.prod(np.broadcast_arrays(1.0, *factors), axis=0)
            floor, inner = (floor, inner + size) if term.exponents else (floor + size, inner)
        return floor + (inner ** params[outer] if outer else inner)

    def unscale(theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        log_scale = dict(zip(inputs, log_scale_I, strict=True))
        if warp:
            log_scale |= {new: log_scale.get(of, 0.0) for new, of in warp.units.items()}
        return sums.unscale(log_scale, theta, log_loss_scale)

    exponents = dict.fromkeys(exponent for term in terms for _, exponent in term.exponents)
    limits = {e: SIGNED_LIMITS if e in signed else EXPONENT_LIMITS for e in exponents}
    limits |= {e: SIGNED_LIMITS for e in signed if e not in layout.names[: len(terms)] and e not in limits}
    if outer:
        limits[outer] = EXPONENT_LIMITS
    floors = tuple(term.coefficient for term in terms if not term.exponents)
    may_be_negative = bool(floors) and not outer and not set(floors) & set(signed)

    def with_signed_floor() -> Form:
        return power_sum(
            name, terms, inputs=inputs, formula=formula, text=text, source=source, mend_floor=mend_floor,
            signed=(*signed, *floors), outer=outer, warp=warp, units=units,
            spans=spans, **more,
        )  # fmt: skip

    return Form(
        name=name,
        formula=formula,
        text=text,
        source=source,
        inputs=inputs,
        parameters=layout.names,
        limits={key: bounds for key, bounds in limits.items() if key not in floors},
        value=sums.value,
        gradient=sums.gradient,
        start=sums.start,
        unscale=unscale,
        loss=loss,
        nested=_nested(terms, mend_floor, signed),
        units=inputs if units is None else units,
        spans=_spans(terms, inputs, warp) if spans is None else spans,
        signed=signed,
        with_signed_floor=with_signed_floor if may_be_negative else None,
        **more,
    )


def _spans(
    terms: tuple[Term, ...], inputs: tuple[str, ...], warp: Warp | None
) -> Mapping[str, tuple[str, ...]]:
    """Each exponent needs a range of the input that its term sees."""
    plain = warp.units if warp else {}
    acting = [(plain.get(name, name), exponent) for term in terms for name, exponent in term.exponents]
    return {name: tuple(exponent for at, exponent in acting if at == name) for name in inputs}


def _nested(terms: tuple[Term, ...], mend_floor: str, signed: tuple[str, ...]) -> tuple[Nested, ...]:
    """The sum without each of its terms in turn; a lone term without its slope."""
    nested = []
    used: list[str] = []
    # A loss that does not fall has no floor either: the slopes are asked first.
    for term in sorted(terms, key=lambda term: not term.exponents):
        own = [exponent for _, exponent in term.exponents if exponent not in used]
        used += own
        if not term.exponents:
            if term.coefficient in signed:
                continue
            reason = f"the floor {term.coefficient} is not told apart from 0"
            nested.append(Nested({term.coefficient: 0.0}, reason, mend_floor))
            continue
        names = ", ".join(name for name, _ in term.exponents)
        fixed = dict.fromkeys(own, 0.0)
        if len(terms) > 1:
            fixed = {term.coefficient: 0.0} | dict.fromkeys(own, 1.0)
        reason = f"the loss does not fall with {names} by more than its noise"
        nested.append(Nested(fixed, reason, f"add runs over a wider range of {names}, or more seeds"))
    return tuple(nested)
