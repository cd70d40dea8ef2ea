"""How many times larger one family must be to match another: N(rival) / N(reference) at equal loss."""

from dataclasses import dataclass

import numpy as np

from isoloss.analysis.by_params import FamilyPair
from isoloss.errors import Refusal
from isoloss.laws import Fit
from isoloss.stats import LEVEL

DRAWS = 2000
SEED = 7
GRID = 400
DECADES = 3
"""Draws of a law may reach a loss beyond its data by this much before their end counts as open."""


@dataclass(frozen=True)
class SizeRatio:
    """``ratio`` at ``loss``; an end of ``interval`` is None where draws of the laws leave it open."""

    loss: float
    ratio: float
    interval: tuple[float | None, float | None] | None


def size_ratios(pair: FamilyPair, curve: str, levels: int = 3) -> list[SizeRatio]:
    """Ratios at ``levels`` losses that both laws reach inside their data.

    The interval takes quantiles of the ratio over draws of both parameter vectors.
    Raises Refusal if a law was refused or the two share no loss.
    """
    ours, theirs = pair.fits[pair.reference], pair.fits[curve]
    if isinstance(ours, Refusal):
        raise ours
    if isinstance(theirs, Refusal):
        raise theirs
    ends = [
        np.sort(np.asarray(law.predict(params=np.array(law.ranges["params"])).loss)) for law in (ours, theirs)
    ]
    low, high = max(end[0] for end in ends), min(end[1] for end in ends)
    if low >= high:
        raise Refusal(
            f"no loss is reached by both the {pair.reference} and the {curve} inside their sizes",
            mend=f"add larger {pair.reference} or smaller {curve} models",
        )
    rng = np.random.default_rng(SEED)
    certain = ours.covariance is not None and theirs.covariance is not None
    drawn = [law.draws(DRAWS, rng) if certain else None for law in (ours, theirs)]
    out: list[SizeRatio] = []
    for share in np.linspace(0, 1, levels + 2)[1:-1]:
        loss = float(low + share * (high - low))
        ratio = float(np.exp(log_size(theirs, loss)[0] - log_size(ours, loss)[0]))
        interval = None
        if certain:
            interval = quantiles(log_size(theirs, loss, drawn[1]) - log_size(ours, loss, drawn[0]))
        out.append(SizeRatio(loss, ratio, interval))
    return out


def log_size(law: Fit, loss: float, theta_Sp: np.ndarray | None = None) -> np.ndarray:
    """log N at which the law (or each of its draws) reaches the loss; infinite beyond the grid."""
    low, high = law.ranges["params"]
    log_n = np.linspace(np.log(low) - DECADES * np.log(10), np.log(high) + DECADES * np.log(10), GRID)
    loss_Sn = law.losses(np.array([law.theta]) if theta_Sp is None else theta_Sp, params=np.exp(log_n))
    # Laws fall with N: flipped, each row rises, as interpolation wants.
    rows = [np.interp(loss, row[::-1], log_n[::-1], left=np.inf, right=-np.inf) for row in loss_Sn]
    return np.array(rows)


def quantiles(log_ratio: np.ndarray) -> tuple[float | None, float | None]:
    tail = (1 - LEVEL) / 2
    # Where neither law reaches the loss the ratio is unknown, and counts as 1.
    filled = np.where(np.isnan(log_ratio), 0.0, log_ratio)
    ends = np.quantile(filled, [tail, 1 - tail], method="nearest")
    low, high = (float(np.exp(end)) if np.isfinite(end) else None for end in ends)
    return low, high
