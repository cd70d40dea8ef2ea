"""Kaplan et al. 2020 (arXiv 2001.08361): loss over parameters with tokens, and over parameters with steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from isoloss.laws.forms.coefficients import not_negative
from isoloss.laws.forms.form import Array, Form, Nested, flat_in
from isoloss.laws.forms.sums import EXPONENT_LIMITS, Term, power_sum

_NEWTON = 30


_OUTER_SUM = power_sum(
    "outer-sum",
    (Term("A", (("params", "u"),)), Term("B", (("tokens", "v"),))),
    outer="g",
)
_FREE = np.array([0, 1, 2, 4])  # A, u, B, g; v stands fourth and stays 1


def _log_coefficients(basis_n2: Array, target_n: Array, w_n: Array) -> Array:
    root_n = np.sqrt(w_n)
    return np.log(np.maximum(not_negative((basis_n2 * root_n[:, None]).T[None], target_n * root_n)[0], 0.1))


def _whole(theta: Array) -> Array:
    out = np.zeros((*theta.shape[:-1], 5), dtype=theta.dtype)
    out[..., _FREE] = theta
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class KaplanND(Form):
    """[(Nc/N)^(aN/aD) + Dc/D]^aD; inside, (A N^-u + B D^-v)^aD with v held at 1 and u = aN / aD."""

    def value(self, theta: Array, z_In: Array) -> Array:
        return _OUTER_SUM.value(_whole(theta), z_In)

    def gradient(self, theta: Array, z_In: Array) -> Array:
        return _OUTER_SUM.gradient(_whole(theta), z_In)[..., _FREE]

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        out = []
        for u, g in product((0.3, 0.7, 1.5), (0.05, 0.1, 0.3)):
            basis_n2 = np.exp(np.stack([-u * z_In[0], -z_In[1]], axis=1))
            log_A, log_B = _log_coefficients(basis_n2, y_n ** (1 / g), w_n)
            out.append([log_A, np.log(u), log_B, np.log(g)])
        return np.array(out)

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        log_A, u, log_B, g = np.moveaxis(theta, -1, 0)
        shift = log_loss_scale / np.exp(g)
        log_Nc = (log_A + shift) / np.exp(u) + log_scale_I[0]
        return np.stack([log_Nc, u + g, log_B + shift + log_scale_I[1], g], axis=-1)

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        ratio = params["aN"] / params["aD"]
        size, data = (params["Nc"] / np.asarray(x["params"])) ** ratio, params["Dc"] / np.asarray(x["tokens"])
        return (size + data) ** params["aD"]


KAPLAN_ND = KaplanND(
    name="kaplan-nd",
    formula="L = [(Nc/N)^(aN/aD) + Dc/D]^aD",
    text="L = [({Nc}/N)^({aN}/{aD}) + {Dc}/D]^{aD}",
    source="Kaplan et al. 2020, arXiv 2001.08361, eq. 1.5",
    inputs=("params", "tokens"),
    parameters=("Nc", "aN", "Dc", "aD"),
    limits={"aN": EXPONENT_LIMITS, "aD": EXPONENT_LIMITS},
    nested=(flat_in("tokens", {"Dc": 0.0}), flat_in("params", {"Nc": 0.0, "aN": 1.0})),
    units=("params", "tokens"),
)


def _parts(theta: Array, z_In: Array, loss: Array) -> tuple[Array, ...]:
    """Size term, step term, share of the critical batch in it, and its exponents, at a given loss."""
    z_N, z_S, z_B = z_In
    log_A, aN, log_G, aS, log_K, h = (theta[..., i, None] for i in range(6))
    aN, aS, h = (np.exp(np.minimum(e, 5.0)) for e in (aN, aS, h))
    size = np.exp(np.minimum(log_A - aN * z_N, 300.0))
    wait = np.exp(np.minimum(log_K - h * np.log(loss) - z_B, 300.0))  # B_crit / B
    steps = np.exp(np.minimum(log_G - aS * z_S + aS * np.log1p(wait), 300.0))
    return size, steps, wait, aN, aS, h


def _short(step: Array) -> Array:
    """A Newton step of at most 2; its imaginary part, of a complex step, stays."""
    short = np.clip(step.real, -2, 2)
    return short + 1j * step.imag if np.iscomplexobj(step) else short


@dataclass(frozen=True, kw_only=True, eq=False)
class KaplanNS(Form):
    """(Nc/N)^aN + (Sc/S_min)^aS. Inside, A N^-aN + G (S / (1 + K L^-h / B))^-aS with h = 1 / aB."""

    def value(self, theta: Array, z_In: Array) -> Array:
        """B_crit depends on the loss that it helps to give: Newton in log L, which falls on one root."""
        loss = np.ones((*theta.shape[:-1], z_In.shape[1]), dtype=np.result_type(theta, float))
        for _ in range(_NEWTON):
            size, steps, wait, _, aS, h = _parts(theta, z_In, loss)
            slope = -steps * aS * h * wait / (1 + wait)  # of the right side by log L
            step = (size + steps - loss) / (loss - slope)
            loss = loss * np.exp(_short(step))
            if np.max(np.abs(step)) < 1e-15:
                break
        return loss

    def gradient(self, theta: Array, z_In: Array) -> Array:
        loss = self.value(theta, z_In)
        size, steps, wait, aN, aS, h = _parts(theta, z_In, loss)
        z_N, z_S, _ = z_In
        share = wait / (1 + wait)
        slope = -steps * aS * h * share
        by = [
            size,
            -aN * z_N * size,
            steps,
            aS * (np.log1p(wait) - z_S) * steps,
            steps * aS * share,
            -steps * aS * share * h * np.log(loss),
        ]
        return np.stack([part / (1 - slope / loss) for part in by], axis=-1)

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        """With the observed loss in B_crit the two coefficients are linear."""
        out: list[list[float]] = []
        for aN, aS, log_K, h in product((0.05, 0.1, 0.3), (0.4, 0.8, 1.5), (-4.0, -1.0, 1.0), (3.0, 6.0)):
            wait = np.exp(log_K - h * np.log(y_n) - z_In[2])
            basis_n2 = np.stack([np.exp(-aN * z_In[0]), np.exp(-aS * z_In[1]) * (1 + wait) ** aS], axis=1)
            log_A, log_G = _log_coefficients(basis_n2, y_n, w_n)
            out.append([log_A, np.log(aN), log_G, np.log(aS), log_K, np.log(h)])
        return np.array(out)

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        log_A, aN, log_G, aS, log_K, h = np.moveaxis(theta, -1, 0)
        log_N, log_S, log_B = log_scale_I
        log_Nc = (log_A + log_loss_scale) / np.exp(aN) + log_N
        log_Sc = (log_G + log_loss_scale) / np.exp(aS) + log_S
        log_B_star = log_K + np.exp(h) * log_loss_scale + log_B
        return np.stack([log_Nc, aN, log_Sc, aS, log_B_star, -h], axis=-1)

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        columns = (np.asarray(x[name], float) for name in ("params", "steps", "batch_tokens"))
        N, S, B = np.broadcast_arrays(*columns)
        coordinates = [
            params["aN"] * np.log(params["Nc"]), np.log(params["aN"]), params["aS"] * np.log(params["Sc"]),
            np.log(params["aS"]), np.log(max(params["B_star"], 1e-300)), -np.log(params["aB"]),
        ]  # fmt: skip
        z_In = np.log(np.stack([N.ravel(), S.ravel(), B.ravel()]))
        return self.value(np.array(coordinates), z_In).reshape(N.shape)


KAPLAN_NS = KaplanNS(
    name="kaplan-ns",
    formula="L = (Nc/N)^aN + (Sc/S_min)^aS, S_min = S / (1 + B_crit/B), B_crit = B_star L^(-1/aB)",
    text="L = ({Nc}/N)^{aN} + ({Sc}/S_min)^{aS}, B_crit = {B_star} L^(-1/{aB})",
    source="Kaplan et al. 2020, arXiv 2001.08361, eqs. 1.4, 1.6 and 5.4",
    inputs=("params", "steps", "batch_tokens"),
    parameters=("Nc", "aN", "Sc", "aS", "B_star", "aB"),
    limits={"aN": EXPONENT_LIMITS, "aS": EXPONENT_LIMITS, "aB": (0.02, 10.0)},
    nested=(
        flat_in("steps", {"Sc": 0.0, "aS": 1.0, "B_star": 0.0, "aB": 1.0}),
        flat_in("params", {"Nc": 0.0, "aN": 1.0}),
        Nested(
            {"B_star": 0.0, "aB": 1.0},
            "what the loss gains from the batch is small beside its scatter about the law",
            "add runs at other batch sizes, or fix B_star = 0 and give the least steps S_min as steps",
        ),
    ),
    units=("params", "steps", "batch_tokens"),
    rugged=True,
    spans={"params": ("aN",), "steps": ("aS",), "batch_tokens": ("B_star",)},
)
