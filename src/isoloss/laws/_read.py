"""A written fit read again: every type is checked, then what the law asks of it."""

import dataclasses
import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from isoloss.errors import InputError
from isoloss.laws._result import Fit, FitStatus
from isoloss.laws.forms import Array, form
from isoloss.provenance import check_source
from isoloss.strict import first_complaint


def read(data: Mapping[str, Any]) -> Fit:
    """Raises InputError if ``data`` is not what ``Fit.to_json`` wrote."""
    try:
        return _read(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        what = first_complaint(error) if isinstance(error, ValidationError) else error
        raise InputError(
            f"is not a fit ({what})", mend="write it with isoloss fit -o, or Fit.to_json"
        ) from None


@cache
def _reader() -> TypeAdapter[Fit]:
    """Checks every field's type; a list is taken for a tuple, text never for a number."""
    return TypeAdapter(Fit)


def _read(data: Mapping[str, Any]) -> Fit:
    given = {name: data[name] for name in data if name != "allocation"}
    fields = {field.name for field in dataclasses.fields(Fit)}
    if missing := fields - set(given):
        raise KeyError(f"without {', '.join(sorted(missing))}")
    if more := set(given) - fields:
        raise KeyError(f"with {', '.join(sorted(map(str, more)))[:80]}")
    given["status"] = FitStatus[given["status"]].value
    fit = _reader().validate_json(json.dumps(given, allow_nan=False), strict=True)
    _check(fit)
    return fit


def _check(fit: Fit) -> None:
    """Raises ValueError for names that the law has not, or lacks, for other sizes and infinite numbers."""
    law, data = form(fit.law), fit.data
    inputs, size = set(law.inputs), len(law.parameters)
    if set(fit.params) != set(law.parameters) or set(fit.units.inputs) != inputs:
        raise ValueError("params or units do not name those of the law")
    if data and (set(data.inputs) != inputs or not data.even):
        raise ValueError("data do not fit the law")
    if not set(fit.ranges) <= inputs or not set(fit.fixed) <= set(law.parameters):
        raise ValueError("ranges or fixed name what the law has not")
    if fit.bootstrap and any(len(row) != size for row in fit.bootstrap.theta):
        raise ValueError("bootstrap refits do not match the law")
    if fit.covariance is not None and fit.df < 1:
        raise ValueError("intervals need a degree of freedom, and df is below 1")
    if (fit.sigma is not None and not 0 <= fit.sigma < math.inf) or not 0 < fit.level < 1:
        raise ValueError("sigma or level is none")
    if any(not 0 <= low <= high < math.inf for low, high in fit.ranges.values()):
        raise ValueError("a range of the data is none")
    check_source(fit.source, data.rows if data else None)
    square = fit.covariance is None or [len(row) for row in fit.covariance] == [size] * size
    numbers = [*fit.theta, *fit.params.values(), fit.units.loss, *fit.units.inputs.values()]
    finite = all(math.isfinite(number) for number in numbers)
    if len(fit.theta) != size or not square or not finite or min(fit.units.inputs.values()) <= 0:
        raise ValueError("theta, params, units or covariance do not match the law")
    if fit.covariance is not None and not _is_covariance(np.array(fit.covariance)):
        raise ValueError("covariance is not symmetric, or a variance is negative")


def _is_covariance(matrix: Array) -> bool:
    """Whether a matrix is symmetric and has no negative eigenvalue, up to the rounding of its entries."""
    if not np.all(np.isfinite(matrix)) or np.any(np.diag(matrix) < 0):
        return False
    root = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix / root[:, None] / root
    return bool(np.allclose(scaled, scaled.T, atol=1e-6) and np.linalg.eigvalsh(scaled)[0] > -1e-6)
