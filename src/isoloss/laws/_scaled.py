"""A form on scaled data, with some of its parameters held at plain values or tied to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isoloss.distributions import t_quantile
from isoloss.errors import InputError
from isoloss.laws.forms import ZERO, Array, Form

Interval = tuple[float | None, float | None]


@dataclass(frozen=True)
class Units:
    """The middle of the data: inputs and losses were divided by these before the fit."""

    inputs: dict[str, float]
    loss: float


def middles(law: Form, ranges: Mapping[str, tuple[float, float]]) -> Array:
    """The log of each unit's middle over the inputs measured in it, shape (I,).

    0 for inputs without a unit or a range, and for laws written in plain units.
    """
    out = np.zeros(len(law.inputs))
    for i, unit in enumerate(law.units or ()):
        alike = [name for name, other in zip(law.inputs, law.units or (), strict=True) if other == unit]
        ends = [end for name in alike for end in ranges.get(name, ())]
        if unit != "1" and ends:
            out[i] = (np.log(min(ends)) + np.log(max(ends))) / 2
    return out


@dataclass(frozen=True)
class ScaledForm:
    """What a solver moves is ``phi_..F``, the coordinates left free; ``theta_..p`` are all of them.

    ``held_kK`` are the plain coordinates of the K held parameters, one row for all starts or one a start.
    """

    form: Form
    z_In: Array
    log_scale_I: Array
    log_loss_scale: float
    follows_p: NDArray[np.int64]
    held_K: NDArray[np.int64]
    held_kK: Array

    @cached_property
    def free(self) -> list[int]:
        """The index in theta of each free coordinate."""
        follows, first = np.unique(self.follows_p, return_index=True)
        return first[follows >= 0].tolist()

    @property
    def free_names(self) -> list[str]:
        return [self.form.parameters[index] for index in self.free]

    @property
    def held_names(self) -> list[str]:
        return [self.form.parameters[index] for index in self.held_K]

    @property
    def units(self) -> Units:
        inputs = dict(zip(self.form.inputs, np.exp(self.log_scale_I).tolist(), strict=True))
        return Units(inputs, float(np.exp(self.log_loss_scale)))

    @property
    def signed_F(self) -> NDArray[np.bool_]:
        """Which free coordinates may have either sign, and so are no logarithms."""
        return np.array([name in self.form.signed for name in self.free_names], dtype=bool)

    def take(self, keep_S: NDArray[np.bool_]) -> "ScaledForm":
        return self if self.held_kK.ndim == 1 else replace(self, held_kK=self.held_kK[keep_S])

    def value(self, phi: Array) -> Array:
        return self.form.value(self.theta(phi), self.z_In)

    def gradient(self, phi: Array) -> Array:
        theta = self.theta(phi)
        gradient = self.form.gradient(theta, self.z_In)
        return gradient if not self.constrained else gradient @ self.chain(theta)

    @cached_property
    def constrained(self) -> bool:
        return len(self.free) < len(self.follows_p)

    def unscale(self, theta: Array) -> Array:
        return self.form.unscale(theta, self.log_scale_I, self.log_loss_scale)

    def theta(self, phi: Array) -> Array:
        if not self.constrained:
            return phi
        theta = np.zeros((*phi.shape[:-1], len(self.follows_p)), dtype=phi.dtype)
        free = self.follows_p >= 0
        theta[..., free] = phi[..., self.follows_p[free]]
        theta[..., self.held_K] = self.held_kK
        moving = self._moving
        # Coordinates of coefficients shift with the exponents; two steps suffice, as they do so linearly.
        for _ in range(3 if len(moving) else 0):
            rows = self.held_K[moving]
            miss = self.held_kK[..., moving] - self.unscale(theta)[..., rows]
            if np.max(np.abs(miss)) < 1e-13:
                break
            slopes = self.slopes(theta)[..., rows[:, None], rows]
            theta[..., rows] += np.linalg.solve(slopes, miss[..., None])[..., 0]
        return theta

    def chain(self, theta: Array) -> Array:
        """Derivative of theta by phi, shape (..., p, F)."""
        moving, select = self._moving, self._select
        if not len(moving):
            return select
        rows = self.held_K[moving]
        slopes = self.slopes(theta)[..., rows, :]
        out = np.broadcast_to(select, (*theta.shape[:-1], *select.shape)).copy()
        out[..., rows, :] = -np.linalg.solve(slopes[..., rows], slopes @ select)
        return out

    @cached_property
    def _select(self) -> Array:
        """Which free coordinate each of theta follows, shape (p, F)."""
        return (self.follows_p[:, None] == np.arange(len(self.free))).astype(float)

    @cached_property
    def _moving(self) -> NDArray[np.int64]:
        """Which of the held parameters are not 0 and have other coordinates in scaled units than in plain."""
        probe = 0.1 + 0.01 * np.arange(len(self.follows_p))
        shifts = self.unscale(probe) != probe
        return np.flatnonzero(np.any(np.atleast_2d(self.held_kK) > ZERO, axis=0) & shifts[self.held_K])

    def start(self, params: Mapping[str, float]) -> Array:
        """The free coordinates of plain parameters. Raises InputError if one is missing or cannot be."""
        names = self.form.parameters
        if unknown := set(params) - set(names):
            raise InputError(f"a start names {min(unknown)!r}", where=self.form.name, mend="name parameters")
        if missing := set(self.free_names) - set(params):
            raise InputError(
                f"a start lacks {', '.join(sorted(missing))}", where=self.form.name, mend="give it"
            )
        given = {name: self.form.coordinate(name, params.get(name, 1.0)) for name in names}
        loose = replace(self, follows_p=np.arange(len(names)), held_K=self.held_K[:0], held_kK=np.zeros(0))
        return loose.hold(given).theta(np.zeros(0))[self.free]

    def slopes(self, theta: Array) -> Array:
        """Derivative of the plain coordinates by theta, shape (..., p, p)."""
        return self.form.slopes(theta, self.log_scale_I, self.log_loss_scale)

    def hold(self, fixed: Mapping[str, float | Array]) -> "ScaledForm":
        """The same with more parameters held, at one plain coordinate each or one for each start."""
        follows_p = self.follows_p.copy()
        held = {int(index): self.held_kK[..., k] for k, index in enumerate(self.held_K)}
        for name, value in fixed.items():
            index = self.form.parameters.index(name)
            # Whatever is tied to a parameter that is now held is held at the same value.
            tied = np.flatnonzero(self.follows_p == self.follows_p[index])
            rows = tied if self.follows_p[index] >= 0 else [index]
            follows_p[rows] = -1
            held |= {int(row): value for row in rows}
        values = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in held.values()))
        free = follows_p >= 0
        follows_p[free] = np.unique(follows_p[free], return_inverse=True)[1]
        return replace(self, follows_p=follows_p, held_K=np.array(list(held)), held_kK=np.stack(values, -1))

    def kappa_errors(self, theta: Array, covariance: Array) -> tuple[Array, Array]:
        """Coordinates of the plain parameters and their standard errors; 0 for held ones."""
        slopes = self.slopes(theta)
        variances = np.einsum("...ij,...jk,...ik->...i", slopes, covariance, slopes)
        return self.unscale(theta), np.sqrt(np.maximum(variances, 0.0))

    def t_intervals(
        self, theta: Array, covariance: Array | None, df: int, level: float
    ) -> tuple[dict[str, float | None], dict[str, Interval | None]]:
        """Standard errors of the plain parameters, and t intervals on their own scale; None for held ones."""
        law, held = self.form, self.held_names
        errors: dict[str, float | None] = dict.fromkeys(law.parameters)
        intervals: dict[str, Interval | None] = dict.fromkeys(law.parameters)
        if covariance is None:
            return errors, intervals
        reach = t_quantile(level, df)
        for name, middle, error in zip(law.parameters, *self.kappa_errors(theta, covariance), strict=True):
            if name in held:
                continue
            signed = name in law.signed
            errors[name] = float(error if signed else np.exp(middle) * error)
            low, high = (plain_end(middle + side * reach * error, signed) for side in (-1, 1))
            intervals[name] = (low, high)
        return errors, intervals


def plain_values(kappa_S: Array, signed: bool) -> Array:
    """In plain units, kept within what a float holds."""
    return kappa_S if signed else np.exp(np.clip(kappa_S, -700, 700))


def plain_end(kappa: float, signed: bool) -> float | None:
    """An end of an interval in plain units; None where it exceeds every float or is not there."""
    if signed:
        return float(kappa) if np.isfinite(kappa) else None
    return float(np.exp(kappa)) if -700 < kappa < 700 else None


def scaled_form(
    form: Form,
    z_In: Array,
    log_scale_I: Array,
    log_loss_scale: float,
    fixed: Mapping[str, float],
    tied: Sequence[Sequence[str]] = (),
) -> ScaledForm:
    """``fixed`` holds plain values; each group in ``tied`` shares one value.

    Raises InputError for names that the law does not have and for a tie of two kinds of number.
    """
    check_names(form, list(fixed))
    follows_p = np.arange(len(form.parameters))
    for group in tied:
        _check_tie(form, group)
        joined = follows_p[[form.parameters.index(name) for name in group]]
        follows_p[np.isin(follows_p, joined)] = joined.min()
    follows_p = np.unique(follows_p, return_inverse=True)[1]
    none_held = np.array([], dtype=int)
    whole = ScaledForm(form, z_In, log_scale_I, log_loss_scale, follows_p, none_held, np.zeros(0))
    if not fixed:
        return whole
    return whole.hold({name: form.coordinate(name, value) for name, value in fixed.items()})


def check_names(form: Form, names: Sequence[str]) -> None:
    """Raises InputError for one that is no parameter."""
    for name in names:
        if name not in form.parameters:
            mend = f"it has {', '.join(form.parameters)}"
            raise InputError(f"there is no parameter {name!r}", where=form.name, mend=mend)


def _check_tie(form: Form, group: Sequence[str]) -> None:
    if isinstance(group, str) or len(group) < 2:
        mend = "give groups of two names, such as [('a', 'b')]"
        raise InputError(f"{group!r} ties nothing", where=form.name, mend=mend)
    check_names(form, group)
    what = f"{', '.join(group)} cannot be tied"
    if any(name not in form.limits for name in group):
        raise InputError(what, where=form.name, mend="tie exponents only")
    if len({name in form.signed for name in group}) > 1:
        raise InputError(what, where=form.name, mend="one of them may be negative")
