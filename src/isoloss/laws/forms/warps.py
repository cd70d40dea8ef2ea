"""Inputs as a law sees them: shifted, repeated, looped, with embeddings counted."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from isoloss.laws.forms.form import Array

Slopes = Callable[[], Mapping[tuple[int, str], Array]]

_HIGHEST = 30.0  # of the logarithm of a half-life: beyond it repeats are as good as new to rounding


class Warp(ABC):
    """``parameters`` are its own; the terms see the J inputs named in ``sees``.

    ``starts`` holds coordinates to start each parameter from, ``units`` the plain input whose scale a seen
    one has, ``rescales`` the parameters whose plain coordinates differ from the scaled ones.
    """

    parameters: tuple[str, ...]
    sees: tuple[str, ...]
    starts: Mapping[str, tuple[float, ...]]
    units: Mapping[str, str]
    rescales: tuple[str, ...] = ()

    @abstractmethod
    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Sequence[Array], Slopes]:
        """The seen inputs, J rows z_..n, and what gives the derivatives of row j by a parameter's coordinate.

        ``theta`` maps each parameter of the law to its coordinate.
        """

    @abstractmethod
    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        """The same change in plain units."""

    def unscale(self, name: str, theta: Mapping[str, Array], log_scale: Mapping[str, float]) -> Array:
        """The plain coordinate of a parameter in ``rescales``."""
        return theta[name]


class Shifted(Warp):
    """x + t for each input x and its shift t."""

    def __init__(self, inputs: tuple[str, ...], shifts: tuple[str, ...]) -> None:
        self.inputs = inputs
        self.parameters = self.rescales = shifts
        self.sees = tuple(f"shifted_{name}" for name in inputs)
        self.starts = dict.fromkeys(shifts, (-5.0,))
        self.units = dict(zip(self.sees, inputs, strict=True))

    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Sequence[Array], Slopes]:
        rows: list[Array] = []
        slopes: dict[tuple[int, str], Array] = {}
        for i, name in enumerate(self.parameters):
            x, t = np.exp(z_In[i]), np.exp(theta[name])[..., None]
            rows.append(np.log(x + t))
            slopes[i, name] = t / (x + t)
        return rows, lambda: slopes

    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        shifted = zip(self.sees, self.inputs, self.parameters, strict=True)
        return {seen: np.asarray(x[name]) + params[shift] for seen, name, shift in shifted}

    def unscale(self, name: str, theta: Mapping[str, Array], log_scale: Mapping[str, float]) -> Array:
        return theta[name] + log_scale[self.inputs[self.parameters.index(name)]]


def _saturating(x: Array, half_life: Array) -> Array:
    """R* (1 - exp(-x)) for x = R / R*."""
    return half_life * -np.expm1(-x)


class Repeats(Warp):
    """Data and parameters worth less when repeated: N', D' of Muennighoff et al.

    D' = U_D (1 + R*_D (1 - exp(-R_D / R*_D))) with R_D = D / U_D - 1, and N' likewise with U_N, the
    compute-optimal N for U_D unique tokens, log U_N = (log(alpha A / (beta B)) + beta log U_D) / alpha, never
    above N.
    """

    parameters = ("R_D", "R_N")
    sees = ("effective_params", "effective_tokens")
    starts: Mapping[str, tuple[float, ...]] = {"R_D": (1.0, 2.7, 4.6), "R_N": (0.5, 1.7, 3.5)}
    units: Mapping[str, str] = {"effective_params": "params", "effective_tokens": "tokens"}

    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Sequence[Array], Slopes]:
        z_N, z_D, z_U = z_In
        z_U = np.minimum(z_U, z_D)  # no more is unique than was seen
        alpha, beta = (np.exp(np.minimum(theta[name], 5.0))[..., None] for name in ("alpha", "beta"))
        a, b, A, B = (theta[name][..., None] for name in ("alpha", "beta", "A", "B"))
        balance = a + A - b - B + beta * z_U
        best = balance / alpha
        short = np.real(best) < z_N  # more parameters than the unique tokens can use
        z_M = np.where(short, best, z_N)
        extra_N = np.exp(np.minimum(np.where(short, z_N - best, 0.0), 300.0)) - 1
        star_N, star_D = (np.exp(np.minimum(theta[name], _HIGHEST))[..., None] for name in ("R_N", "R_D"))
        x_N, x_D = extra_N / star_N, (np.exp(z_D - z_U) - 1) / star_D
        more_N, more_D = _saturating(x_N, star_N), _saturating(x_D, star_D)
        eff_N, eff_D = 1 + more_N, 1 + more_D

        def slopes() -> Mapping[tuple[int, str], Array]:
            gone_N, gone_D = np.exp(-x_N), np.exp(-x_D)
            # One that has run away stands still: a step along rounding would spoil the step of all others.
            here_N, here_D = (np.real(theta[name][..., None]) < _HIGHEST for name in ("R_N", "R_D"))
            # d log N' / d log U_N, zero where U_N = N.
            pull = np.where(short, 1 - (extra_N + 1) * gone_N / eff_N, 0.0) / alpha
            return {
                (0, "R_N"): here_N * (more_N - extra_N * gone_N) / eff_N,
                (1, "R_D"): here_D * (more_D - star_D * x_D * gone_D) / eff_D,
                (0, "A"): pull,
                (0, "B"): -pull,
                (0, "alpha"): pull * (1 - balance),
                (0, "beta"): pull * (beta * z_U - 1),
            }

        return (z_M + np.log(eff_N), z_U + np.log(eff_D)), slopes

    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        N, D, U = (np.asarray(x[name], dtype=float) for name in ("params", "tokens", "unique_tokens"))
        U = np.minimum(U, D)
        alpha, beta = params["alpha"], params["beta"]
        best = (alpha * params["A"] / (beta * params["B"])) ** (1 / alpha) * U ** (beta / alpha)
        M = np.minimum(N, best)
        more_N, more_D = (
            _saturating(ratio / params[star], params[star])
            for ratio, star in ((N / M - 1, "R_N"), (D / U - 1, "R_D"))
        )
        return dict(zip(self.sees, (M * (1 + more_N), U * (1 + more_D)), strict=True))


class LoopedParams(Warp):
    """N_eff = N_once + r^phi N_rec, and D as it is."""

    parameters = ("phi",)
    sees = ("params_effective", "tokens")
    starts: Mapping[str, tuple[float, ...]] = {"phi": (0.0, 0.5, 1.0)}
    units: Mapping[str, str] = {"params_effective": "params_recurrent"}

    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Sequence[Array], Slopes]:
        z_once, z_rec, z_r, z_D = z_In
        grown = np.exp(z_rec + theta["phi"][..., None] * z_r)
        whole = np.exp(z_once) + grown
        return (np.log(whole), z_D), lambda: {(0, "phi"): grown * z_r / whole}

    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        grown = np.asarray(x["params_recurrent"]) * np.asarray(x["recurrence"]) ** params["phi"]
        return {"params_effective": np.asarray(x["params_once"]) + grown, "tokens": np.asarray(x["tokens"])}


class Embedded(Warp):
    """N + g N^(1/3): non-embedding parameters N to all parameters, at a fixed vocabulary and aspect ratio."""

    parameters = ("g",)
    sees = ("params_all", "tokens")
    starts: Mapping[str, tuple[float, ...]] = {"g": (-1.0,)}
    units: Mapping[str, str] = {"params_all": "params"}
    rescales = ("g",)

    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Sequence[Array], Slopes]:
        z_N, z_D = z_In
        head = np.exp(theta["g"][..., None] + z_N / 3)
        whole = np.exp(z_N) + head
        return (np.log(whole), z_D), lambda: {(0, "g"): head / whole}

    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        whole = np.asarray(x["params"]) + params["g"] * np.asarray(x["params"]) ** (1 / 3)
        return {"params_all": whole, "tokens": np.asarray(x["tokens"])}

    def unscale(self, name: str, theta: Mapping[str, Array], log_scale: Mapping[str, float]) -> Array:
        return theta[name] + 2 / 3 * log_scale["params"]


class Steeper(Warp):
    """Position with an exponent that grows with size: T^-(p N^q) is (T^(N^q))^-p."""

    parameters = ("q",)
    sees = ("params", "bent_position")
    starts: Mapping[str, tuple[float, ...]] = {"q": (0.0,)}
    units: Mapping[str, str] = {"bent_position": "position"}
    rescales = ("p",)

    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Sequence[Array], Slopes]:
        z_N, z_T = z_In
        bent = z_T * np.exp(theta["q"][..., None] * z_N)
        return (z_N, bent), lambda: {(1, "q"): bent * z_N}

    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        N, T = np.broadcast_arrays(np.asarray(x["params"], float), np.asarray(x["position"], float))
        return {"params": N, "bent_position": T ** (N ** params["q"])}

    def unscale(self, name: str, theta: Mapping[str, Array], log_scale: Mapping[str, float]) -> Array:
        # p N^q with N in units of N0 is (p N0^q) (N / N0)^q.
        return theta[name] - theta["q"] * log_scale["params"]
