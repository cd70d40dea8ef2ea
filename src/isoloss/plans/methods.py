"""How the best size grows with compute, by every method that the runs allow, side by side."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit, FitStatus, fit
from isoloss.laws.envelope import Envelope, envelope
from isoloss.laws.isoflop import IsoFlop, isoflop
from isoloss.laws.isoflop_bias import grid_bias
from isoloss.plans.curve import allocation_exponent

METHODS = ("akima", "parabola")


@dataclass(frozen=True)
class ExponentEstimate:
    """The exponent a of N* ~ C^a by one method, or why it gives none.

    ``bias`` is what its grid would add to the exponent if the law fitted to the same runs were exact.
    """

    method: str
    exponent: float | None = None
    interval: tuple[float, float] | None = None
    bias: float | None = None
    refused: str | None = None


@dataclass(frozen=True)
class ExponentsByMethod:
    """``isoflop`` is the reading by the chosen method, ``each`` all of them.

    ``law`` and ``envelope`` are behind one each; what is None was refused, which its estimate says.
    """

    isoflop: IsoFlop | None
    envelope: Envelope | None
    law: Fit | None
    each: tuple[ExponentEstimate, ...]
    level: float

    def to_json(self) -> dict[str, Any]:
        """The chosen reading with, under ``opinions``, the estimates of all methods."""
        chosen: dict[str, Any] = {} if self.isoflop is None else self.isoflop.to_json()
        return chosen | {"opinions": [asdict(estimate) for estimate in self.each], "level": self.level}


@dataclass(frozen=True)
class _Rows:
    """The runs, and the interval's level, as every method takes them."""

    flops: ArrayLike
    params: ArrayLike
    loss: ArrayLike
    tokens: ArrayLike | None
    run: Sequence[object] | None
    noise: float | None
    level: float

    def isoflop(self, method: str) -> IsoFlop:
        return isoflop(
            self.flops,
            self.params,
            self.loss,
            tokens=self.tokens,
            method=method,
            noise=self.noise,
            level=self.level,
        )

    def envelope(self, choice: str) -> Envelope:
        return envelope(
            self.flops,
            self.params,
            self.loss,
            tokens=self.tokens,
            run=self.run,
            choice=choice,
            level=self.level,
        )

    def law(self) -> Fit:
        N = np.asarray(self.params, dtype=np.float64)
        D = np.asarray(self.flops, dtype=np.float64) / (6 * N) if self.tokens is None else self.tokens
        inputs = {"params": N, "tokens": D}
        return fit("chinchilla", inputs, self.loss, objective="huber-log", level=self.level)


def exponents_by_method(
    flops: ArrayLike,
    params: ArrayLike,
    loss: ArrayLike,
    *,
    tokens: ArrayLike | None = None,
    run: Sequence[object] | None = None,
    method: str = "akima",
    noise: float | None = None,
    level: float = 0.9,
) -> ExponentsByMethod:
    """N*(C) by the chosen reading of each budget, by the other, by the envelope, and by a Chinchilla law.

    The envelope is that of the curves where ``run`` names them, else the convex hull of all points. The law
    is fitted to log losses (Huber, delta 1e-3) with D = C / (6 N) unless tokens are given; its interval comes
    from draws. Raises what ``isoflop`` raises for the chosen method, unless ``run`` says that the rows are
    curves, which have no budgets; what another method cannot say stands in its estimate.
    """
    rows = _Rows(flops, params, loss, tokens, run, noise, level)
    chosen, no_budgets, law, no_law = None, "", None, ""
    try:
        chosen = rows.isoflop(method)
    except Refusal as refusal:
        if run is None:
            raise
        no_budgets = refusal.what
    try:
        law = rows.law()
    except Refusal as refusal:
        no_law = refusal.what
    readings = [
        ExponentEstimate(f"IsoFLOP, {name}", refused=no_budgets)
        if chosen is None
        else _by_budgets(rows, name, chosen, law)
        for name in (method, *(other for other in METHODS if other != method))
    ]
    outer, by_envelope = _by_envelope(rows)
    each = (*readings, by_envelope, _by_law(law, no_law, level))
    return ExponentsByMethod(chosen, outer, law, each, level)


def _by_budgets(rows: _Rows, name: str, chosen: IsoFlop, law: Fit | None) -> ExponentEstimate:
    try:
        reading = chosen if name == chosen.method.value else rows.isoflop(name)
        bias = None
        if law is not None and law.status is FitStatus.CONVERGED:
            grid = grid_bias(reading, law.params)
            bias = grid.read - grid.exponent
    except Refusal as refusal:
        return ExponentEstimate(f"IsoFLOP, {name}", refused=refusal.what)
    return ExponentEstimate(f"IsoFLOP, {name}", reading.params.exponent, reading.params.interval, bias)


def _by_envelope(rows: _Rows) -> tuple[Envelope | None, ExponentEstimate]:
    choice = "hull" if rows.run is None else "running-minimum"
    try:
        outer = rows.envelope(choice)
    except (Refusal, InputError) as refusal:
        return None, ExponentEstimate(f"envelope, {choice}", refused=refusal.what)
    return outer, ExponentEstimate(f"envelope, {choice}", outer.params.exponent, outer.params_interval)


def _by_law(law: Fit | None, no_law: str, level: float) -> ExponentEstimate:
    estimate = None if law is None else allocation_exponent(law, level=level)
    if estimate is None:
        return ExponentEstimate("law, chinchilla", refused=no_law)
    return ExponentEstimate("law, chinchilla", estimate.exponent, estimate.interval)
