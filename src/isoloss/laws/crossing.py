"""Where two fitted laws of one input are equal, and how sure that is."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy

from isoloss.distributions import t_quantile
from isoloss.errors import InputError
from isoloss.laws._result import Fit
from isoloss.laws.forms import Array
from isoloss.stats import check_level

_GRID = 241
_DECADES = 2  # searched on each side of the data when no range is given


class CrossingOutcome(Enum):
    CROSSES_INSIDE = "the laws cross inside the data of both"
    CROSSES_OUTSIDE = "the laws cross outside the data of at least one"
    NO_CROSSING = "the laws do not cross in the range searched"


@dataclass(frozen=True)
class Crossing:
    """Where two laws are equal.

    ``value`` is None if the fitted laws do not cross in ``range``; of several crossings, counted in
    ``crossings``, it is the one nearest the middle of the data. ``interval`` holds every place where the data
    leave open which law is ahead; an end is None where that reaches the end of ``range``, and the whole is
    None if there is no such place or no covariance. ``inside``: the value lies in ``overlap``, the data of
    both fits.
    """

    outcome: CrossingOutcome
    value: float | None
    interval: tuple[float | None, float | None] | None
    level: float
    inside: bool
    range: tuple[float, float]
    overlap: tuple[float, float] | None
    crossings: int

    @property
    def at_edge(self) -> bool:
        """Whether the interval of a crossing inside the data reaches beyond them."""
        low, high = self.interval or (self.value, self.value)
        if not self.inside or self.overlap is None:
            return False
        return low is None or high is None or low < self.overlap[0] or high > self.overlap[1]

    @property
    def anywhere(self) -> bool:
        """Whether its interval holds all the data: nothing is known of where the curves cross."""
        low, high = self.interval or (self.value, self.value)
        if self.overlap is None:
            return False
        return (low is None or low < self.overlap[0]) and (high is None or high > self.overlap[1])


def crossing(
    fit_a: Fit,
    fit_b: Fit,
    input: str = "params",
    *,
    level: float = 0.9,
    range: tuple[float, float] | None = None,
) -> Crossing:
    """Where ``fit_a`` and ``fit_b`` predict the same loss.

    The interval inverts a t test (Fieller's way): x belongs to it while the difference of the two log losses
    at x is less than t standard errors, with Welch's degrees of freedom. It is open where the data leave the
    crossing open, which percentiles of drawn crossings cannot be. ``range`` is searched; by default the data
    of both and two decades on each side. Raises InputError unless both laws have ``input`` as their only
    input.
    """
    level = check_level(level)
    for fit in (fit_a, fit_b):
        if set(fit.ranges) != {input}:
            raise InputError(
                f"{fit.law} takes {', '.join(fit.ranges)}, not {input} alone",
                mend="compare laws of one input",
            )
    (low_a, high_a), (low_b, high_b) = fit_a.ranges[input], fit_b.ranges[input]
    overlap = (max(low_a, low_b), min(high_a, high_b))
    low, high = range or (min(low_a, low_b) / 10**_DECADES, max(high_a, high_b) * 10**_DECADES)
    if not 0 < low < high < np.inf:
        raise InputError(f"range is {range}", mend="give (low, high) with 0 < low < high")

    log_x = np.linspace(np.log(low), np.log(high), _GRID)
    gap = _gap(fit_a, fit_b, input, log_x)

    def gap_at(log_x: float) -> float:
        return float(_gap(fit_a, fit_b, input, np.array([log_x]))[0])

    roots = [
        scipy.optimize.brentq(gap_at, log_x[i], log_x[i + 1])
        for i in np.flatnonzero(np.sign(gap[:-1]) * np.sign(gap[1:]) < 0)
    ] + list(log_x[gap == 0])
    middle = np.log(overlap).mean()
    value = float(np.exp(min(roots, key=lambda root: abs(root - middle)))) if roots else None
    inside = value is not None and overlap[0] <= value <= overlap[1]

    interval = None
    if fit_a.covariance is not None and fit_b.covariance is not None:
        interval = _interval(fit_a, fit_b, input, level, log_x, gap, value)
    outcome = CrossingOutcome.NO_CROSSING
    if value is not None:
        outcome = CrossingOutcome.CROSSES_INSIDE if inside else CrossingOutcome.CROSSES_OUTSIDE
    return Crossing(
        outcome=outcome,
        value=value,
        interval=interval,
        level=level,
        inside=inside,
        range=(float(low), float(high)),
        overlap=overlap if overlap[0] <= overlap[1] else None,
        crossings=len(roots),
    )


def _gap(fit_a: Fit, fit_b: Fit, input: str, log_x: Array) -> Array:
    """Log loss of the first law minus that of the second."""
    losses = [fit.losses(np.array(fit.theta), **{input: np.exp(log_x)}) for fit in (fit_a, fit_b)]
    return np.log(losses[0]) - np.log(losses[1])


def _interval(
    fit_a: Fit, fit_b: Fit, input: str, level: float, log_x: Array, gap: Array, value: float | None
) -> tuple[float | None, float | None] | None:
    var_a, var_b = (fit.log_variance(**{input: np.exp(log_x)}) for fit in (fit_a, fit_b))
    var = np.maximum(var_a + var_b, 1e-300)
    df = var**2 / (var_a**2 / fit_a.df + var_b**2 / fit_b.df + 1e-320)
    t = np.array([t_quantile(level, max(df_here, 1.0)) for df_here in df.tolist()])
    excess = np.abs(gap) - t * np.sqrt(var)
    open_at = np.flatnonzero(excess <= 0)
    if not len(open_at):  # the interval is narrower than the grid, or empty
        return None if value is None else (value, value)
    ends: list[float | None] = []
    for pair, best in (([open_at[0], open_at[0] - 1], min), ([open_at[-1], open_at[-1] + 1], max)):
        end = None
        if 0 <= pair[1] < len(log_x):
            end = float(np.exp(np.interp(0.0, excess[pair], log_x[pair])))
            end = end if value is None else best(end, value)
        ends.append(end)
    return ends[0], ends[1]
