"""Loss against position in the context: the law a + b T^-p, and where a model stops using more context."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from isoloss.errors import InputError, Refusal
from isoloss.laws._fit import fit
from isoloss.laws._result import Fit, FitStatus
from isoloss.laws._scaled import ScaledForm, scaled_form
from isoloss.laws._solve import Problem, is_stationary, sharpen
from isoloss.laws.forms import Array, form
from isoloss.stats import check_level

_SURE = 0.05  # chance that noise alone makes any of the looks see a gain
_LEFT_OVER = 0.03  # a plateau: what is left to gain is surely below this share of the whole improvement


def context_mean(fit: Fit, length: int) -> float:
    """Mean of a + b T^-p over T = 1..length, the loss of a whole context that the law implies.

    Summed exactly; for long contexts it approaches a + b n^-p / (1 - p) + b zeta(p) / n.
    """
    if length < 1:
        raise InputError(f"length is {length}", mend="give a context length of at least 1")
    return float(np.mean(fit.predict(position=np.arange(1.0, length + 1)).loss))


def fit_context(
    positions_T: ArrayLike,
    sum_ST: ArrayLike,
    sumsq_ST: ArrayLike,
    count_ST: ArrayLike,
    *,
    level: float = 0.9,
    curve_only: bool = False,
    source: dict[str, Any] | None = None,
) -> Fit:
    """The context law of one model from S seeds: sums, sums of squares and counts of per-position losses.

    The law is fitted by least squares to the mean over seeds of the per-position means, weighted by count.
    Positions of one run share windows and weights, so they give no interval: the intervals are t intervals
    over the seeds' own fits, on the log scale, with S - 1 degrees of freedom; with one seed there are none,
    and a warning says so. They hold new seeds on the same windows, not new windows. ``sigma`` is the standard
    deviation over seeds of the context mean. Raises InputError for sums that are not finite or counts below
    1, Refusal as ``fit`` does; ``curve_only`` as there.
    """
    positions, mean_ST, _, count_ST = _position_means(positions_T, sum_ST, sumsq_ST, count_ST)
    weights = count_ST.sum(axis=0)
    mean_T = np.average(mean_ST, axis=0, weights=count_ST)
    whole = fit(
        "context",
        {"position": positions},
        mean_T,
        weights=weights,
        level=level,
        curve_only=curve_only,
        source=source,
    )
    seeds = len(mean_ST)
    whole = replace(whole, sigma=None, df=seeds - 1, clusters=seeds)
    if whole.status is FitStatus.CURVE_ONLY:
        return replace(whole, warnings=(whole.reason,))
    if seeds == 1:
        return replace(whole, warnings=("one seed: no interval can be given",))
    theta_Sp, failed = _seed_thetas(whole, positions, mean_ST, count_ST)
    if failed or whole.status is not FitStatus.CONVERGED:
        warning = f"{failed} of {seeds} seeds have no fit of their own: no interval can be given"
        return replace(whole, warnings=(warning,))
    covariance = np.cov(theta_Sp, rowvar=False) / seeds
    theta = np.array(whole.theta)
    errors, intervals = _model(whole, positions).t_intervals(theta, covariance, seeds - 1, level)
    few = ("two seeds: one degree of freedom, intervals are very wide",) if seeds == 2 else ()
    return replace(
        whole,
        standard_errors=errors,
        intervals=intervals,
        covariance=tuple(tuple(row) for row in covariance.tolist()),
        sigma=float(np.std(np.average(mean_ST, axis=1, weights=weights), ddof=1)),
        warnings=few,
    )


def _seed_thetas(whole: Fit, positions: Array, mean_ST: Array, count_ST: Array) -> tuple[Array, int]:
    """Each seed's own optimum, reached from the law of their mean, and how many were not reached."""
    law, unit = form("context"), whole.units
    scaled = _model(whole, positions)
    thetas: list[Array] = []
    failed = 0
    for mean_T, count_T in zip(mean_ST, count_ST, strict=True):
        problem = Problem(scaled, mean_T / unit.loss, count_T / count_T.mean(), "squared", 1e-3)
        theta = sharpen(problem, np.array(whole.theta))
        exponent = float(np.exp(theta[law.parameters.index("p")]))
        low, high = law.limits["p"]
        failed += not is_stationary(problem, theta) or not low < exponent < high
        thetas.append(theta)
    return np.stack(thetas), failed


def _model(whole: Fit, positions: Array) -> ScaledForm:
    log_scale_I = np.log([whole.units.inputs["position"]])
    return scaled_form(
        form("context"), np.log(positions)[None] - log_scale_I, log_scale_I, np.log(whole.units.loss), {}
    )


class Plateau(Enum):
    STOPS = "later positions are no better than this one"
    IMPROVING = "the loss still falls at the last position that can be judged"
    UNDECIDED = "too few tokens to tell a plateau from a slow fall"


@dataclass(frozen=True)
class ContextStop:
    """Where a model stops using more context.

    ``index`` is the first token index of the first bin after which no gain is seen, None unless ``outcome``
    is STOPS. ``judged`` is the (first, last) token index of that bin, or of the last one that can be judged.
    """

    outcome: Plateau
    index: int | None
    judged: tuple[int, int]


def where_it_stops(
    positions_T: ArrayLike, sum_T: ArrayLike, sumsq_T: ArrayLike, count_T: ArrayLike, *, sure: float = _SURE
) -> ContextStop:
    """The token index after which a longer context no longer lowers the loss.

    Positions fall into octaves (1, 2-3, 4-7, ...). Each octave that ends in the first quarter of the context
    is compared with all later positions; a gain counts if it exceeds c standard errors, c being the normal
    quantile of sure / looks, so that noise alone makes any look see a gain with probability ``sure`` (c is
    2.4 for six looks). The octave after the last one with a gain is where improvement stops, if the gain
    still possible there (gain + c se) is below 3% of the whole improvement from the first octave on;
    otherwise the tokens are too few to say, and if the last look still sees a gain, the model is still
    improving. The standard errors treat tokens as independent; losses in one window rise and fall together,
    which cancels in a difference of positions. Raises Refusal below 32 positions, InputError for sums that
    are not finite or counts below 1.
    """
    positions, mean_ST, var_ST, count_ST = _position_means(positions_T, sum_T, sumsq_T, count_T)
    if len(mean_ST) != 1:
        raise InputError("sums of several seeds", mend="add them over seeds first")
    if len(positions) < 32:
        raise Refusal(
            f"{len(positions)} positions are too few to see a plateau", mend="evaluate at 32 or more"
        )
    mean, var, count = mean_ST[0], var_ST[0], count_ST[0]
    octave = np.floor(np.log2(positions)).astype(int)
    judged = [k for k in np.unique(octave) if positions[octave == k].max() <= positions.max() / 4]
    c = float(ndtri(1 - check_level(sure) / len(judged)))
    gains, errors = np.empty(len(judged)), np.empty(len(judged))
    for i, k in enumerate(judged):
        (here, var_here), (later, var_later) = (
            _pool(mean[bins], var[bins], count[bins]) for bins in (octave == k, octave > k)
        )
        gains[i], errors[i] = here - later, np.sqrt(var_here + var_later)
    gaining = np.flatnonzero(gains > c * errors)
    stop = int(gaining[-1]) + 1 if len(gaining) else 0
    outcome = Plateau.IMPROVING
    if stop < len(judged):
        whole = gains[0] + c * errors[0]
        outcome = Plateau.STOPS if gains[stop] + c * errors[stop] < _LEFT_OVER * whole else Plateau.UNDECIDED
    inside = positions[octave == judged[min(stop, len(judged) - 1)]]
    first, last = int(inside.min()), int(inside.max())
    return ContextStop(outcome, first if outcome is Plateau.STOPS else None, (first, last))


def _pool(mean: Array, var: Array, count: Array) -> tuple[float, float]:
    """Mean over positions, each counting alike, and its variance."""
    return float(mean.mean()), float(np.sum(var / count)) / len(mean) ** 2


def _position_means(
    positions_T: ArrayLike, sum_ST: ArrayLike, sumsq_ST: ArrayLike, count_ST: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """Positions, and per seed and position the mean, variance and count of the losses, each (S, T)."""
    positions = np.asarray(positions_T, dtype=np.float64)
    sums, squares, counts = (
        np.atleast_2d(np.asarray(a, dtype=np.float64)) for a in (sum_ST, sumsq_ST, count_ST)
    )
    if counts.shape == (1, sums.shape[-1]):
        counts = np.broadcast_to(counts, sums.shape)
    shapes = {sums.shape, squares.shape, counts.shape}
    if shapes != {(len(sums), *positions.shape)} or not positions.size:
        raise InputError(
            f"shapes differ: positions {positions.shape}, sums {sums.shape}, "
            f"squares {squares.shape}, counts {counts.shape}",
            mend="give one row a seed and one column a position",
        )
    if not (positions[0] >= 1 and np.all(np.diff(positions) > 0) and positions[-1] < np.inf):
        raise InputError(
            "positions are not increasing token indices from 1", mend="sort them; the first token is 1"
        )
    if not np.all(np.isfinite([sums, squares, counts])):
        raise InputError("a sum or count is not finite", mend="evaluate again")
    if np.any(counts < 1):
        raise InputError("a position has no token", mend="leave that position out")
    mean = sums / counts
    return positions, mean, np.maximum(squares / counts - mean**2, 0.0), counts
