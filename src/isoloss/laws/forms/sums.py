"""Sums of power laws: most published laws are one, some seen through changed inputs or an outer exponent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from isoloss.laws.forms.coefficients import not_negative
from isoloss.laws.forms.form import Array, Form, Nested, flat_in
from isoloss.laws.forms.warps import Slopes, Warp

_LARGEST_LOG = 300.0  # keeps exp() and its square finite while a solver wanders
EXPONENT_LIMITS = (1e-3, 10.0)
SIGNED_LIMITS = (-5.0, 5.0)


@dataclass(frozen=True)
class Term:
    """``coefficient * prod(input ** -exponent)``; without exponents it is a floor."""

    coefficient: str
    exponents: tuple[tuple[str, str], ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.coefficient, *(exponent for _, exponent in self.exponents)


class Layout:
    """Where the coefficients of K terms stand, and which of J exponents acts on which term and input seen.

    ``spread_JKI`` is 1 where exponent j acts on term k and input i: slopes_KI = exponents_J @ spread_JKI.
    """

    def __init__(self, law: "PowerSum") -> None:
        terms, names, signed = law.terms, law.parameters, law.signed
        sees = law.warp.sees if law.warp else law.inputs
        acting = [
            (names.index(exponent), k, sees.index(name))
            for k, term in enumerate(terms)
            for name, exponent in term.exponents
        ]
        self.names = names
        acting_3J = np.array(acting, dtype=np.int64).reshape(-1, 3).T.copy()  # rows quick to index by
        self.exponents_J, self.terms_J, self.inputs_J = acting_3J
        self.coefficients_K = np.array([names.index(term.coefficient) for term in terms])
        self.spread_JKI = np.zeros((len(acting), len(terms), len(sees)))
        self.spread_JKI[np.arange(len(acting)), self.terms_J, self.inputs_J] = 1.0
        self.floor_K = np.array([not term.exponents for term in terms])
        self.signed_J = np.array([names[j] in signed for j in self.exponents_J], dtype=bool)
        self.signed_K = np.array([term.coefficient in signed for term in terms])
        self.exponents_signed, self.coefficients_signed = bool(self.signed_J.any()), bool(self.signed_K.any())
        self.outer = names.index(law.outer) if law.outer else None


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerSum(Form):
    """L = sum over terms of coefficient * prod(input ** -exponent).

    With ``outer`` the terms other than floors are summed and raised to that exponent; with ``warp`` the terms
    see changed inputs. theta holds a logarithm for each parameter that is positive.
    """

    terms: tuple[Term, ...]
    outer: str = ""
    warp: Warp | None = None

    @cached_property
    def layout(self) -> Layout:
        return Layout(self)

    def with_signed_floor(self) -> Form:
        floors = [term.coefficient for term in self.terms if not term.exponents]
        if not floors or self.outer or set(floors) & set(self.signed):
            return self
        nested = tuple(part for part in self.nested if not set(part.fixed) & set(floors))
        return replace(self, signed=(*self.signed, *floors), nested=nested)

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        x = self.warp.plain(params, x) if self.warp else x
        floor, inner = np.zeros(()), np.zeros(())
        for term in self.terms:
            factors = [np.asarray(x[name]) ** -params[exponent] for name, exponent in term.exponents]
            size = params[term.coefficient] * np.prod(np.broadcast_arrays(1.0, *factors), axis=0)
            floor, inner = (floor, inner + size) if term.exponents else (floor + size, inner)
        return floor + (inner ** params[self.outer] if self.outer else inner)

    def value(self, theta: Array, z_In: Array) -> Array:
        terms = self._terms(theta, self._see(theta, z_In)[0])[0]
        if self.layout.outer is None:
            return terms.sum(axis=-2)
        floor, inner = self._split(terms)
        return floor + inner ** np.exp(np.minimum(theta[..., self.layout.outer, None], 3.0))

    def gradient(self, theta: Array, z_In: Array) -> Array:
        layout = self.layout
        z_eff, bends = self._see(theta, z_In)
        terms_Kn, exponents_J = self._terms(theta, z_eff)
        out = np.zeros((*theta.shape, z_In.shape[-1]), dtype=np.result_type(theta, terms_Kn))
        out[..., layout.coefficients_K, :] = np.where(layout.signed_K[:, None], 1.0, terms_Kn)
        acting_Jn = terms_Kn[..., layout.terms_J, :]
        factor_J = np.where(layout.signed_J, 1.0, exponents_J)
        for j, index in enumerate(layout.exponents_J):
            z_n = z_eff[..., layout.inputs_J[j], :]
            out[..., index, :] -= factor_J[..., j, None] * z_n * acting_Jn[..., j, :]
        for (row, name), slope in bends().items():
            index = layout.names.index(name)
            for j in np.flatnonzero(layout.inputs_J == row):
                out[..., index, :] -= exponents_J[..., j, None] * acting_Jn[..., j, :] * slope
        if layout.outer is not None:
            self._bend_outer(theta, terms_Kn, out)
        return np.swapaxes(out, -1, -2)

    def _bend_outer(self, theta: Array, terms_Kn: Array, out: Array) -> None:
        layout = self.layout
        g = np.exp(np.minimum(theta[..., layout.outer, None], 3.0))
        inner = self._split(terms_Kn)[1]
        inside = np.ones(len(layout.names), dtype=bool)
        inside[layout.coefficients_K[layout.floor_K]] = False
        out[..., inside, :] *= (g * inner ** (g - 1))[..., None, :]
        out[..., layout.outer, :] = inner**g * np.log(inner) * g

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        layout, warp = self.layout, self.warp
        # Per name that the terms see; a warp may look up plain inputs as well.
        log_scale = dict(zip(self.inputs, log_scale_I, strict=True))
        if warp:
            log_scale |= {seen: log_scale.get(plain, 0.0) for seen, plain in warp.units.items()}
        out = np.array(theta)
        outer = 1.0 if layout.outer is None else np.exp(theta[..., layout.outer])
        for k, index in enumerate(layout.coefficients_K):
            if layout.signed_K[k]:
                out[..., index] = theta[..., index] * np.exp(log_loss_scale)
            else:
                out[..., index] += log_loss_scale / (1.0 if layout.floor_K[k] else outer)
        exponents_J = self._exponents(theta)
        names = warp.sees if warp else self.inputs
        for j, (term, row) in enumerate(zip(layout.terms_J, layout.inputs_J, strict=True)):
            out[..., layout.coefficients_K[term]] += exponents_J[..., j] * log_scale[names[row]]
        if warp:
            for name in warp.rescales:
                out[..., layout.names.index(name)] = warp.unscale(name, self._by_name(theta), log_scale)
        return out

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        """Variable projection: a grid of all else; coefficients by non-negative least squares."""
        layout = self.layout
        theta_Gp = self._grid()
        z_eff = self._see(theta_Gp, z_In)[0]
        basis_GKn = np.where(layout.signed_K[:, None], 1.0, self._terms(theta_Gp, z_eff)[0]) * np.sqrt(w_n)
        shares = (0.0,) if layout.outer is None else (0.3, 0.7, 0.9)
        starts = [self._fit_coefficients(theta_Gp, basis_GKn, y_n, w_n, share) for share in shares]
        return np.stack(starts, axis=1).reshape(-1, theta_Gp.shape[1])

    def _fit_coefficients(
        self, theta_Gp: Array, basis_GKn: Array, y_n: Array, w_n: Array, share: float
    ) -> Array:
        """``theta_Gp`` with coefficients; an outer exponent needs a floor, ``share`` of the least loss."""
        layout, theta_Gp = self.layout, theta_Gp.copy()
        target_Gn, free_K = y_n * np.sqrt(w_n), np.ones(len(layout.floor_K), dtype=bool)
        if layout.outer is not None:
            floor = share * y_n.min() if layout.floor_K.any() else 0.0
            target_Gn = (y_n - floor) ** np.exp(-theta_Gp[:, layout.outer, None]) * np.sqrt(w_n)
            free_K = ~layout.floor_K
            theta_Gp[:, layout.coefficients_K[layout.floor_K]] = np.log(max(floor, 1e-300))
        solved_GK = not_negative(basis_GKn[:, free_K], target_Gn)
        # A coefficient of exactly 0 has no logarithm: start well inside.
        logs_GK = np.log(np.maximum(solved_GK, 0.25))
        theta_Gp[:, layout.coefficients_K[free_K]] = np.where(layout.signed_K[free_K], solved_GK, logs_GK)
        return theta_Gp

    def _grid(self) -> Array:
        layout = self.layout
        columns = list(dict.fromkeys(layout.exponents_J.tolist()))
        signed = set(layout.exponents_J[layout.signed_J])
        steps = {1: 9, 2: 7, 3: 5}.get(len(columns), 3)
        positive = np.log(np.geomspace(0.03, 2.5, steps))
        axes = [np.array([-0.1, 0.1]) if index in signed else positive for index in columns]
        if self.warp is not None:
            columns += [layout.names.index(name) for name in self.warp.parameters]
            axes += [np.array(self.warp.starts[name]) for name in self.warp.parameters]
        if layout.outer is not None:
            columns.append(layout.outer)
            axes.append(np.log([0.3, 1.0, 2.0]))
        rows = list(product(*axes))
        theta_Gp = np.zeros((len(rows), len(layout.names)))
        theta_Gp[:, columns] = rows
        return theta_Gp

    def _by_name(self, theta: Array) -> dict[str, Array]:
        return {name: theta[..., i] for i, name in enumerate(self.layout.names)}

    def _see(self, theta: Array, z_In: Array) -> tuple[Array, Slopes]:
        if self.warp is None:
            return z_In, dict
        rows, slopes = self.warp.apply(self._by_name(theta), z_In)
        return np.stack(np.broadcast_arrays(*rows), axis=-2), slopes

    def _exponents(self, theta: Array) -> Array:
        raw = theta.take(self.layout.exponents_J, axis=-1)
        if not self.layout.exponents_signed:
            return np.exp(np.minimum(raw, 5.0))
        return np.where(self.layout.signed_J, raw, np.exp(np.minimum(raw, 5.0)))

    def _terms(self, theta: Array, z_eff: Array) -> tuple[Array, Array]:
        """The terms, shape (..., K, n), and the exponents, shape (..., J)."""
        layout = self.layout
        exponents = self._exponents(theta)
        count, terms, inputs = layout.spread_JKI.shape
        slopes = (exponents @ layout.spread_JKI.reshape(count, terms * inputs)).reshape(
            *theta.shape[:-1], terms, inputs
        )
        coefficients = theta.take(layout.coefficients_K, axis=-1)[..., None]
        log_terms = coefficients - slopes @ z_eff
        out = np.exp(np.minimum(log_terms, _LARGEST_LOG))
        if layout.coefficients_signed:
            out = np.where(layout.signed_K[:, None], coefficients, out)
        return out, exponents

    def _split(self, terms: Array) -> tuple[Array, Array]:
        floor_K = self.layout.floor_K
        return terms[..., floor_K, :].sum(axis=-2), terms[..., ~floor_K, :].sum(axis=-2)


def power_sum(
    name: str,
    terms: tuple[Term, ...],
    *,
    inputs: tuple[str, ...] = (),
    formula: str = "",
    text: str = "",
    source: str = "",
    mend_floor: str = "leave the floor out, or add runs over a wider range",
    signed: tuple[str, ...] = (),
    outer: str = "",
    warp: Warp | None = None,
    units: tuple[str, ...] | None = None,
    spans: Mapping[str, tuple[str, ...]] | None = None,
    kind: type[PowerSum] = PowerSum,
    **more: Any,
) -> Form:
    """A form L = sum over terms of coefficient * prod(input ** -exponent).

    All parameters are positive but those in ``signed``. With ``outer`` the terms other than floors are summed
    and raised to that exponent; with ``warp`` the terms see changed inputs. ``kind`` may print it otherwise.
    ``text`` is the formula with its parameters in braces, unless given; ``inputs`` are those of the terms.
    """
    acting = [(name, exponent) for term in terms for name, exponent in term.exponents]
    inputs = inputs or tuple(dict.fromkeys(name for name, _ in acting))
    # One exponent may act on several terms.
    in_terms = dict.fromkeys(name for term in terms for name in term.parameters)
    in_warp, plain = (warp.parameters, warp.units) if warp else ((), {})
    names = (*in_terms, *in_warp, *([outer] if outer else []))
    if spans is None:  # each exponent needs a range of the input that its term sees
        spans = {name: tuple(e for seen, e in acting if plain.get(seen, seen) == name) for name in inputs}
    # Of exponents, and of whatever else may have either sign but the floors.
    unbounded = {term.coefficient for term in terms} | (set(in_warp) - set(signed))
    limits = {n: SIGNED_LIMITS if n in signed else EXPONENT_LIMITS for n in names if n not in unbounded}
    return kind(
        name=name,
        formula=formula,
        text=text or re.sub(rf"\b({'|'.join(names)})\b", r"{\1}", formula),
        source=source,
        inputs=inputs,
        parameters=names,
        limits=limits,
        nested=_nested(terms, mend_floor, signed),
        units=inputs if units is None else units,
        spans=spans,
        signed=signed,
        terms=terms,
        outer=outer,
        warp=warp,
        **more,
    )


def _nested(terms: tuple[Term, ...], mend_floor: str, signed: tuple[str, ...]) -> tuple[Nested, ...]:
    """The sum without each of its terms in turn; a lone term without its slope."""
    nested: list[Nested] = []
    used: set[str] = set()
    # A loss that does not fall has no floor either: the slopes are asked first.
    for term in sorted(terms, key=lambda term: not term.exponents):
        exponents = [exponent for _, exponent in term.exponents if exponent not in used]
        used.update(exponents)
        if term.exponents:
            fixed = dict.fromkeys(exponents, 0.0)
            if len(terms) > 1:
                fixed = {term.coefficient: 0.0} | dict.fromkeys(exponents, 1.0)
            nested.append(flat_in(", ".join(name for name, _ in term.exponents), fixed))
        elif term.coefficient not in signed:
            reason = f"the floor {term.coefficient} is not told apart from 0"
            nested.append(Nested({term.coefficient: 0.0}, reason, mend_floor))
    return tuple(nested)
