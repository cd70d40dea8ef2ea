"""Where the numbers of a sum of power laws stand in theta."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoloss.laws.forms.form import Array


@dataclass(frozen=True)
class Term:
    """``coefficient * prod(input ** -exponent)``; without exponents it is a floor."""

    coefficient: str
    exponents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Layout:
    """Where the coefficients of K terms stand, and which of J exponents acts on which term and input.

    ``spread_JKI`` is 1 where exponent j acts on term k and input i: slopes_KI = exponents_J @ spread_JKI.
    """

    names: tuple[str, ...]
    coefficients_K: NDArray[np.int64]
    exponents_J: NDArray[np.int64]
    terms_J: NDArray[np.int64]
    inputs_J: NDArray[np.int64]
    spread_JKI: Array
    floor_K: NDArray[np.bool_]
    signed_J: NDArray[np.bool_]
    signed_K: NDArray[np.bool_]
    exponents_signed: bool
    coefficients_signed: bool
    outer: int | None


def parameters_of(terms: tuple[Term, ...], extra: tuple[str, ...], outer: str) -> tuple[str, ...]:
    """Each term's coefficient and then its exponents, those of the warp, the outer exponent."""
    names: list[str] = []
    for term in terms:
        names += [term.coefficient, *(exponent for _, exponent in term.exponents)]
    # One exponent may act on several terms.
    return (*dict.fromkeys(names), *extra, *([outer] if outer else []))


def layout_of(
    terms: tuple[Term, ...],
    names: tuple[str, ...],
    sees: tuple[str, ...],
    outer: str,
    signed: tuple[str, ...],
) -> Layout:
    """The layout of terms over the inputs that they see."""
    acting_J3 = np.array(
        [
            (names.index(exponent), k, sees.index(name))
            for k, term in enumerate(terms)
            for name, exponent in term.exponents
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    spread_JKI = np.zeros((len(acting_J3), len(terms), len(sees)))
    spread_JKI[np.arange(len(acting_J3)), acting_J3[:, 1], acting_J3[:, 2]] = 1.0
    signed_J = np.array([names[j] in signed for j in acting_J3[:, 0]], dtype=bool)
    signed_K = np.array([term.coefficient in signed for term in terms])
    return Layout(
        names=names,
        coefficients_K=np.array([names.index(term.coefficient) for term in terms]),
        exponents_J=acting_J3[:, 0],
        terms_J=acting_J3[:, 1],
        inputs_J=acting_J3[:, 2],
        spread_JKI=spread_JKI,
        floor_K=np.array([not term.exponents for term in terms]),
        signed_J=signed_J,
        signed_K=signed_K,
        exponents_signed=bool(signed_J.any()),
        coefficients_signed=bool(signed_K.any()),
        outer=names.index(outer) if outer else None,
    )
