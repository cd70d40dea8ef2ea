"""How the best size grows with compute, by every method that the runs allow, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import Refusal, attempt, refuse_rows
from isoloss.laws import Fit, FitStatus, fit
from isoloss.laws.envelope import Envelope, envelope
from isoloss.laws.isoflop import IsoFlop, isoflop
from isoloss.laws.isoflop_bias import grid_bias
from isoloss.laws.minima import METHODS
from isoloss.plans.curve import allocation_exponent

T = TypeVar("T")


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
    budgets = partial(isoflop, flops, params, loss, tokens=tokens, noise=noise, level=level)
    chosen = attempt(budgets, method=method)
    if isinstance(chosen, Refusal) and run is None:
        raise chosen
    law = attempt(_law, flops, params, loss, tokens, level)
    readings = {method: chosen}
    for other in METHODS:
        if other != method:
            readings[other] = chosen if isinstance(chosen, Refusal) else attempt(budgets, method=other)
    choice = "hull" if run is None else "running-minimum"
    outer = attempt(
        lambda: refuse_rows(envelope, flops, params, loss, tokens=tokens, run=run, choice=choice, level=level)
    )
    each = (
        *(
            _estimate(f"IsoFLOP, {name}", reading, partial(_budget_exponent, law))
            for name, reading in readings.items()
        ),
        _estimate(f"envelope, {choice}", outer, lambda hull: (hull.params.exponent, hull.params_interval)),
        _estimate("law, chinchilla", law, lambda fitted: allocation_exponent(fitted, level=level) or ()),
    )
    return ExponentsByMethod(
        isoflop=None if isinstance(chosen, Refusal) else chosen,
        envelope=None if isinstance(outer, Refusal) else outer,
        law=None if isinstance(law, Refusal) else law,
        each=each,
        level=level,
    )


def _law(flops: ArrayLike, params: ArrayLike, loss: ArrayLike, tokens: ArrayLike | None, level: float) -> Fit:
    N = np.asarray(params, dtype=np.float64)
    D = np.asarray(flops, dtype=np.float64) / (6 * N) if tokens is None else tokens
    return fit("chinchilla", {"params": N, "tokens": D}, loss, objective="huber-log", level=level)


def _estimate(
    method: str, reading: T | Refusal, exponent_of: Callable[[T], tuple[Any, ...]]
) -> ExponentEstimate:
    """``exponent_of`` a reading gives exponent, interval and bias, the last of which may be left out."""
    outcome = reading if isinstance(reading, Refusal) else attempt(exponent_of, reading)
    if isinstance(outcome, Refusal):
        return ExponentEstimate(method, refused=outcome.what)
    return ExponentEstimate(method, *outcome)


def _budget_exponent(law: Fit | Refusal, reading: IsoFlop) -> tuple[Any, ...]:
    bias = None
    if isinstance(law, Fit) and law.status is FitStatus.CONVERGED:
        grid = grid_bias(reading, law)
        bias = grid.read - grid.exponent
    return reading.params.exponent, reading.params.interval, bias
