"""A fit from constants that somebody printed: it predicts, and knows how little it knows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isoloss.errors import InputError
from isoloss.laws._result import Fit, FitStatus, Interval, Objective
from isoloss.laws._scaled import middles, scaled_form
from isoloss.laws.forms import Form, registered

_UNCERTAIN = "no interval: the constants stand without the covariance that an interval needs"


def from_constants(
    law: str | Form,
    params: Mapping[str, float],
    *,
    standard_errors: Mapping[str, float],
    intervals: Mapping[str, Interval],
    level: float,
    ranges: Mapping[str, tuple[float, float]],
    objective: str,
    n: int,
    warnings: Sequence[str],
    source: Mapping[str, Any],
) -> Fit:
    """A Fit of ``law`` with plain ``params``, whose status is PUBLISHED.

    Standard errors and intervals are those printed. Predictions have no interval, since those of A and alpha
    alone, without their covariance, say nothing about a loss. ``ranges`` are the inputs that were trained,
    where known. Raises InputError for parameters that are missing or cannot be.
    """
    law = registered(law)
    constants = {**law.fixed, **params}
    if missing := set(law.parameters) - set(constants):
        raise InputError(f"lacks {', '.join(sorted(missing))}", where=law.name, mend="give each parameter")
    # In units of the middle of the ranges, as a fit would be; of 1 where no paper tells them.
    scaled = scaled_form(law, np.zeros((len(law.inputs), 1)), middles(law, ranges), 0.0, constants)
    return Fit(
        law=law.name,
        status=FitStatus.PUBLISHED,
        reason=FitStatus.PUBLISHED.value,
        params={name: float(constants[name]) for name in law.parameters},
        standard_errors={name: standard_errors.get(name) for name in law.parameters},
        intervals={name: intervals.get(name) for name in law.parameters},
        level=level,
        intervals_by="as printed",
        objective=Objective(objective),
        fixed={name: value for name, value in law.fixed.items() if name not in params},
        n=n,
        warnings=(_UNCERTAIN, *warnings),
        theta=tuple(scaled.theta(np.zeros(0)).tolist()),
        units=scaled.units,
        ranges=dict(ranges),
        source=dict(source),
    )
