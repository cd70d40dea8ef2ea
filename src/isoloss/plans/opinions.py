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
class Opinion:
    """The exponent a of N* ~ C^a by one method, or why it gives none.

    ``bias`` is what its grid would add to the exponent if the law fitted to the same runs were exact.
    """

    method: str
    exponent: float | None
    interval: tuple[float, float] | None
    bias: float | None
    refused: str | None


@dataclass(frozen=True)
class Opinions:
    """``isoflop`` is the reading by the chosen method, ``each`` all of them.

    ``law`` and ``envelope`` are behind one each; what is None was refused, which its opinion says.
    """

    isoflop: IsoFlop | None
    envelope: Envelope | None
    law: Fit | None
    each: tuple[Opinion, ...]
    level: float

    def to_json(self) -> dict[str, Any]:
        """The chosen reading with, under ``opinions``, all of them."""
        read = {} if self.isoflop is None else self.isoflop.to_json()
        return read | {"opinions": [asdict(one) for one in self.each], "level": self.level}


def opinions(
    flops: ArrayLike,
    params: ArrayLike,
    loss: ArrayLike,
    *,
    tokens: ArrayLike | None = None,
    run: Sequence[object] | None = None,
    method: str = "akima",
    noise: float | None = None,
    level: float = 0.9,
) -> Opinions:
    """N*(C) by the chosen reading of each budget, by the other, by the envelope, and by a Chinchilla law.

    The envelope is that of the curves where ``run`` names them, else the convex hull of all points. The law
    is fitted to log losses (Huber, delta 1e-3) with D = C / (6 N) unless tokens are given; its interval comes
    from draws. Raises what ``isoflop`` raises for the chosen method, unless ``run`` says that the rows are
    curves, which have no budgets; what another method cannot say stands in its opinion.
    """
    chosen, no_budgets = None, ""
    try:
        chosen = isoflop(flops, params, loss, tokens=tokens, method=method, noise=noise, level=level)
    except Refusal as refusal:
        if run is None:
            raise
        no_budgets = refusal.what
    N = np.asarray(params, dtype=np.float64)
    D = np.asarray(flops, dtype=np.float64) / (6 * N) if tokens is None else tokens
    law, why = None, ""
    try:
        law = fit("chinchilla", {"params": N, "tokens": D}, loss, objective="huber-log", level=level)
    except Refusal as refusal:
        why = refusal.what
    names = (method, *(other for other in METHODS if other != method))
    each = [Opinion(f"IsoFLOP, {name}", None, None, None, no_budgets) for name in names]
    if chosen is not None:
        rows = (flops, params, loss, tokens, noise, level)
        each = [_read(name, chosen, law, rows) for name in names]
    outer, opinion = _by_envelope(flops, params, loss, tokens, run, level)
    return Opinions(chosen, outer, law, (*each, opinion, _by_law(law, why, level)), level)


def _by_envelope(
    flops: ArrayLike,
    params: ArrayLike,
    loss: ArrayLike,
    tokens: ArrayLike | None,
    run: Sequence[object] | None,
    level: float,
) -> tuple[Envelope | None, Opinion]:
    choice = "hull" if run is None else "running-minimum"
    try:
        found = envelope(flops, params, loss, tokens=tokens, run=run, choice=choice, level=level)
    except (Refusal, InputError) as refusal:
        return None, Opinion(f"envelope, {choice}", None, None, None, refusal.what)
    return found, Opinion(f"envelope, {choice}", found.params.exponent, found.params_interval, None, None)


def _read(name: str, chosen: IsoFlop, law: Fit | None, rows: tuple) -> Opinion:
    flops, params, loss, tokens, noise, level = rows
    try:
        found = chosen
        if name != chosen.method.value:
            found = isoflop(flops, params, loss, tokens=tokens, method=name, noise=noise, level=level)
        bias = None
        if law is not None and law.status is FitStatus.CONVERGED:
            own = grid_bias(found, law.params)
            bias = own.read - own.exponent
    except Refusal as refusal:
        return Opinion(f"IsoFLOP, {name}", None, None, None, refusal.what)
    return Opinion(f"IsoFLOP, {name}", found.params.exponent, found.params.interval, bias, None)


def _by_law(law: Fit | None, why: str, level: float) -> Opinion:
    if law is None:
        return Opinion("law, chinchilla", None, None, None, why)
    found = allocation_exponent(law, level=level)
    return Opinion("law, chinchilla", found.exponent, found.interval, None, None)
