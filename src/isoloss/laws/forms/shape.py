"""Loss over the shape of a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from isoloss.laws.forms.form import Array, Form, Nested
from isoloss.laws.forms.sums import Term, power_sum


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapeLaw(Form):
    """L = least (1 + curvature log(ratio / best)^2): a parabola in log ratio."""

    def value(self, theta: Array, z_In: Array) -> Array:
        log_least, best, bend = (theta[..., i, None] for i in range(3))
        return np.exp(log_least) * (1 + np.exp(bend) * (z_In[0] - best) ** 2)

    def gradient(self, theta: Array, z_In: Array) -> Array:
        log_least, best, bend = (theta[..., i, None] for i in range(3))
        least, curvature, away = np.exp(log_least), np.exp(bend), z_In[0] - best
        rise = least * curvature
        return np.stack([least + rise * away**2, -2 * rise * away, rise * away**2], axis=-1)

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        out = np.array(theta)
        out[..., 0] += log_loss_scale
        out[..., 1] += log_scale_I[0]
        return out

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        away = np.log(np.asarray(x["ratio"]) / params["best"])
        return params["least"] * (1 + params["curvature"] * away**2)

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        """A parabola in log ratio, and a few fixed curvatures beside it."""
        (z,) = z_In
        middles = (float(z[np.argmin(y_n)]), 0.0, float(z.min()), float(z.max()))
        out: list[list[float]] = []
        for middle, curvature in product(middles, (0.003, 0.03)):
            least = np.average(y_n / (1 + curvature * (z - middle) ** 2), weights=w_n)
            out.append([np.log(least), middle, np.log(curvature)])
        return np.array(out)


SHAPE = ShapeLaw(
    name="shape",
    formula="L = least (1 + curvature log(ratio / best)^2)",
    text="L = {least} (1 + {curvature} log(ratio / {best})^2)",
    source=(
        "ours, for Kaplan et al. 2020 (arXiv 2001.08361) figure 5: ratio is d_ff/d_model, d_model/n_layer or "
        "d_model/n_head at fixed N"
    ),
    inputs=("ratio",),
    parameters=("least", "best", "curvature"),
    limits={"best": (1e-6, 1e6)},
    nested=(
        Nested(
            {"curvature": 0.0, "best": 1.0},
            "what the loss gains from the ratio is small beside its scatter about the law",
            "add more extreme shapes, or more seeds",
        ),
    ),
    units=("ratio",),
)

WIDTH_DEPTH = power_sum(
    "width-depth",
    (
        Term("E"),
        Term("A", (("d_model", "a"),)),
        Term("B", (("n_layer", "b"),)),
        Term("C", (("tokens", "c"),)),
    ),
    formula="L = E + A d_model^-a + B n_layer^-b + C D^-c",
    source="Gemstones, arXiv 2502.06857",
    mend_floor="add larger models or more tokens",
)
