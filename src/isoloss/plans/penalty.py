"""What it costs to train another size than the best one."""

from dataclasses import dataclass

import numpy as np
import scipy

from isoloss.laws import Array
from isoloss.plans.allocate import AllocationQuestion
from isoloss.plans.fixed_inputs import Values
from isoloss.plans.loss_surface import LossSurface

SPAN, POINTS = 8.0, 49
MOST_EXTRA = 0.1


@dataclass(frozen=True)
class Penalty:
    """A curve over N / N_opt from 1/8 to 8.

    ``extra_loss``: nats per token above the optimum for the same compute, None where the compute buys less
    than one token. ``extra_compute``: share of compute on top to reach the optimum's loss, None where no
    number of tokens does. ``within_10_percent``: the factors between which that share stays below 0.1, None
    at an end beyond the curve. Compute is training plus serving.
    """

    factor: tuple[float, ...]
    extra_loss: tuple[float | None, ...]
    extra_compute: tuple[float | None, ...]
    within_10_percent: tuple[float | None, float | None]


def penalty(surface: LossSurface, question: AllocationQuestion, log_n: float, log_d: float) -> Penalty:
    """The penalty around the optimum of row 0."""
    loss = float(surface.loss(0, log_n, log_d))
    log_cost = float(question.log_cost(log_n, log_d))
    log_factor = np.linspace(-np.log(SPAN), np.log(SPAN), POINTS)

    def at_cost(log_f: Values, log_flops: float) -> Array:
        """Loss of another size for so much compute; NaN where that buys less than a token."""
        n = log_n + np.asarray(log_f)
        return surface.loss(0, n, np.minimum(question.log_tokens_within(log_flops, n), question.most))

    def end(far: float) -> float | None:
        """The size, between the optimum and ``far``, that needs a tenth more compute for the same loss."""

        def short(log_f: float) -> float:
            return float(np.nan_to_num(at_cost(log_f, log_cost + np.log1p(MOST_EXTRA)) - loss, nan=1.0))

        if short(far) <= 0:
            return None
        # Where max_epochs binds, the optimum is an edge: one side starts at once.
        near = 1e-9 * np.sign(far)
        return float(np.exp(scipy.optimize.brentq(short, near, far))) if short(near) < 0 else 1.0

    n = log_n + log_factor
    log_extra = question.log_cost(n, surface.log_tokens(0, n, loss, question.most)) - log_cost
    return Penalty(
        factor=tuple(np.exp(log_factor).tolist()),
        extra_loss=_or_none(at_cost(log_factor, log_cost) - loss),
        extra_compute=_or_none(np.expm1(log_extra)),
        within_10_percent=(end(-np.log(SPAN)), end(np.log(SPAN))),
    )


def _or_none(values: Array) -> tuple[float | None, ...]:
    # The optimum is found to rounding: a penalty of -1e-16 is none.
    return tuple(max(float(value), 0.0) if np.isfinite(value) else None for value in values)
