"""Loss over parameters N and tokens D, as a sum of a floor and two falling terms, and what grew from it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isoloss.laws.forms.form import Array, Nested
from isoloss.laws.forms.sums import PowerSum, Term, power_sum
from isoloss.laws.forms.warps import Embedded, Repeats

PEARCE_SONG_G = 47_491.0  # arXiv 2406.12907: vocabulary 32,000, aspect ratio about 39

POWER_FLOOR = power_sum(
    "power-floor",
    (Term("E"), Term("A", (("params", "a"),))),
    formula="L = E + A N^-a",
    source="Hoffmann et al. 2022, arXiv 2203.15556, eq. 2 at unlimited data",
    mend_floor="use the law 'power', or add larger or smaller models",
)

_FLOOR, _PARAMS, _TOKENS = Term("E"), Term("A", (("params", "alpha"),)), Term("B", (("tokens", "beta"),))
_MEND = "add larger models or more tokens"

CHINCHILLA = power_sum(
    "chinchilla",
    (_FLOOR, _PARAMS, _TOKENS),
    formula="L = E + A N^-alpha + B D^-beta",
    source="Hoffmann et al. 2022, arXiv 2203.15556, eq. 2",
    mend_floor=_MEND,
)

OUTER_EXPONENT = power_sum(
    "outer-exponent",
    (_FLOOR, _PARAMS, _TOKENS),
    formula="L = E + (A N^-alpha + B D^-beta)^gamma",
    source="xLSTM scaling laws, arXiv 2510.02228; gamma = 1 is Hoffmann et al.",
    mend_floor=_MEND,
    outer="gamma",
    rugged=True,
)

_REPEATS = power_sum(
    "data-constrained",
    (_FLOOR, Term("A", (("effective_params", "alpha"),)), Term("B", (("effective_tokens", "beta"),))),
    inputs=("params", "tokens", "unique_tokens"),
    formula="L = E + A N'^-alpha + B D'^-beta, D' = U_D (1 + R_D (1 - exp(-(D/U_D - 1)/R_D))), N' likewise",
    text="L = {E} + {A} N'^-{alpha} + {B} D'^-{beta} with R_D = {R_D}, R_N = {R_N}",
    source="Muennighoff et al. 2023, arXiv 2305.16264",
    mend_floor=_MEND,
    warp=Repeats(),
    units=("params", "tokens", "tokens"),
    rugged=True,
)
DATA_CONSTRAINED = replace(
    _REPEATS,
    limits={**_REPEATS.limits, "R_D": (1e-2, 1e4), "R_N": (1e-2, 1e4)},
    nested=(
        *_REPEATS.nested,
        Nested(
            {"R_D": 1e4},
            "repeated data are not told apart from new data",
            "add runs that differ in their epochs alone, or more seeds",
        ),
        Nested(
            {"R_N": 1e4},
            "extra parameters are not seen to be wasted",
            "add larger models on few unique tokens",
        ),
    ),
)

PEARCE_SONG = power_sum(
    "pearce-song",
    (_FLOOR, Term("A", (("params_all", "alpha"),)), _TOKENS),
    inputs=("params", "tokens"),
    formula="L = E + A (N + g N^(1/3))^-alpha + B D^-beta, N non-embedding",
    text="L = {E} + {A} (N + {g} N^(1/3))^-{alpha} + {B} D^-{beta}",
    source="Pearce and Song 2024, arXiv 2406.12907; g = 47,491 at a vocabulary of 32,000",
    mend_floor=_MEND,
    warp=Embedded(),
    fixed={"g": PEARCE_SONG_G},
)


class Power(PowerSum):
    """L = (Nc / N) ** a. Inside, the coefficient Nc ** a is fitted: Nc itself is far outside the data."""

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        out = np.array(theta)
        out[..., 0] = (theta[..., 0] + log_loss_scale) / np.exp(theta[..., 1]) + log_scale_I[0]
        return out

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        return (params["Nc"] / np.asarray(x["params"])) ** params["a"]


POWER = power_sum(
    "power",
    (Term("Nc", (("params", "a"),)),),
    formula="L = (Nc/N)^a",
    source="Kaplan et al. 2020, arXiv 2001.08361, eq. 1.1",
    kind=Power,
)


class OptimalParams(PowerSum):
    """N_opt = G C^a. What it gives is a number of parameters, not a loss: inside it falls with 1 / C."""

    def value(self, theta: Array, z_In: Array) -> Array:
        return super().value(theta, -z_In)

    def gradient(self, theta: Array, z_In: Array) -> Array:
        return super().gradient(theta, -z_In)

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        return super().start(-z_In, y_n, w_n)

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        return super().unscale(theta, -log_scale_I, log_loss_scale)

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        return params["G"] * np.asarray(x["flops"]) ** params["a"]


OPTIMAL_PARAMS = replace(
    power_sum(
        "optimal-params",
        (Term("G", (("flops", "a"),)),),
        formula="N_opt = G C^a",
        source="Kaplan et al. 2020, arXiv 2001.08361, table 6; Hoffmann et al. 2022, approaches 1 and 2",
        kind=OptimalParams,
        gives="params",
    ),
    nested=(
        Nested(
            {"a": 0.0},
            "the growth of the best N with C is small beside its scatter about the law",
            "add budgets",
        ),
    ),
)
