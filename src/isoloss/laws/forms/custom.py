"""A form of your own from one function, in ten lines."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from isoloss.errors import InputError
from isoloss.laws.forms.form import Array, Form

_STEP = 1e-30


def from_function(
    name: str,
    loss: Callable[[Mapping[str, Array], Mapping[str, Array]], Array],
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
    is_signed = np.array([key in signed for key in parameters])

    def named(theta: Array) -> dict[str, Array]:
        plain = np.where(is_signed, theta, np.exp(np.where(is_signed, 0.0, theta)))
        return {key: plain[..., i, None] for i, key in enumerate(parameters)}

    def value(theta: Array, z_In: Array) -> Array:
        x = dict(zip(inputs, np.exp(z_In), strict=True))
        return np.broadcast_to(loss(named(theta), x), (*theta.shape[:-1], z_In.shape[1]))

    def gradient(theta: Array, z_In: Array) -> Array:
        # One coordinate at a time, relative to its size: parameters may differ by many powers of ten.
        columns = []
        for i in range(len(parameters)):
            step = theta.astype(complex)
            step[..., i] += 1j * _STEP
            columns.append(np.imag(value(step, z_In)) / _STEP)
        return np.stack(columns, axis=-1)

    def start(z_In: Array, y_n: Array, w_n: Array) -> Array:
        rows = np.array(list(product(*starts.values())), dtype=float)
        return np.where(is_signed, rows, np.log(np.where(is_signed, 1.0, rows)))

    return Form(
        name=name,
        formula=formula,
        text=formula + " with " + ", ".join(f"{key} = {{{key}}}" for key in parameters),
        source=source,
        inputs=tuple(inputs),
        parameters=parameters,
        limits=dict(limits or {}),
        value=value,
        gradient=gradient,
        start=start,
        unscale=lambda theta, log_scale_I, log_loss_scale: theta,
        loss=lambda params, x: loss(params, {key: np.asarray(v) for key, v in x.items()}),
        units=None,
        signed=tuple(signed),
    )
