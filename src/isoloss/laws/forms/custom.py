"""A form of your own from one function, in ten lines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoloss.errors import InputError
from isoloss.laws.forms.form import STEP, Array, Form


@dataclass(frozen=True, kw_only=True, eq=False)
class FromFunction(Form):
    """A form of one function of plain parameters and inputs; its gradient is a complex step."""

    function: Callable[[Mapping[str, Any], Mapping[str, Any]], Array]
    starts: Mapping[str, Sequence[float]]

    @cached_property
    def _signed_p(self) -> NDArray[np.bool_]:
        return np.array([name in self.signed for name in self.parameters])

    def value(self, theta: Array, z_In: Array) -> Array:
        signed_p = self._signed_p
        plain = np.where(signed_p, theta, np.exp(np.where(signed_p, 0.0, theta)))
        params = {name: plain[..., i, None] for i, name in enumerate(self.parameters)}
        x = dict(zip(self.inputs, np.exp(z_In), strict=True))
        return np.broadcast_to(self.function(params, x), (*theta.shape[:-1], z_In.shape[1]))

    def gradient(self, theta: Array, z_In: Array) -> Array:
        # One coordinate at a time, relative to its size: parameters may differ by many powers of ten.
        columns = [
            np.imag(self.value(theta + 1j * STEP * unit_p, z_In)) / STEP
            for unit_p in np.eye(len(self.parameters))
        ]
        return np.stack(columns, axis=-1)

    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        rows = np.array(list(product(*self.starts.values())), dtype=float)
        return np.where(self._signed_p, rows, np.log(np.where(self._signed_p, 1.0, rows)))

    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        return theta

    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        return self.function(params, {name: np.asarray(values) for name, values in x.items()})


def from_function(
    name: str,
    loss: Callable[[Mapping[str, Any], Mapping[str, Any]], Array],
    *,
    formula: str,
    inputs: Sequence[str],
    starts: Mapping[str, Sequence[float]],
    signed: Sequence[str] = (),
    limits: Mapping[str, tuple[float, float]] | None = None,
    source: str = "yours",
) -> Form:
    """A form whose loss is ``loss(params, inputs)``, in plain units.

    ``starts`` names the parameters, in order, each with the values to start from. Parameters are positive but
    those in ``signed``. The gradient is a complex step, so ``loss`` must be smooth arithmetic of NumPy that
    takes complex numbers: no abs, no comparison. Register it to fit it: ``register(from_function(...))``.
    """
    parameters = tuple(starts)
    if unknown := set(signed) - set(parameters):
        raise InputError(f"signed names {', '.join(sorted(unknown))}", where=name, mend="name parameters")
    return FromFunction(
        name=name,
        formula=formula,
        text=formula + " with " + ", ".join(f"{key} = {{{key}}}" for key in parameters),
        source=source,
        inputs=tuple(inputs),
        parameters=parameters,
        limits=dict(limits or {}),
        units=None,
        signed=tuple(signed),
        function=loss,
        starts=starts,
    )
