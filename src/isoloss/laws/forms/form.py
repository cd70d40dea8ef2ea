"""What a functional form is, and the table of their names.

A form works on scaled inputs and an unconstrained vector, so that no unit can change a fit:

* ``z_In``: for each of the I inputs, log(x / x0) at n points, where x0 is the middle of the data;
* ``theta_p``: the logarithms of the parameters in those units, or, for parameters that may have either sign
  (``signed``), the parameters themselves. The loss is divided by its own middle too.

``unscale`` turns ``theta_p`` and the units back into the same coordinates of the plain parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoloss.errors import InputError

Array = NDArray[np.inexact[Any]]
"""Real numbers, or complex ones where a derivative is a complex step."""

STEP = 1e-30  # of derivatives by complex steps: it vanishes beside any number, and leaves no rounding
ZERO = -700.0  # the coordinate of a positive parameter that is fixed at 0: its exponential is 1e-304


@dataclass(frozen=True)
class Nested:
    """The form with some parameters fixed: if it fits about as well, the data do not support the whole."""

    fixed: Mapping[str, float]
    reason: str
    mend: str


WORDS = {
    "params": "N",
    "params_effective": "N",
    "params_recurrent": "N inside the loop",
    "tokens": "D",
    "flops": "C",
    "recurrence": "the number of loops",
    "unique_tokens": "unique tokens",
    "batch_tokens": "the batch",
    "position": "the position",
}
"""What a sentence calls an input; others by their names."""


def flat_in(inputs: str, fixed: Mapping[str, float]) -> Nested:
    """The form in which the loss does not fall with ``inputs``."""
    names = (name.removeprefix("shifted_") for name in inputs.split(", "))
    inputs = " and ".join(WORDS.get(name, name.replace("_", " ")) for name in names)
    reason = f"the loss hardly falls with {inputs} beside its scatter about the law"
    return Nested(fixed, reason, f"add runs over a wider range of {inputs}, or more seeds")


@dataclass(frozen=True, kw_only=True, eq=False)
class Form(ABC):
    """One law: what describes it, and five methods that its class gives.

    ``units`` names what each input is measured in: inputs of one unit share a scale, those in "1" keep
    theirs. ``units`` of None says that the law is written in plain units altogether. ``limits`` bound plain
    parameters. ``fixed`` holds the parameters that are not fitted unless freed. ``correlated`` names an input
    along which the rows of one run share their noise; ``zeros`` the inputs that may be 0. ``spans`` names the
    parameters that an input's range must determine (all of them, where it is empty). ``rugged`` says that
    local optima are common, so that more starts are needed; ``gives`` what the value is, if not a loss.
    """

    name: str
    formula: str
    text: str
    source: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    limits: Mapping[str, tuple[float, float]]
    nested: tuple[Nested, ...] = ()
    units: tuple[str, ...] | None = ()
    signed: tuple[str, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)
    min_points: int = 0
    spans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    correlated: str | None = None
    zeros: tuple[str, ...] = ()
    rugged: bool = False
    gives: str = "loss"

    @abstractmethod
    def value(self, theta: Array, z_In: Array) -> Array:
        """Losses in units of the loss scale: theta_..p, z_In -> L_..n."""

    @abstractmethod
    def gradient(self, theta: Array, z_In: Array) -> Array:
        """Derivative of ``value`` by theta, shape (..., n, p)."""

    @abstractmethod
    def start(self, z_In: Array, y_n: Array, w_n: Array) -> Array:
        """Candidates to start from, shape (S, p), for losses y_n of weights w_n."""

    @abstractmethod
    def unscale(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        """kappa_..p, the same coordinates of the plain parameters."""

    def slopes(self, theta: Array, log_scale_I: Array, log_loss_scale: float) -> Array:
        """Derivative of ``unscale`` by theta, shape (..., p, p)."""
        steps = theta[..., None, :].real + 1j * STEP * np.eye(theta.shape[-1])
        return np.swapaxes(np.imag(self.unscale(steps, log_scale_I, log_loss_scale)) / STEP, -1, -2)

    @abstractmethod
    def loss(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Array:
        """The law as printed, in plain units."""

    def check_inputs(self, names: Iterable[str], mend: str) -> None:
        """Raises InputError unless these are the names of the inputs."""
        if set(names) != set(self.inputs):
            listed = ", ".join(sorted(map(str, names))) or "nothing"
            raise InputError(
                f"the law takes {', '.join(self.inputs)}, not {listed}", where=self.name, mend=mend
            )

    def with_signed_floor(self) -> "Form":
        """The form with a floor that may be negative; itself where it has none to free."""
        return self

    def plain(self, kappa_p: Sequence[float] | Array) -> dict[str, float]:
        """Parameters from their coordinates."""
        return {
            name: float(value) if name in self.signed else float(np.exp(value)) if value > ZERO else 0.0
            for name, value in zip(self.parameters, kappa_p, strict=True)
        }

    def coordinate(self, name: str, value: float) -> float:
        """The coordinate of one plain parameter. Raises InputError if it may not have that value."""
        if not isinstance(value, int | float | np.number):
            raise InputError(f"{name} cannot be {value!r}", where=self.name, mend="give a number")
        if not np.isfinite(value) or (name not in self.signed and value < 0):
            raise InputError(
                f"{name} cannot be {value}", where=self.name, mend="give a finite number, 0 or larger"
            )
        if name in self.signed:
            return float(value)
        return float(np.log(value)) if value > 0 else ZERO


FORMS: dict[str, Form] = {}


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
    if not isinstance(law, Form):
        raise InputError(f"a {type(law).__name__} is no law", mend="give its name, then the table")
    if FORMS.get(law.name) is not law:
        raise InputError("is not registered", where=law.name, mend="call register(form) first")
    return law
